/** Reads and writes the enrollment state file beside a key. Source: docs/operate/cli.md "The state file". */

import { readlink } from 'node:fs/promises';
import { basename, dirname, join } from 'node:path';
import { readInputBytes } from '../../process/files/input-files.ts';
import { readSigningKeyFile } from '../../process/files/key-files.ts';
import { replaceFile } from '../../process/files/output-files.ts';
import { CliError, usageError } from '../../process/program/errors.ts';
import type { SigningKey } from '../../protocol/signing.ts';
import { ownState } from './enrolled-profiles.ts';
import type { EnrollmentState, EnrollmentStates } from './enrollment-state.ts';
import { formatEnrollmentState, parseEnrollmentState } from './state-format.ts';

/** Large enough for the profiles of a large site. */
const MAX_STATE_BYTES = 8 * 1024 * 1024;

export function statePathOf(keyFile: string): string {
  return `${keyFile}.enrollment.json`;
}

export class EnrollmentStateFile implements EnrollmentStates {
  readonly #keyFile: string;
  readonly #path: string;

  constructor(keyFile: string) {
    this.#keyFile = keyFile;
    this.#path = statePathOf(keyFile);
  }

  /**
   * The state contains no secret, but a signer relies on it, so only the owner may have access.
   * @throws CliError as `readInputBytes`; EnrollError `enrollment_state_invalid`
   */
  async load(): Promise<EnrollmentState | undefined> {
    try {
      const bytes = await readInputBytes(this.#path, { maxBytes: MAX_STATE_BYTES, secret: true });
      return parseEnrollmentState(bytes.toString('utf8'), this.#path);
    } catch (error) {
      if (error instanceof CliError && error.code === 'file_not_found') return undefined;
      throw error;
    }
  }

  /** @throws CliError `key_kept_by_agent`, or as `replaceFile` */
  async save(state: EnrollmentState): Promise<void> {
    // The agent replaces the pair of key and state as a whole. A state written through its link would be lost or would
    // not match the key.
    if ((await settledKeyFile(this.#keyFile)) !== this.#keyFile) {
      throw usageError(
        'key_kept_by_agent',
        `an agent keeps ${this.#keyFile}: start the agent once with --force-reenroll, or enroll another file`,
      );
    }
    await replaceFile({ path: this.#path, content: formatEnrollmentState(state), mode: 0o600 });
  }
}

export interface EnrolledKeyFile {
  readonly key: SigningKey;
  readonly state: EnrollmentState;
}

/** @throws EnrollError `enrollment_missing`, `enrollment_state_mismatch`; CliError for the files */
export async function readEnrolledKeyFile(keyFile: string): Promise<EnrolledKeyFile> {
  const file = await settledKeyFile(keyFile);
  const key = await readSigningKeyFile(file);
  const state = await new EnrollmentStateFile(file).load();
  return { key, state: ownState(state, key.publicKey.thumbprint, keyFile) };
}

/**
 * Names of the links through which the agent replaces a key and its state atomically. Each pair has its own folder, and
 * both files resolve through one link, which the agent replaces:
 *
 *     key.pem                  -> .key.pem.current/key.pem
 *     key.pem.enrollment.json  -> .key.pem.current/key.pem.enrollment.json
 *     .key.pem.current         -> .key.pem.7
 *     .key.pem.7/              the installed pair; .key.pem.6 is the previous one
 *
 * A reader that resolves `.key.pem.current` once and reads both files there gets a matching pair.
 * Source: docs/operate/workloads.md "Files".
 */

export interface PairNames {
  readonly directory: string;
  readonly key: string;
  /** The link that the agent replaces. */
  readonly current: string;
  /** Prefix of all other names that the agent uses in the directory. */
  readonly prefix: string;
}

export function pairNamesOf(keyFile: string): PairNames {
  const key = basename(keyFile);
  return { directory: dirname(keyFile), key, current: `.${key}.current`, prefix: `.${key}.` };
}

/** Number of the installed pair; undefined when no agent has installed one. */
export async function currentNumber({ directory, current, prefix }: PairNames): Promise<number | undefined> {
  const folder = await readlink(join(directory, current)).catch(() => undefined);
  return folder?.startsWith(prefix) ? numberOf(folder.slice(prefix.length)) : undefined;
}

/** Parses the number at the end of a folder's name; undefined for anything else. */
export function numberOf(ending: string): number | undefined {
  return /^[1-9][0-9]{0,14}$/.test(ending) ? Number(ending) : undefined;
}

/** Resolves the current path of the key file, which has its state beside it: the agent's pair, or else the file itself. */
export async function settledKeyFile(keyFile: string): Promise<string> {
  const names = pairNamesOf(keyFile);
  const link = await readlink(keyFile).catch(() => undefined);
  if (link !== join(names.current, names.key)) return keyFile;
  const number = await currentNumber(names);
  return number === undefined ? keyFile : join(names.directory, `${names.prefix}${number}`, names.key);
}
