/** Reads a file of signing profiles that an operator wrote. */

import { readInputText } from '../../process/files/input-files.ts';
import type { SigningProfiles } from '../../protocol/signing-profile.ts';
import { parseSigningProfiles } from '../../protocol/signing-profile-file.ts';

const MAX_PROFILE_BYTES = 4 * 1024 * 1024;

/** @throws CliError, ClientError `profile_invalid` */
export async function readProfileFile(file: string): Promise<SigningProfiles> {
  return parseSigningProfiles(await readInputText(file, MAX_PROFILE_BYTES), file);
}
