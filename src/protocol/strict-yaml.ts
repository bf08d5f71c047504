/**
 * Parses YAML 1.2 (core schema), limited to what JSON can express. It rejects duplicate members, aliases (small files
 * that expand to huge ones), tags, and names that are not strings, so that the file says only what a reader sees. Every
 * YAML input is parsed here.
 */
import { isAlias, isMap, isNode, isScalar, Lexer, parseDocument, visit } from 'yaml';
import { yamlFaultText } from './yaml-faults.ts';

/** Thrown for an invalid document; the message is one line that names line and column, and what to do. */
export class StrictYamlError extends Error {
  override readonly name = 'StrictYamlError';
}

export interface YamlOptions {
  /** Names of members may also be numbers and booleans, such as the status `200` in OpenAPI; they become strings. */
  readonly scalarNames?: boolean;
  /** Maximum number of the lexer's tokens: the parser needs about 0.5 KB of memory for each. */
  readonly maxTokens?: number;
}

/** Returns plain objects, arrays and scalars; null for a text without content. @throws StrictYamlError */
export function parseStrictYaml(text: string, options: YamlOptions = {}): unknown {
  if (options.maxTokens !== undefined) checkTokens(text, options.maxTokens);
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
      ? findBeyondJson(document, options.scalarNames ?? false)
      : { text: yamlFaultText(problem.code), offset: problem.pos[0] };
  if (fault !== undefined) throw new StrictYamlError(`${placeOf(text, fault.offset)}: ${fault.text}`);
  return document.toJS({ maxAliasCount: 0 });
}

const MAX_FLOW_DEPTH = 200;

/** Checks brackets too: the parser keeps an error for each one without a partner, and all that is open. */
function checkTokens(text: string, maxTokens: number): void {
  let count = 0;
  let depth = 0;
  for (const token of new Lexer().lex(text)) {
    if (token === '[' || token === '{') depth++;
    if (token === ']' || token === '}') depth--;
    if (depth > MAX_FLOW_DEPTH) throw new StrictYamlError(yamlFaultText('RESOURCE_EXHAUSTION'));
    if (depth < 0) throw new StrictYamlError(yamlFaultText('UNEXPECTED_TOKEN'));
    if (++count > maxTokens) throw new StrictYamlError('too many values: convert the file to JSON');
  }
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

function findBeyondJson(
  document: ReturnType<typeof parseDocument>,
  scalarNames: boolean,
): YamlFault | undefined {
  let found: YamlFault | undefined;
  visit(document, (_key, node) => {
    // A pair of key and value has no position of its own.
    const offset = isNode(node) ? (node.range?.[0] ?? 0) : 0;
    const text = beyondJson(node, scalarNames);
    found = text === undefined ? findRepeatedMember(node) : { text, offset };
    return found === undefined ? undefined : visit.BREAK;
  });
  return found;
}

/** Checks a mapping whose keys are strings. Differently quoted keys with the same text are the same member. */
function findRepeatedMember(node: unknown): YamlFault | undefined {
  if (!isMap(node)) return undefined;
  const names = new Set<string>();
  for (const { key } of node.items) {
    if (!isScalar(key)) continue;
    const name = String(key.value);
    if (names.has(name)) {
      return { text: yamlFaultText('DUPLICATE_KEY'), offset: key.range?.[0] ?? 0 };
    }
    names.add(name);
  }
  return undefined;
}

function beyondJson(node: unknown, scalarNames: boolean): string | undefined {
  if (isAlias(node)) return 'aliases are not supported: write the value out';
  if (isNode(node) && node.tag !== undefined) return yamlFaultText('TAG_RESOLVE_FAILED');
  if (isMap(node) && !node.items.every(({ key }) => isScalar(key) && isName(key.value, scalarNames))) {
    return 'names of members must be strings: quote them';
  }
  return undefined;
}

function isName(value: unknown, scalarNames: boolean): boolean {
  return (
    typeof value === 'string' || (scalarNames && (typeof value === 'number' || typeof value === 'boolean'))
  );
}
