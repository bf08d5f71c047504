/**
 * Parses YAML 1.2 (core schema), limited to what JSON can express. It rejects duplicate members, aliases (small files
 * that expand to huge ones), tags, and names that are not strings, so that the file says only what a reader sees. Every
 * YAML input is parsed here.
 */
import { isAlias, isMap, isNode, isScalar, parseDocument, visit } from 'yaml';
import { yamlFaultText } from './yaml-faults.ts';

/** Thrown for an invalid document; the message is one line that names line and column, and what to do. */
export class StrictYamlError extends Error {
  override readonly name = 'StrictYamlError';
}

/** Returns plain objects, arrays and scalars; null for a text without content. @throws StrictYamlError */
export function parseStrictYaml(text: string): unknown {
  const document = parseDocument(text, {
    version: '1.2',
    schema: 'core',
    strict: true,
    // The library compares each key with each other: 100,000 keys take a minute and a half. The check below is linear.
    uniqueKeys: false,
    merge: false,
    prettyErrors: false,
  });
  const problem = document.errors[0] ?? document.warnings[0];
  const fault =
    problem === undefined
      ? findBeyondJson(document)
      : { text: yamlFaultText(problem.code), offset: problem.pos[0] };
  if (fault !== undefined) throw new StrictYamlError(`${placeOf(text, fault.offset)}: ${fault.text}`);
  return document.toJS({ maxAliasCount: 0 });
}

/** Both count from 1, as editors do. */
function placeOf(text: string, offset: number): string {
  const lines = text.slice(0, offset).split('\n');
  return `line ${lines.length}, column ${(lines.at(-1) ?? '').length + 1}`;
}

interface YamlFault {
  readonly text: string;
  /** In characters, from the start of the text. */
  readonly offset: number;
}

function findBeyondJson(document: ReturnType<typeof parseDocument>): YamlFault | undefined {
  let found: YamlFault | undefined;
  visit(document, (_key, node) => {
    // A pair of key and value has no position of its own.
    const offset = isNode(node) ? (node.range?.[0] ?? 0) : 0;
    const text = beyondJson(node);
    found = text === undefined ? findRepeatedMember(node) : { text, offset };
    return found === undefined ? undefined : visit.BREAK;
  });
  return found;
}

/** Checks a mapping whose keys are strings. Differently quoted keys with the same text are the same member. */
function findRepeatedMember(node: unknown): YamlFault | undefined {
  if (!isMap(node)) return undefined;
  const names = new Set<unknown>();
  for (const { key } of node.items) {
    if (!isScalar(key)) continue;
    if (names.has(key.value)) {
      return { text: yamlFaultText('DUPLICATE_KEY'), offset: key.range?.[0] ?? 0 };
    }
    names.add(key.value);
  }
  return undefined;
}

function beyondJson(node: unknown): string | undefined {
  if (isAlias(node)) return 'aliases are not supported: write the value out';
  if (isNode(node) && node.tag !== undefined) return yamlFaultText('TAG_RESOLVE_FAILED');
  if (isMap(node) && !node.items.every(({ key }) => isScalar(key) && typeof key.value === 'string')) {
    return 'names of members must be strings: quote them';
  }
  return undefined;
}
