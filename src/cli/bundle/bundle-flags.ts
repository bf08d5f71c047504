/** Flags that the `bundle` commands share, and reading the keys that they name. */
import type { Signers } from '../../bundle/format/documents.ts';
import {
  integer,
  list,
  requiredList,
  type SettingValues,
  text,
  withDefault,
} from '../../process/settings/settings.ts';
import type { PublicKey } from '../../protocol/public-key.ts';
import type { SigningKey } from '../../protocol/signing.ts';

export const SIGNING_KEYS = {
  keys: requiredList(text('--key <file>', 'private key to sign with')),
};

const TRUSTED_KEYS = {
  bundleKeys: list(text('--bundle-key <file>', 'public key (JWK or PEM) that may have signed the bundle')),
};

export const TRUSTED_SIGNERS = {
  ...TRUSTED_KEYS,
  bundleThreshold: withDefault(
    integer('--bundle-threshold <count>', 'number of bundle keys that must have signed', { min: 1, max: 16 }),
    '1',
  ),
};

export async function readSigningKeys(files: readonly string[]): Promise<readonly SigningKey[]> {
  const { readSigningKeyFile } = await import('../../process/files/key-files.ts');
  return Promise.all(files.map((file) => readSigningKeyFile(file)));
}

export async function readBundleKeys(files: readonly string[]): Promise<readonly PublicKey[]> {
  const { readPublicKeyFile } = await import('../../process/files/public-key-file.ts');
  return Promise.all(files.map((file) => readPublicKeyFile(file)));
}

/** Undefined when no key was given. */
export async function readTrustedSigners(
  settings: SettingValues<typeof TRUSTED_SIGNERS>,
): Promise<Signers | undefined> {
  if (settings.bundleKeys.length === 0) return undefined;
  return { keys: await readBundleKeys(settings.bundleKeys), threshold: settings.bundleThreshold };
}
