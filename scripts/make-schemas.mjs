/**
 * Writes the schemas of the bundle format and of its distribution to docs/schema/ and proto/, from src/bundle/format/schema.ts and
 * src/bundle/format/distribution-contract.ts. Programs load the files: src/bundle/format/shape.ts.
 * test/bundle/format/published.test.ts fails when they are out of date.
 */
import { execFileSync } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import { register } from 'node:module';

register(new URL('../test/support/harness/typescript-hooks.mjs', import.meta.url));
const schemas = await import('../src/bundle/format/schema.ts');
const { POLL_ANSWER } = await import('../src/bundle/format/distribution-contract.ts');

const PUBLISHED = {
  'docs/schema/bundle.schema.json': schemas.BUNDLE_CONTENT,
  'docs/schema/delta.schema.json': schemas.DELTA_CONTENT,
  'docs/schema/freshness.schema.json': schemas.FRESHNESS_CONTENT,
  'docs/schema/link.schema.json': schemas.LINK_CONTENT,
  'proto/target-bundle.schema.json': POLL_ANSWER,
};

const root = new URL('../', import.meta.url);
for (const [path, schema] of Object.entries(PUBLISHED)) {
  writeFileSync(new URL(path, root), `${JSON.stringify(schema, null, 2)}\n`);
}
const biome = new URL('node_modules/.bin/biome', root).pathname;
execFileSync(biome, ['format', '--write', ...Object.keys(PUBLISHED)], { cwd: root, stdio: 'ignore' });
