/**
 * Reads the challenge key, which all replicas share. A second line contains the previous key, which still verifies
 * challenges, so that replicas may load a new file at different times.
 * Source: docs/operate/broker.md "Challenges".
 */

import { readMountedSecret } from '../../process/files/secret-files.ts';
import { usageError } from '../../process/program/errors.ts';

/** 32 random bytes in base64 have 44 characters, in base64url 43, in hex 64. The text itself is the MAC's key. */
const KEY_LINE = /^[A-Za-z0-9+/_=-]{43,1024}$/;
const MAX_LINES = 8;

/** @throws CliError `challenge_key_invalid`, or as `readMountedSecret` */
export async function readChallengeKeys(path: string): Promise<readonly [Uint8Array, ...Uint8Array[]]> {
  const lines = (await readMountedSecret(path)).split(/\r?\n/);
  const [first, ...others] = lines.map((line) => Buffer.from(line, 'latin1'));
  if (first !== undefined && lines.length <= MAX_LINES && lines.every((line) => KEY_LINE.test(line))) {
    return [first, ...others];
  }
  throw usageError(
    'challenge_key_invalid',
    `${path} must have 1 to ${MAX_LINES} lines of at least 43 characters of base64: openssl rand -base64 32`,
  );
}
