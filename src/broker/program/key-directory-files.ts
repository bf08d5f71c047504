/**
 * Reads the broker's key directory: `DIR/<trust domain>/<key ID>.pem`, and `current` beside the keys. Names that begin
 * with `.` are ignored, as Kubernetes keeps the files of a mounted Secret in `..data`.
 * Source: docs/operate/broker.md "Signing keys".
 */
import { type Dirent, statSync } from 'node:fs';
import { readdir } from 'node:fs/promises';
import { join } from 'node:path';
import { fileFingerprint } from '../../process/files/file-fingerprint.ts';
import { readInputText } from '../../process/files/input-files.ts';
import { readMountedSecret } from '../../process/files/secret-files.ts';
import { type CliError, systemErrorCode, usageError } from '../../process/program/errors.ts';
import { parseSigningKey, type SigningKey, SigningKeyError } from '../../protocol/signing.ts';
import type { SigningKeys } from '../broker-ports.ts';
import {
  isKeyDirectoryTrustDomain,
  isKeyFileId,
  KeyDirectoryError,
  signingKeysOf,
  type TrustDomainKeys,
} from '../key-directory.ts';

export const CURRENT_FILE = 'current';
const KEY_SUFFIX = '.pem';
const MAX_CURRENT_BYTES = 1024;

export interface KeyDirectoryOptions {
  readonly directory: string;
  /** Trust domains to serve; empty: every one that has a directory. */
  readonly trustDomains: readonly string[];
}

/** @throws CliError `key_dir_unusable`, a code of {@link KeyDirectoryError}, `private_key_invalid`, or as `readMountedSecret` */
export async function readKeyDirectory(options: KeyDirectoryOptions): Promise<SigningKeys> {
  const trustDomains = await trustDomainsOf(options);
  const domains = await Promise.all(
    trustDomains.map((trustDomain) => readTrustDomain(options.directory, trustDomain)),
  );
  try {
    return signingKeysOf(domains);
  } catch (error) {
    throw error instanceof KeyDirectoryError ? usageError(error.code, `--key-dir: ${error.message}`) : error;
  }
}

async function trustDomainsOf({ directory, trustDomains }: KeyDirectoryOptions): Promise<readonly string[]> {
  const found = await directoriesIn(directory);
  const wanted = trustDomains.length > 0 ? [...new Set(trustDomains)] : found;
  const odd = wanted.find((name) => !isKeyDirectoryTrustDomain(name));
  if (odd !== undefined) {
    throw usageError(
      'trust_domain_invalid',
      `${odd} is not a trust domain: 1 to 255 of a-z 0-9 . _ -, beginning with no dot`,
    );
  }
  const missing = wanted.find((name) => !found.includes(name));
  if (missing !== undefined || wanted.length === 0) throw keysMissing(directory, missing);
  return wanted;
}

function keysMissing(directory: string, trustDomain: string | undefined): CliError {
  return usageError(
    'broker_keys_missing',
    `${trustDomain === undefined ? `${directory} has no signing key` : `no signing key for ${trustDomain}`}: make one with proofgate broker rotate-key --key-dir ${directory} --trust-domain ${trustDomain ?? '<your trust domain>'}`,
  );
}

/** @throws CliError `key_dir_unusable` */
async function directoriesIn(directory: string): Promise<readonly string[]> {
  const entries = await entriesOf(directory);
  return entries.filter((entry) => isDirectory(directory, entry)).map(({ name }) => name);
}

async function entriesOf(directory: string): Promise<readonly Dirent[]> {
  try {
    const entries = await readdir(directory, { withFileTypes: true });
    return entries.filter(({ name }) => !name.startsWith('.')).sort((a, b) => (a.name < b.name ? -1 : 1));
  } catch (error) {
    throw usageError(
      'key_dir_unusable',
      `--key-dir: ${directory} cannot be read (${systemErrorCode(error) ?? 'error'})`,
    );
  }
}

/** Follows symbolic links. */
function isDirectory(parent: string, entry: Dirent): boolean {
  if (!entry.isSymbolicLink()) return entry.isDirectory();
  return statSync(join(parent, entry.name), { throwIfNoEntry: false })?.isDirectory() ?? false;
}

/** @throws CliError as {@link readKeyDirectory} */
export async function readTrustDomain(directory: string, trustDomain: string): Promise<TrustDomainKeys> {
  const folder = join(directory, trustDomain);
  const names = (await entriesOf(folder)).map(({ name }) => name);
  const keyIds = names
    .filter((name) => name.endsWith(KEY_SUFFIX))
    .map((name) => name.slice(0, -KEY_SUFFIX.length));
  const keys = await Promise.all(
    keyIds.map(async (keyId) => ({ keyId, key: await readKey(keyFileOf(directory, trustDomain, keyId)) })),
  );
  const current = names.includes(CURRENT_FILE) ? await readCurrent(join(folder, CURRENT_FILE)) : undefined;
  return { trustDomain, keys, current };
}

export function keyFileOf(directory: string, trustDomain: string, keyId: string): string {
  return join(directory, trustDomain, `${keyId}${KEY_SUFFIX}`);
}

async function readKey(path: string): Promise<SigningKey> {
  const pem = await readMountedSecret(path);
  try {
    return parseSigningKey(pem);
  } catch (error) {
    throw error instanceof SigningKeyError
      ? usageError('private_key_invalid', `${path}: ${error.message}`)
      : error;
  }
}

async function readCurrent(path: string): Promise<string> {
  const keyId = (await readInputText(path, MAX_CURRENT_BYTES)).trim();
  if (isKeyFileId(keyId)) return keyId;
  throw usageError('current_key_unknown', `${path} must contain one key ID`);
}

/** Changes when a file is added, removed, replaced or written. It covers names and the targets of links. */
export async function keyDirectoryFingerprint({
  directory,
  trustDomains,
}: KeyDirectoryOptions): Promise<string> {
  const folders = trustDomains.length > 0 ? trustDomains : await directoriesIn(directory);
  const paths = await Promise.all(
    folders.map(async (folder) => {
      const entries = await entriesOf(join(directory, folder));
      return entries.map(({ name }) => join(directory, folder, name));
    }),
  );
  return `${paths.flat().join('\n')}\n${await fileFingerprint(...paths.flat())}`;
}
