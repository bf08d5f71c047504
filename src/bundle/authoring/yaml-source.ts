/** Parses a bundle that an author wrote in YAML. */
import { isJsonObject, type JsonObject } from '../../protocol/strict-json.ts';
import { parseStrictYaml, StrictYamlError } from '../../protocol/strict-yaml.ts';
import { bundleError } from '../format/bundle-error.ts';

const MAX_YAML_CHARACTERS = 64 * 1024 * 1024;

/**
 * @param file name of the file, for errors, which also name a line
 * @throws BundleError `yaml_invalid`, `file_too_large`
 */
export function readBundleYaml(yamlText: string, file: string): JsonObject {
  if (yamlText.length > MAX_YAML_CHARACTERS) {
    throw bundleError('file_too_large', file, '', `more than ${MAX_YAML_CHARACTERS} characters`);
  }
  const value = parse(yamlText, file);
  if (!isJsonObject(value)) throw bundleError('yaml_invalid', file, '', 'not a mapping');
  return value;
}

function parse(yamlText: string, file: string): unknown {
  try {
    return parseStrictYaml(yamlText);
  } catch (error) {
    throw error instanceof StrictYamlError ? bundleError('yaml_invalid', file, '', error.message) : error;
  }
}
