/**
 * The JSON Schemas that checks compile, read from the published files. Programs load them in place of the code that builds
 * schemas: docs/performance.md "What idle programs take".
 */
import { readFileSync } from 'node:fs';

const ROOT = new URL('../../../', import.meta.url);
const FILES = {
  bundle: 'docs/schema/bundle.schema.json',
  delta: 'docs/schema/delta.schema.json',
  freshness: 'docs/schema/freshness.schema.json',
  link: 'docs/schema/link.schema.json',
  'target-bundle': 'proto/target-bundle.schema.json',
} as const;
export type PublishedSchema = keyof typeof FILES;

/**
 * @param path members that lead to a part of the schema; without it, the whole
 * @throws Error when the file is missing or has no such part: the installation is broken
 */
export function publishedSchema(name: PublishedSchema, path: readonly string[] = []): object {
  let schema: unknown = JSON.parse(readFileSync(new URL(FILES[name], ROOT), 'utf8'));
  for (const member of path) {
    schema = isObject(schema) ? Object.getOwnPropertyDescriptor(schema, member)?.value : undefined;
  }
  if (!isObject(schema)) throw new Error(`${FILES[name]} has no schema at /${path.join('/')}`);
  return schema;
}

function isObject(value: unknown): value is object {
  return typeof value === 'object' && value !== null;
}
