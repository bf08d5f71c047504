/** Follows the imports of compiled modules, and of their declarations, from the entries of a package. */
import { readFileSync } from 'node:fs';
import { isBuiltin } from 'node:module';
import { dirname, join } from 'node:path';

/** The compiler writes imports in these forms only; the test of the package loads every module, and compiles the types. */
const IMPORT = /^(?:import|export)\b[^'";]*? from ['"]([^'"]+)['"];$|\bimport\(['"]([^'"]+)['"]\)/gm;
/** JSON files that modules read, relative to the module. */
const DATA_FILE = /['"](\.\/[\w./-]+\.json)['"]/g;

/**
 * @param root folder of the compiled files
 * @param entries below it
 * @returns `files` below it, JSON files among them; names of other `packages`
 */
export function reachedFrom(root, entries) {
  const files = new Set(entries);
  const packages = new Set();
  for (const file of files) {
    const text = readFileSync(join(root, file), 'utf8');
    for (const [, path] of text.matchAll(DATA_FILE)) files.add(join(dirname(file), path));
    for (const [, fixed, dynamic] of text.matchAll(IMPORT)) {
      const name = fixed ?? dynamic;
      if (name.startsWith('.')) files.add(join(dirname(file), declared(file, name)));
      else if (!isBuiltin(name)) packages.add(packageOf(name));
    }
  }
  return { files: sorted(files), packages: sorted(packages) };
}

/** A declaration names the module; the declaration's file is beside the module. */
function declared(file, name) {
  return file.endsWith('.d.ts') ? name.replace(/\.[jt]s$/, '.d.ts') : name;
}

/** `typebox` of `typebox/schema`, `@fastify/jwt` of `@fastify/jwt`. */
function packageOf(name) {
  return name.split('/', name.startsWith('@') ? 2 : 1).join('/');
}

function sorted(set) {
  return [...set].sort();
}
