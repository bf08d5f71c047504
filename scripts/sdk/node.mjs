/**
 * Packs the npm package `@proofgate/client`: the compiled modules that `src/caller/sdk` reaches. It has no dependencies.
 * Usage: node.mjs [--out=DIRECTORY], after `npm run build`; prints the package's file.
 */
import { execFileSync } from 'node:child_process';
import { mkdirSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { layOutPackage } from '../middleware/package.mjs';

const ROOT = fileURLToPath(new URL('../../', import.meta.url));

/** @param declarations as for `layOutPackage` */
export function layOutNodeSdk(root, out, declarations) {
  const manifest = layOutPackage({ root, template: join('sdk', 'node'), out, declarations });
  const names = Object.keys(manifest.dependencies);
  if (names.length > 0) throw new Error(`the Node SDK has no dependencies, but reaches ${names.join(', ')}`);
  return manifest;
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const options = { out: { type: 'string', default: join(ROOT, '.build', 'sdk') } };
  const { out } = parseArgs({ options }).values;
  const laidOut = join(out, 'node');
  rmSync(laidOut, { recursive: true, force: true });
  mkdirSync(laidOut, { recursive: true });
  layOutNodeSdk(ROOT, laidOut);
  const packed = execFileSync('npm', ['pack', '--silent', '--pack-destination', out], { cwd: laidOut });
  console.log(join(out, String(packed).trim()));
}
