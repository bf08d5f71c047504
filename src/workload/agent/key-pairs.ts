/**
 * Manages the agent's files: pairs of a key and its state, one installed and one being enrolled. After a crash the
 * installed pair is complete, and the agent resumes the other.
 * Source: docs/workloads.md "Files"; the layout is in `src/workload/state-file.ts`.
 */
import { lstat, mkdir, readdir, readlink, rename, rm, symlink } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import type {
  EnrolledKeyRecord,
  EnrollmentState,
  EnrollmentTarget,
} from '../../client/enroll/enrollment-state.ts';
import { isSameTarget } from '../../client/enroll/enrollment-state.ts';
import { systemErrorCode, usageError } from '../../program/errors.ts';
import { readSigningKeyFile } from '../../program/key-files.ts';
import { syncDirectory, writeNewFile } from '../../program/output-files.ts';
import type { SigningKey } from '../../protocol/signing.ts';
import { notOurs } from '../enrollment-key.ts';
import {
  currentNumber,
  EnrollmentStateFile,
  numberOf,
  type PairNames,
  pairNamesOf,
  readEnrolledKeyFile,
  statePathOf,
} from '../state-file.ts';

export interface KeyPair {
  /** The file itself, not the link to it. */
  readonly keyFile: string;
  readonly key: SigningKey;
  readonly record: EnrolledKeyRecord;
}

export class KeyPairs {
  readonly #keyFile: string;
  readonly #target: EnrollmentTarget;
  readonly #names: PairNames;

  constructor(keyFile: string, target: EnrollmentTarget) {
    this.#keyFile = keyFile;
    this.#target = target;
    this.#names = pairNamesOf(keyFile);
  }

