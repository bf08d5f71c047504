/**
 * Reads the challenge key, which all replicas share. A second line contains the previous key, which still verifies
 * challenges, so that replicas may load a new file at different times.
 * Source: docs/operate/broker.md "Challenges".
 */

import { MAX_MAC_KEYS, type MacKeys, parseMacKeys } from '../../process/files/mac-keys.ts';
import { readMountedSecret } from '../../process/files/secret-files.ts';
import { usageError } from '../../process/program/errors.ts';

/** @throws CliError `challenge_key_invalid`, or as `readMountedSecret` */
export async function readChallengeKeys(path: string): Promise<MacKeys> {
  const keys = parseMacKeys(await readMountedSecret(path));
  if (keys !== undefined) return keys;
  throw usageError(
    'challenge_key_invalid',
    `${path} must have 1 to ${MAX_MAC_KEYS} lines of at least 43 characters of base64: openssl rand -base64 32`,
  );
}
