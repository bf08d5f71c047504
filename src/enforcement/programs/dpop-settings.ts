/** Settings of enforcement points that accept DPoP proofs. Source: docs/design/protocol.md "DPoP". */
import { MAX_MAC_KEYS, type MacKeys, parseMacKeys } from '../../process/files/mac-keys.ts';
import { readMountedSecret } from '../../process/files/secret-files.ts';
import { usageError } from '../../process/program/errors.ts';
import { optional, type SettingValues, text } from '../../process/settings/settings.ts';

export const DPOP_SETTINGS = {
  dpopNonceKeyFile: optional(
    text(
      '--dpop-nonce-key-file <file>',
      'key of the nonces for DPoP, the same for every replica; default: a random one, for a single process',
    ),
  ),
};

/** @throws CliError `dpop_nonce_key_invalid`, or as `readMountedSecret` */
export async function readDpopNonceKeys({
  dpopNonceKeyFile: path,
}: Partial<SettingValues<typeof DPOP_SETTINGS>>): Promise<MacKeys | undefined> {
  if (path === undefined) return undefined;
  const keys = parseMacKeys(await readMountedSecret(path));
  if (keys !== undefined) return keys;
  throw usageError(
    'dpop_nonce_key_invalid',
    `${path} must have 1 to ${MAX_MAC_KEYS} lines of at least 43 characters of base64: openssl rand -base64 32`,
  );
}
