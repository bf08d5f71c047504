/** Compares the members of a bundle with "Beyond the specification" of docs/design/architecture.md. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it } from '@jest/globals';
import { isJsonObject } from '../../src/protocol/strict-json.ts';

const root = join(import.meta.dirname, '../..');

/** What the specification describes, under these or other names. */
const SPECIFIED = [
  ...['trust_anchor_sources', 'issuers', 'clients', 'derived_keys', 'provenance', 'context'],
  ...['max_staleness_seconds', 'resource', 'access', 'origins', 'signed_headers', 'body'],
  ...[
    'required_provenance',
    'required_context',
    'subject_exact',
    'subject_prefix',
    'not_before',
    'not_after',
  ],
];

/** Names of members that may be left out, at any depth. */
function optionalMembers(schema: unknown): readonly string[] {
  if (Array.isArray(schema)) return schema.flatMap(optionalMembers);
  if (!isJsonObject(schema)) return [];
  const { properties, required } = schema;
  const needed: readonly unknown[] = Array.isArray(required) ? required : [];
  const own = isJsonObject(properties) ? Object.keys(properties) : [];
  return [...own.filter((name) => !needed.includes(name)), ...Object.values(schema).flatMap(optionalMembers)];
}

it('every optional member of a bundle is specified, or is on the list', () => {
  const schema: unknown = JSON.parse(
    readFileSync(join(root, 'docs/reference/schema/bundle.schema.json'), 'utf8'),
  );
  const page = readFileSync(join(root, 'docs/design/architecture.md'), 'utf8');
  const [, list = ''] = page.split('**Beyond the specification**');
  const names = new Set(optionalMembers(schema));
  expect(names.size).toBeGreaterThan(20);
  // Of `blocked`.
  const within = ['subject', 'holder_thumbprint'];
  const missing = [...names].filter(
    (name) => ![...SPECIFIED, ...within].includes(name) && !list.includes(`\`${name}\``),
  );
  expect(missing).toEqual([]);
});
