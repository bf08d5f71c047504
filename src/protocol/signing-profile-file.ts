/** Parses the text of a signing profile file, YAML or JSON. Source: docs/operate/cli.md "Signing profiles". */

import { ClientError } from './client-error.ts';
import { readSigningProfiles, type SigningProfiles } from './signing-profile.ts';
import { parseStrictYaml, StrictYamlError } from './strict-yaml.ts';

/**
 * @param fileName for error messages
 * @throws ClientError `profile_invalid`, naming file and line or place
 */
export function parseSigningProfiles(text: string, fileName: string): SigningProfiles {
  return readSigningProfiles(parseProfileYaml(text, fileName), fileName);
}

/** The document, not validated. @throws ClientError `profile_invalid`, naming file, line and column */
export function parseProfileYaml(text: string, fileName: string): unknown {
  try {
    return parseStrictYaml(text);
  } catch (error) {
    if (error instanceof StrictYamlError) {
      throw new ClientError('profile_invalid', `${fileName}: ${error.message}`);
    }
    throw error;
  }
}
