/**
 * Bundles as people write them: YAML 1.2 (core schema), held to what JSON can say. No member twice, no aliases (small
 * files that unfold to huge ones), no tags.
 */
import { isAlias, isMap, isNode, isScalar, parseDocument, visit } from 'yaml';
import { isJsonObject, type JsonObject } from '../protocol/strict-json.ts';
import { bundleError } from './errors.ts';

const MAX_YAML_CHARACTERS = 64 * 1024 * 1024;

/**
 * @param file name of the file, for errors, which name a line too
 * @throws BundleError `yaml_invalid`
 */
export function readBundleYaml(yamlText: string, file: string): JsonObject {
  if (yamlText.length > MAX_YAML_CHARACTERS) {
    throw bundleError('file_too_large', file, '', `more than ${MAX_YAML_CHARACTERS} characters`);
  }
  const document = parseDocument(yamlText, {
    version: '1.2',
    schema: 'core',
    strict: true,
    uniqueKeys: true,
    merge: false,
    prettyErrors: true,
  });
  const problem = document.errors[0] ?? document.warnings[0];
  if (problem !== undefined) {
    // The first line says what and where; the ones after it quote the file.
    throw bundleError('yaml_invalid', file, '', problem.message.split('\n')[0] ?? 'not YAML');
  }
  const beyondJson = findBeyondJson(document);
  if (beyondJson !== undefined) {
    const line = yamlText.slice(0, beyondJson.offset).split('\n').length;
    throw bundleError('yaml_invalid', file, '', `line ${line}: ${beyondJson.text}`);
  }
  const value: unknown = document.toJS({ maxAliasCount: 0 });
  if (!isJsonObject(value)) throw bundleError('yaml_invalid', file, '', 'not a mapping');
  return value;
}

interface BeyondJson {
  readonly text: string;
  /** In characters, from the beginning of the file. */
  readonly offset: number;
}

function findBeyondJson(document: ReturnType<typeof parseDocument>): BeyondJson | undefined {
  let found: BeyondJson | undefined;
  visit(document, (_key, node) => {
    const text = beyondJson(node);
    if (text === undefined) return undefined;
    // A key and its value come as a pair, which has no place of its own.
    found = { text, offset: isNode(node) ? (node.range?.[0] ?? 0) : 0 };
    return visit.BREAK;
  });
  return found;
}

function beyondJson(node: unknown): string | undefined {
  if (isAlias(node)) return 'aliases are not taken';
  if (isNode(node) && node.tag !== undefined) return 'tags are not taken';
  if (isMap(node) && !node.items.every(({ key }) => isScalar(key) && typeof key.value === 'string')) {
    return 'names of members must be strings';
  }
  return undefined;
}
