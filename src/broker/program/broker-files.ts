/** Opens the files of a broker that are reloaded: signing keys, challenge keys, software keys, deny list, profiles. */
import { randomBytes } from 'node:crypto';
import type { ReadinessCheck } from '../../process/admin/admin-server.ts';
import { fileFingerprint } from '../../process/files/file-fingerprint.ts';
import { readInputText } from '../../process/files/input-files.ts';
import { usageError } from '../../process/program/errors.ts';
import type { Logger } from '../../process/telemetry/log.ts';
import { BrokerFileError } from '../broker-files.ts';
import type { BrokerPorts, SigningKeys, SoftwareKeys } from '../broker-ports.ts';
import { parseDenyList } from '../deny-list.ts';
import { parseSoftwareKeys } from '../software-keys.ts';
import type { BrokerProcessSettings } from './broker-settings.ts';
import { readChallengeKeys } from './challenge-key-file.ts';
import { type Followed, fixed, follow } from './followed-file.ts';
import { keyDirectoryFingerprint, readKeyDirectory } from './key-directory-files.ts';
import { directoryFingerprint, readProfileDirectory } from './profile-directory.ts';

/** Enough for 100,000 entries with the longest subjects. */
const MAX_LIST_BYTES = 64 * 1024 * 1024;

export type FilePorts = Pick<
  BrokerPorts,
  'challengeKeys' | 'denyList' | 'signingKeys' | 'signingProfiles' | 'softwareKeys'
>;

export interface BrokerFiles {
  readonly ports: FilePorts;
  checks(): readonly ReadinessCheck[];
  close(): void;
}

export interface FileObserver {
  readonly logger: Logger;
  readonly onReload: (file: string, outcome: 'succeeded' | 'failed') => void;
}

/** Opens several followed files; closes those that are open when one fails. */
export class FollowedFiles {
  readonly #observer: FileObserver;
  readonly #open: Followed<unknown>[] = [];

  constructor(observer: FileObserver) {
    this.#observer = observer;
  }

  async follow<T>(
    name: string,
    fingerprint: () => Promise<string>,
    read: () => Promise<T>,
  ): Promise<Followed<T>> {
    const { logger, onReload } = this.#observer;
    try {
      const followed = await follow({
        name,
        fingerprint,
        read,
        logger,
        onReload: (outcome) => onReload(name, outcome),
      });
      this.#open.push(followed);
      return followed;
    } catch (error) {
      this.close();
      throw error;
    }
  }

  checks(): readonly ReadinessCheck[] {
    return this.#open.map((followed) => followed.check());
  }

  close(): void {
    for (const followed of this.#open.splice(0)) followed.close();
  }
}

/** @throws CliError */
export async function openBrokerFiles(
  settings: BrokerProcessSettings,
  observer: FileObserver,
): Promise<BrokerFiles> {
  const files = new FollowedFiles(observer);
  const keyDirectory = { directory: settings.keyDir, trustDomains: settings.trustDomains };
  const keys = await files.follow(
    'key_dir',
    () => keyDirectoryFingerprint(keyDirectory),
    () => readKeyDirectory(keyDirectory),
  );
  const challengeKeys = await followFile(
    files,
    'challenge_key',
    settings.challengeKeyFile,
    readChallengeKeys,
    [randomBytes(32)],
  );
  const softwareKeys = await followFile(
    files,
    'software_keys',
    settings.softwareKeys,
    (path) => readList(path, 'software_keys_invalid', parseSoftwareKeys),
    parseSoftwareKeys('keys: []'),
  );
  const denyList = await followFile(
    files,
    'deny_file',
    settings.denyFile,
    (path) => readList(path, 'deny_file_invalid', parseDenyList),
    parseDenyList('{}'),
  );
  const profiles = await followProfiles(files, settings.profiles);
  return {
    // Each call uses the current content.
    ports: {
      signingKeys: {
        current: (trustDomain) => keys.value.current(trustDomain),
        published: () => keys.value.published(),
        trustDomains: () => keys.value.trustDomains(),
      },
      challengeKeys: () => challengeKeys.value,
      softwareKeys: {
        get trustDomains() {
          return softwareKeys.value.trustDomains;
        },
        find: (thumbprint) => softwareKeys.value.find(thumbprint),
      },
      denyList: {
        deniesSubject: (subject) => denyList.value.deniesSubject(subject),
        deniesThumbprint: (thumbprint) => denyList.value.deniesThumbprint(thumbprint),
      },
      signingProfiles: {
        fitting: (issuer, trustDomain, subject) => profiles.value.fitting(issuer, trustDomain, subject),
      },
    },
    checks: () => [...files.checks(), unservedCheck(softwareKeys.value, keys.value)],
    close: () => files.close(),
  };
}

/** A registered key that can never get a passport is a mistake in one of the two files. */
function unservedCheck({ trustDomains }: SoftwareKeys, signingKeys: SigningKeys): ReadinessCheck {
  const served = new Set(signingKeys.trustDomains());
  const unserved = [...trustDomains].filter((trustDomain) => !served.has(trustDomain)).slice(0, 5);
  const warning =
    unserved.length === 0
      ? undefined
      : `software keys of ${unserved.join(', ')} get no passport: there is no signing key of the trust domain; make one with proofgate broker rotate-key`;
  return { name: 'software_key_domains', problem: undefined, warning };
}

function followProfiles(files: FollowedFiles, directory: string | undefined) {
  if (directory === undefined) return fixed('profiles', { fitting: () => [] });
  return files.follow(
    'profiles',
    () => directoryFingerprint(directory),
    () => readProfileDirectory(directory),
  );
}

async function followFile<T>(
  files: FollowedFiles,
  name: string,
  path: string | undefined,
  read: (path: string) => Promise<T>,
  withoutFile: T,
): Promise<Followed<T>> {
  if (path === undefined) return fixed(name, withoutFile);
  return files.follow(
    name,
    () => fileFingerprint(path),
    () => read(path),
  );
}

/** @throws CliError `software_keys_invalid`, `deny_file_invalid`, or as `readInputText` */
async function readList<T>(
  path: string,
  code: 'software_keys_invalid' | 'deny_file_invalid',
  parse: (text: string) => T,
): Promise<T> {
  const text = await readInputText(path, MAX_LIST_BYTES);
  try {
    return parse(text);
  } catch (error) {
    if (!(error instanceof BrokerFileError)) throw error;
    // Each file has its own code, so that a log line identifies the file.
    if (code === 'deny_file_invalid') throw usageError('deny_file_invalid', `${path}: ${error.message}`);
    throw usageError('software_keys_invalid', `${path}: ${error.message}`);
  }
}
