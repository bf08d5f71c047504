/**
 * Builds the console: TypeScript types of the API from docs/reference/openapi.json to .build/console/, the bundled application to
 * dist/console/, with each asset compressed beside itself. `--types` stops after the types.
 */
import { mkdirSync, readdirSync, readFileSync, renameSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { brotliCompressSync, constants, gzipSync } from 'node:zlib';
import openapiTypescript, { astToString } from 'openapi-typescript';

const types = '.build/console/openapi.d.ts';
const assets = 'dist/console/assets';

mkdirSync(path.dirname(types), { recursive: true });
const document = JSON.parse(readFileSync('docs/reference/openapi.json', 'utf8'));
// A compiler that runs meanwhile reads the old text or the new one.
const written = `${types}.${process.pid}`;
writeFileSync(written, astToString(await openapiTypescript(document)));
renameSync(written, types);

if (!process.argv.includes('--types')) {
  // Vite takes its mode from NODE_ENV, which tests set: React's development build would hold paths of this machine.
  process.env.NODE_ENV = 'production';
  const { build } = await import('vite');
  await build({ configFile: 'src/console/vite.config.ts', logLevel: 'warn' });
  for (const name of readdirSync(assets)) {
    const file = path.join(assets, name);
    const content = readFileSync(file);
    const quality = { [constants.BROTLI_PARAM_QUALITY]: constants.BROTLI_MAX_QUALITY };
    writeFileSync(`${file}.br`, brotliCompressSync(content, { params: quality }));
    writeFileSync(`${file}.gz`, gzipSync(content, { level: 9 }));
  }
}
