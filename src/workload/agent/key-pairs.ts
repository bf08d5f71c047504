/**
 * The files that the agent looks after: pairs of a key and its state, one of them in place, one in the making.
 * Whenever the process ends, what is in place is whole, and what was in the making is gone on with.
 * Source: docs/workloads.md "Files"; the layout is in `src/workload/pair-links.ts`.
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
import { currentNumber, numberOf, type PairNames, pairNamesOf } from '../pair-links.ts';
import { EnrollmentStateFile, readEnrolledKeyFile, statePathOf } from '../state-file.ts';

export interface KeyPair {
  /** The file itself, not what leads to it. */
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
   * Puts the folder in order: finishes what was being put in place, and takes over what `enroll` has left there.
   * @throws CliError `file_exists` for a key that is not this target's, or as `enroll` for files
   */
  async open(): Promise<void> {
    const kind = await kindOf(this.#keyFile);
    if (kind === 'other') throw notOurs(this.#keyFile);
    if (kind === 'link') await this.#assertOwnLink();
    const found = kind === 'file' ? await this.#ownState() : undefined;
    await this.#prune();
    // Whether the folder can be written to is told now, not when a key is due.
    await this.nextKeyFile();
    if (found !== undefined) await this.#takeOver(found);
    if ((await this.current()) !== undefined) await this.#leadToCurrent();
  }

  /** The pair in place, if it is whole and this target's. */
  async current(): Promise<KeyPair | undefined> {
    const number = await currentNumber(this.#names);
    return number === undefined ? undefined : this.#pairAt(number);
  }

  /** Where the next key is made; its folder is there. @throws CliError `file_not_written` */
  async nextKeyFile(): Promise<string> {
    const number = await this.#nextNumber();
    try {
      await mkdir(this.#folder(number), { mode: 0o700, recursive: true });
    } catch (error) {
      throw notWritten(this.#names.directory, error);
    }
    return this.#keyFileAt(number);
  }

  /** What is known of the key in the making. */
  async nextState(): Promise<EnrollmentState | undefined> {
    const file = new EnrollmentStateFile(this.#keyFileAt(await this.#nextNumber()));
    return file.load().catch(() => undefined);
  }

  async next(): Promise<KeyPair | undefined> {
    return this.#pairAt(await this.#nextNumber());
  }

  /** Begins anew with another key. */
  async dropNext(): Promise<void> {
    await rm(this.#folder(await this.#nextNumber()), { recursive: true, force: true });
  }

  /** Puts the next pair in place; the one before stays for whoever is just reading it. @throws CliError `file_not_written` */
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

  /** Undefined for whatever cannot be signed with, for whichever reason. */
  async #pairAt(number: number): Promise<KeyPair | undefined> {
    const keyFile = this.#keyFileAt(number);
    const pair = await readEnrolledKeyFile(keyFile).catch(() => undefined);
    const record = pair?.state.enrolled;
    if (pair === undefined || record === undefined) return undefined;
    return isSameTarget(record.target, this.#target) ? { keyFile, key: pair.key, record } : undefined;
  }

  /** The state first: whoever finds the key finds its state. */
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

  /** At once, whatever is there. */
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

  /** What `enroll` has left beside the key. @throws CliError `file_exists` */
  async #ownState(): Promise<EnrollmentState> {
    const state = await new EnrollmentStateFile(this.#keyFile).load();
    if (state === undefined || !isSameTarget(state.target, this.#target)) throw notOurs(this.#keyFile);
    return state;
  }

  /** A pair that `enroll` wrote becomes one of ours: the same key and state, so that nobody sees a difference. */
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

  /** Pairs before the last one, and what was half done. */
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
