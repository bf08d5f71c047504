/** Bundles the console to dist/console/, with a compressed copy of each asset beside it. */
import { readdirSync, readFileSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { brotliCompressSync, constants, gzipSync } from 'node:zlib';

const assets = 'dist/console/assets';

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
