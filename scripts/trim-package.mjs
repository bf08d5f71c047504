/**
 * Removes from the compiled package of the working directory, an npm workspace, what its `exports` do not reach: the compiler also writes
 * the modules that others import only for their types, and declarations that no public type names. Then checks that the package's
 * dependencies are what its modules import. A workspace calls this before it is packed.
 */
import { readdirSync, readFileSync, rmSync } from 'node:fs';
import { isBuiltin } from 'node:module';
import { dirname, join } from 'node:path';
import { Failure, tellingFailures } from './failure.mjs';

const DIST = 'dist';
/** The compiler writes imports in these forms only; the tests of the packages load every module, and compile the types. */
const IMPORT = /^(?:import|export)\b[^'";]*? from ['"]([^'"]+)['"];$|\bimport\(['"]([^'"]+)['"]\)/gm;
/** JSON files that modules read, relative to the module. */
const DATA_FILE = /['"](\.\/[\w./-]+\.json)['"]/g;

await tellingFailures(async () => {
  const { dependencies, exports, name } = JSON.parse(readFileSync('package.json', 'utf8'));
  const entries = Object.values(exports);
  const code = reachedFrom(entries.map((entry) => join(entry.default)));
  const types = reachedFrom(entries.map((entry) => join(entry.types)));
  const reached = new Set([...code.files, ...types.files]);
  for (const file of filesBelow(DIST)) if (!reached.has(file)) rmSync(file);
  const imported = [...code.packages].sort();
  const declared = Object.keys(dependencies).sort();
  if (imported.join() === declared.join()) return;
  throw new Failure(
    'dependencies_differ',
    `${name} depends on ${declared.join(', ')}; its modules import ${imported.join(', ')}`,
  );
});

/** @returns `files` that the entries lead to, JSON files among them; names of other `packages` */
function reachedFrom(entries) {
  const files = new Set(entries);
  const packages = new Set();
  for (const file of files) {
    const text = readFileSync(file, 'utf8');
    for (const [, path] of text.matchAll(DATA_FILE)) files.add(join(dirname(file), path));
    for (const [, fixed, dynamic] of text.matchAll(IMPORT)) {
      const name = fixed ?? dynamic;
      if (name.startsWith('.')) files.add(join(dirname(file), declared(file, name)));
      else if (!isBuiltin(name)) packages.add(packageOf(name));
    }
  }
  return { files, packages };
}

/** A declaration names the module; its own file lies beside that. */
function declared(file, name) {
  return file.endsWith('.d.ts') ? name.replace(/\.[jt]s$/, '.d.ts') : name;
}

/** `typebox` of `typebox/schema`, `@fastify/jwt` of `@fastify/jwt`. */
function packageOf(name) {
  return name.split('/', name.startsWith('@') ? 2 : 1).join('/');
}

function filesBelow(folder) {
  return readdirSync(folder, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => join(entry.parentPath ?? entry.path, entry.name));
}
