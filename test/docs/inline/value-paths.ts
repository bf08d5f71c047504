/** Paths of the chart's values, from its schema. */
import { isJsonObject } from '../../../src/protocol/strict-json.ts';
import { readText } from '../../support/docs/markdown.ts';

const schema: unknown = JSON.parse(readText('helm/proofgate/values.schema.json'));

function memberAt(value: unknown, ...path: readonly string[]): unknown {
  return path.reduce((at: unknown, name) => (isJsonObject(at) ? at[name] : undefined), value);
}

/** The node, its references, and its parts. */
function partsOf(node: unknown): readonly unknown[] {
  const reference = memberAt(node, '$ref');
  const referred = typeof reference === 'string' ? [memberAt(schema, ...reference.split('/').slice(1))] : [];
  const joined = ['allOf', 'anyOf', 'oneOf'].flatMap((name) => {
    const all = memberAt(node, name);
    return Array.isArray(all) ? all : [];
  });
  return [node, ...[...referred, ...joined].flatMap(partsOf)];
}

function below(node: unknown, name: string): unknown {
  const parts = partsOf(node);
  const own = parts.map((part) => memberAt(part, 'properties', name)).find((found) => found !== undefined);
  if (own !== undefined) return own;
  // Kubernetes objects and maps with free names: the chart's schema does not define their members.
  const isOpen =
    parts.every((part) => memberAt(part, 'additionalProperties') !== false) &&
    parts.some((part) => memberAt(part, 'type') === 'object');
  return isOpen && parts.every((part) => memberAt(part, 'properties') === undefined) ? {} : undefined;
}

/** First names of value paths, such as `verifier`. */
const TOP_VALUES: readonly string[] = Object.keys(Object(memberAt(schema, 'properties')));

/** @param path such as `verifier.tls.mode`; `[0]` after a name selects an element */
export function faultOfValuePath(path: string): string | undefined {
  let node: unknown = schema;
  for (const name of path.replace(/\[\d+\]/g, '').split('.')) {
    node = below(node, name);
    if (node === undefined) return `the chart has no value ${path}`;
  }
  return undefined;
}

/** Matches `verifier.tls.mode`, but not `control.sqlite`, which is a file. */
const VALUE_PATH = new RegExp(
  `(?<![\\w./:@-])(?:${TOP_VALUES.join('|')})(?:\\.[a-z][A-Za-z]*)+(?:\\[\\d+\\])?(?![\\w/-]|\\.[a-z])`,
  'g',
);
/** File extensions that look like value names. */
export const FILES = /\.(?:yaml|ts|json|jsonl|jws|sqlite|sock|pem|crt|key|md|example)$/;

export function valuePathsIn(text: string): readonly string[] {
  return (text.match(VALUE_PATH) ?? []).filter((path) => !FILES.test(path));
}

/** A sentence about one component may omit its name: `tls.clientCa`. */
export function isValue(path: string): boolean {
  return ['', 'verifier.', 'proxy.', 'control.'].some(
    (piece) => faultOfValuePath(piece + path) === undefined,
  );
}