  /**
   * Prepares the folder: completes an interrupted installation, and adopts a pair that `enroll` wrote.
   * @throws CliError `file_exists` for a key of another target, or an error of `enroll` for files
   */
  async open(): Promise<void> {
    const kind = await kindOf(this.#keyFile);
    if (kind === 'other') throw notOurs(this.#keyFile);
    if (kind === 'link') await this.#assertOwnLink();
    const found = kind === 'file' ? await this.#ownState() : undefined;
    await this.#prune();
    // Fails at startup, not at the first renewal, when the folder is not writable.
    await this.nextKeyFile();
    if (found !== undefined) await this.#takeOver(found);
    if ((await this.current()) !== undefined) await this.#leadToCurrent();
  }

  /** The installed pair, if it is complete and belongs to this target. */
  async current(): Promise<KeyPair | undefined> {
    const number = await currentNumber(this.#names);
    return number === undefined ? undefined : this.#pairAt(number);
  }

  /** Path of the next key; creates its folder. @throws CliError `file_not_written` */
  async nextKeyFile(): Promise<string> {
    const number = await this.#nextNumber();
    try {
      await mkdir(this.#folder(number), { mode: 0o700, recursive: true });
    } catch (error) {
      throw notWritten(this.#names.directory, error);
    }
    return this.#keyFileAt(number);
  }

  /** Enrollment state of the next key. */
  async nextState(): Promise<EnrollmentState | undefined> {
    const file = new EnrollmentStateFile(this.#keyFileAt(await this.#nextNumber()));
    return file.load().catch(() => undefined);
  }

  async next(): Promise<KeyPair | undefined> {
    return this.#pairAt(await this.#nextNumber());
  }

  /** Discards the next pair, so that the next attempt generates a new key. */
  async dropNext(): Promise<void> {
    await rm(this.#folder(await this.#nextNumber()), { recursive: true, force: true });
  }

  /** Installs the next pair; keeps the previous one for concurrent readers. @throws CliError `file_not_written` */
  async publishNext(): Promise<void> {
    const number = await this.#nextNumber();
    const folder = this.#folder(number);
    const { current, directory, key, prefix } = this.#names;
    try {
      const own: readonly string[] = [key, statePathOf(key)];
      for (const name of await readdir(folder)) {
        if (!own.includes(name)) await rm(join(folder, name), { recursive: true, force: true });
      }
      await syncDirectory(folder);
      await this.#placeLink(join(directory, current), `${prefix}${number}`);
      await syncDirectory(directory);
    } catch (error) {
      throw notWritten(directory, error);
    }
    await this.#leadToCurrent();
    await this.#prune();
  }

  #folder(number: number): string {
    return join(this.#names.directory, `${this.#names.prefix}${number}`);
  }

  #keyFileAt(number: number): string {
    return join(this.#folder(number), this.#names.key);
  }

  async #nextNumber(): Promise<number> {
    return ((await currentNumber(this.#names)) ?? 0) + 1;
  }

  /** Undefined when the pair cannot be used to sign, for any reason. */
  async #pairAt(number: number): Promise<KeyPair | undefined> {
    const keyFile = this.#keyFileAt(number);
    const pair = await readEnrolledKeyFile(keyFile).catch(() => undefined);
    const record = pair?.state.enrolled;
    if (pair === undefined || record === undefined) return undefined;
    return isSameTarget(record.target, this.#target) ? { keyFile, key: pair.key, record } : undefined;
  }

  /** Links the state first, so that a reader that finds the key also finds its state. */
  async #leadToCurrent(): Promise<void> {
    const { current, directory, key } = this.#names;
    try {
      for (const name of [statePathOf(key), key])
        await this.#placeLink(join(directory, name), join(current, name));
      await syncDirectory(directory);
    } catch (error) {
      throw notWritten(directory, error);
    }
  }

  /** Replaces the path atomically. */
  async #placeLink(path: string, target: string): Promise<void> {
    if ((await readlink(path).catch(() => undefined)) === target) return;
    const temporary = this.#temporaryLink;
    await rm(temporary, { force: true });
    await symlink(target, temporary);
    await rename(temporary, path);
  }

  get #temporaryLink(): string {
    return join(this.#names.directory, `${this.#names.prefix}link`);
  }

  /** @throws CliError `file_exists` */
  async #assertOwnLink(): Promise<void> {
    const { current, key } = this.#names;
    if ((await readlink(this.#keyFile)) !== join(current, key)) throw notOurs(this.#keyFile);
  }

  /** The state that `enroll` wrote beside the key. @throws CliError `file_exists` */
  async #ownState(): Promise<EnrollmentState> {
    const state = await new EnrollmentStateFile(this.#keyFile).load();
    if (state === undefined || !isSameTarget(state.target, this.#target)) throw notOurs(this.#keyFile);
    return state;
  }

  /** Moves a pair that `enroll` wrote into the agent's layout; readers see the same key and state. */
  async #takeOver(state: EnrollmentState): Promise<void> {
    const key = await readSigningKeyFile(this.#keyFile).catch(() => undefined);
    const isWhole = key !== undefined && key.publicKey.thumbprint === state.keyThumbprint;
    if (!isWhole || (await this.current())?.key.publicKey.thumbprint === state.keyThumbprint) return;
    await this.dropNext();
    const nextKeyFile = await this.nextKeyFile();
    await new EnrollmentStateFile(nextKeyFile).save(state);
    const content = key.privateKey.export({ type: 'pkcs8', format: 'pem' }).toString();
    await writeNewFile({ path: nextKeyFile, content, mode: 0o600 });
    if ((await this.next()) !== undefined) await this.publishNext();
  }

  /** Removes all pairs except the installed one and its neighbours, and a leftover temporary link. */
  async #prune(): Promise<void> {
    const { directory, prefix } = this.#names;
    const number = (await currentNumber(this.#names)) ?? 0;
    await rm(this.#temporaryLink, { force: true });
    const names = await readdir(directory).catch((error: unknown) => {
      throw notWritten(directory, error);
    });
    for (const name of names) {
      const found = name.startsWith(prefix) ? numberOf(name.slice(prefix.length)) : undefined;
      if (found === undefined || Math.abs(found - number) <= 1) continue;
      await rm(join(directory, name), { recursive: true, force: true });
    }
  }
}

async function kindOf(path: string): Promise<'nothing' | 'link' | 'file' | 'other'> {
  try {
    const stats = await lstat(path);
    if (stats.isSymbolicLink()) return 'link';
    return stats.isFile() ? 'file' : 'other';
  } catch (error) {
    const code = systemErrorCode(error);
    if (code === 'ENOENT') return 'nothing';
    throw notWritten(dirname(path), error);
  }
}

function notWritten(path: string, error: unknown) {
  return usageError(
    'file_not_written',
    `${path} cannot be written to (${systemErrorCode(error) ?? 'unknown'})`,
  );
}
