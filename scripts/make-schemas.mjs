/**
 * Writes the JSON Schemas of the bundle format and of its distribution, from src/bundle/format/schema.ts and
 * src/bundle/format/distribution-contract.ts: to src/bundle/format/schemas/, where programs load them, and the published copies to
 * docs/reference/schema/ and proto/. test/bundle/format/published.test.ts fails when one is out of date.
 */
import { execFileSync } from 'node:child_process';
import { copyFileSync, writeFileSync } from 'node:fs';
import { register } from 'node:module';

register(new URL('../test/support/harness/typescript-hooks.mjs', import.meta.url));
const schemas = await import('../src/bundle/format/schema.ts');
const { POLL_ANSWER } = await import('../src/bundle/format/distribution-contract.ts');

const LOADED = 'src/bundle/format/schemas';
const SCHEMAS = [
  ['break-glass', schemas.BREAK_GLASS_CONTENT, 'docs/reference/schema'],
  ['bundle', schemas.BUNDLE_CONTENT, 'docs/reference/schema'],
  ['delta', schemas.DELTA_CONTENT, 'docs/reference/schema'],
  ['freshness', schemas.FRESHNESS_CONTENT, 'docs/reference/schema'],
  ['link', schemas.LINK_CONTENT, 'docs/reference/schema'],
  ['target-bundle', POLL_ANSWER, 'proto'],
];

const root = new URL('../', import.meta.url);
const pathIn = (folder, name) => new URL(`${folder}/${name}.schema.json`, root).pathname;
for (const [name, schema] of SCHEMAS)
  writeFileSync(pathIn(LOADED, name), `${JSON.stringify(schema, null, 2)}\n`);
const biome = new URL('node_modules/.bin/biome', root).pathname;
execFileSync(biome, ['format', '--write', LOADED], { cwd: root, stdio: 'ignore' });
for (const [name, , published] of SCHEMAS) copyFileSync(pathIn(LOADED, name), pathIn(published, name));
