/**
 * Lays out an npm package such as `@proofgate/middleware`: the compiled modules that its entries reach, their public declarations, and a
 * package.json whose dependencies are what those modules import.
 * Usage: package.mjs [--out=DIRECTORY], after `npm run build`; then `npm pack` there.
 */
import { cpSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { reachedFrom } from './modules.mjs';

const ROOT = fileURLToPath(new URL('../../', import.meta.url));
const DIST = 'dist';

/** As {@link layOutPackage}, for `packages/middleware`. */
export function layOutMiddleware(root, out, declarations) {
  return layOutPackage({ root, template: join('packages', 'middleware'), out, declarations });
}

/**
 * @param root of the repository, compiled
 * @param template folder of the package's package.json and README, below the root
 * @param declarations folder of the declarations; by default they lie beside the compiled modules
 * @param out an empty or missing directory
 * @returns the written package.json
 */
export function layOutPackage({ root, template: folder, out, declarations = join(root, DIST) }) {
  const template = readJson(join(root, folder, 'package.json'));
  const { dependencies, version } = readJson(join(root, 'package.json'));
  const entries = Object.values(template.exports);
  const below = (path) => path.slice(`./${DIST}/`.length);
  const code = reachedFrom(
    join(root, DIST),
    entries.map((entry) => below(entry.default)),
  );
  const types = reachedFrom(
    declarations,
    entries.map((entry) => below(entry.types)),
  );
  const copy = (from, path) => {
    mkdirSync(dirname(join(out, path)), { recursive: true });
    cpSync(from, join(out, path));
  };
  for (const file of code.files) copy(join(root, DIST, file), join(DIST, file));
  for (const file of types.files) copy(join(declarations, file), join(DIST, file));
  copy(join(root, 'LICENSE'), 'LICENSE');
  copy(join(root, folder, 'README.md'), 'README.md');
  const { private: _private, ...published } = template;
  const manifest = {
    ...published,
    version,
    dependencies: Object.fromEntries(code.packages.map((name) => [name, dependencies[name]])),
  };
  writeFileSync(join(out, 'package.json'), `${JSON.stringify(manifest, null, 2)}\n`);
  return manifest;
}

function readJson(file) {
  return JSON.parse(readFileSync(file, 'utf8'));
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const options = { out: { type: 'string', default: join(ROOT, '.build', 'middleware') } };
  const { out } = parseArgs({ options }).values;
  rmSync(out, { recursive: true, force: true });
  const { dependencies, name, version } = layOutMiddleware(ROOT, out);
  console.log(`${name} ${version} in ${out}, with ${Object.keys(dependencies).join(', ')}`);
}
