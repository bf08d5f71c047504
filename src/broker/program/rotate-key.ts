/**
 * `proofgate broker rotate-key`: creates the next key, puts it into use, or removes an old key. Each step is a separate
 * command, because sites pin the next key before its first use.
 * Source: docs/operate/broker.md "Signing keys".
 */
import { mkdir } from 'node:fs/promises';
import { join } from 'node:path';
import { syncDirectory } from '../../process/files/durable-files.ts';
import { removeFile, replaceFile, writeNewFile } from '../../process/files/output-files.ts';
import { systemErrorCode, usageError } from '../../process/program/errors.ts';
import type { SignatureAlgorithm } from '../../protocol/public-key.ts';
import { generateSigningKey } from '../../protocol/signing.ts';
import { isKeyDirectoryTrustDomain, type TrustDomainKeys } from '../key-directory.ts';
import { CURRENT_FILE, keyFileOf, readTrustDomain } from './key-directory-files.ts';
import type { RotateKeySettings } from './rotate-key-settings.ts';

export interface RotatedKey {
  readonly step: 'created' | 'activated' | 'removed';
  readonly keyId: string;
  /** RFC 7638 thumbprint. */
  readonly thumbprint: string;
  readonly algorithm: SignatureAlgorithm;
  /** Whether the broker signs with this key. */
  readonly isCurrent: boolean;
}

/** @throws CliError */
export async function rotateKey(settings: RotateKeySettings): Promise<RotatedKey> {
  const { activate, keyDir, remove, trustDomain } = settings;
  if (activate !== undefined && remove !== undefined) {
    throw usageError('rotate_one_step', 'give --activate or --remove, not both');
  }
  if (!isKeyDirectoryTrustDomain(trustDomain)) {
    throw usageError(
      'trust_domain_invalid',
      `${trustDomain} is not a trust domain: 1 to 255 of a-z 0-9 . _ -, beginning with no dot`,
    );
  }
  if (activate === undefined && remove === undefined) await makeDirectory(join(keyDir, trustDomain));
  const domain = await readTrustDomain(keyDir, trustDomain);
  if (activate !== undefined) return activateKey(keyDir, domain, activate);
  if (remove !== undefined) return removeKey(keyDir, domain, remove);
  return createKey(keyDir, domain, settings.algorithm);
}

/** The key directory itself must exist: a volume that is not mounted must not look like an empty directory. */
async function makeDirectory(path: string): Promise<void> {
  try {
    await mkdir(path, { mode: 0o700 });
    await syncDirectory(join(path, '..'));
  } catch (error) {
    const code = systemErrorCode(error);
    if (code === 'EEXIST') return;
    const hint = code === 'ENOENT' ? ': make the directory of --key-dir first, with mode 0700' : '';
    throw usageError('key_dir_unusable', `${path} cannot be created (${code ?? 'error'})${hint}`);
  }
}

/**
 * The first key is in use at once. `current` is written before a second key, so that the directory never has two keys
 * of which none is in use.
 */
async function createKey(
  directory: string,
  domain: TrustDomainKeys,
  algorithm: SignatureAlgorithm,
): Promise<RotatedKey> {
  const { trustDomain, keys } = domain;
  const [first] = keys;
  if (first !== undefined && domain.current === undefined) {
    if (keys.length > 1) throw severalKeys(trustDomain);
    await writeCurrent(directory, trustDomain, first.keyId);
  }
  const key = generateSigningKey(algorithm);
  const { thumbprint } = key.publicKey;
  // A thumbprint is unique without coordination. With the prefix it does not begin with `-` like a flag.
  const keyId = `bk_${thumbprint}`;
  const content = key.privateKey.export({ type: 'pkcs8', format: 'pem' }).toString();
  await writeNewFile({ path: keyFileOf(directory, trustDomain, keyId), content, mode: 0o600 });
  const isCurrent = first === undefined;
  if (isCurrent) await writeCurrent(directory, trustDomain, keyId);
  return { step: 'created', keyId, thumbprint, algorithm, isCurrent };
}

async function activateKey(directory: string, domain: TrustDomainKeys, keyId: string): Promise<RotatedKey> {
  const found = keyOf(domain, keyId);
  await writeCurrent(directory, domain.trustDomain, keyId);
  return { step: 'activated', keyId, ...found, isCurrent: true };
}

async function removeKey(directory: string, domain: TrustDomainKeys, keyId: string): Promise<RotatedKey> {
  const { current, keys, trustDomain } = domain;
  const found = keyOf(domain, keyId);
  if (current === undefined && keys.length > 1) throw severalKeys(trustDomain);
  if ((current ?? keyId) === keyId) {
    throw usageError('key_in_use', `${trustDomain} signs with ${keyId}: activate another key first`);
  }
  await removeFile(keyFileOf(directory, trustDomain, keyId));
  await syncDirectory(join(directory, trustDomain));
  return { step: 'removed', keyId, ...found, isCurrent: false };
}

function keyOf({ keys, trustDomain }: TrustDomainKeys, keyId: string) {
  const found = keys.find((one) => one.keyId === keyId);
  if (found !== undefined) {
    const { algorithm, thumbprint } = found.key.publicKey;
    return { algorithm, thumbprint };
  }
  const known = keys.map((one) => one.keyId).join(', ');
  throw usageError(
    'key_id_unknown',
    `${trustDomain} has no key ${keyId}; ${known === '' ? 'it has none' : `it has ${known}`}`,
  );
}

function severalKeys(trustDomain: string) {
  return usageError(
    'current_key_missing',
    `${trustDomain} has several keys and no file "current": name the one in use with --activate`,
  );
}

async function writeCurrent(directory: string, trustDomain: string, keyId: string): Promise<void> {
  await replaceFile({ path: join(directory, trustDomain, CURRENT_FILE), content: `${keyId}\n`, mode: 0o644 });
}
