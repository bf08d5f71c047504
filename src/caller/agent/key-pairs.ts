/**
 * The agent's pairs of an enrolled key and its enrollment state. After a crash the installed pair is complete, and the agent
 * resumes the next one.
 * Source: docs/operate/workloads.md "Files".
 */

import { readSigningKeyFile } from '../../process/files/key-files.ts';
import { writeNewFile } from '../../process/files/output-files.ts';
import type { SigningKey } from '../../protocol/signing.ts';
import { notOursError } from '../enroll/enrollment-key.ts';
import type { EnrolledKeyRecord, EnrollmentState, EnrollmentTarget } from '../enroll/enrollment-state.ts';
import { isSameTarget } from '../enroll/enrollment-state.ts';
import { EnrollmentStateFile, readEnrolledKeyFile, statePathOf } from '../enroll/state-file.ts';
import { PairFolders } from './pair-folders.ts';

export interface KeyPair {
  /** The file itself, not the link to it. */
  readonly keyFile: string;
  readonly key: SigningKey;
  readonly record: EnrolledKeyRecord;
}

export class KeyPairs {
  readonly #keyFile: string;
  readonly #target: EnrollmentTarget;
  readonly #folders: PairFolders;

  constructor(keyFile: string, target: EnrollmentTarget) {
    this.#keyFile = keyFile;
    this.#target = target;
    this.#folders = new PairFolders(keyFile, statePathOf);
  }

  /**
   * Prepares the folder: completes an interrupted installation, and adopts a pair that `enroll` wrote.
   * @throws CliError `file_exists` for a key of another target, or an error of `enroll` for files
   */
  async open(): Promise<void> {
    const kind = await this.#folders.kind();
    if (kind === 'other') throw notOursError(this.#keyFile);
    const found = kind === 'file' ? await this.#readOwnState() : undefined;
    await this.#folders.prune();
    // Fails at startup, not at the first renewal, when the folder is not writable.
    await this.nextKeyFile();
    if (found !== undefined) await this.#adoptPair(found);
    if ((await this.current()) !== undefined) await this.#folders.linkToCurrent();
  }

  /** The installed pair, if it is complete and belongs to this target. */
  async current(): Promise<KeyPair | undefined> {
    const keyFile = await this.#folders.currentKeyFile();
    return keyFile === undefined ? undefined : this.#pairAt(keyFile);
  }

  /** Path of the next key; creates its folder. @throws CliError `file_not_written` */
  nextKeyFile(): Promise<string> {
    return this.#folders.nextKeyFile();
  }

  /** Enrollment state of the next key. */
  async nextState(): Promise<EnrollmentState | undefined> {
    const file = new EnrollmentStateFile(await this.#folders.nextKeyPath());
    return file.load().catch(() => undefined);
  }

  async next(): Promise<KeyPair | undefined> {
    return this.#pairAt(await this.#folders.nextKeyPath());
  }

  /** Discards the next pair, so that the next attempt generates a new key. */
  dropNext(): Promise<void> {
    return this.#folders.dropNext();
  }

  /** Installs the next pair; keeps the previous one for concurrent readers. @throws CliError `file_not_written` */
  publishNext(): Promise<void> {
    return this.#folders.publishNext();
  }

  /** Undefined when the pair cannot be used to sign, whatever the reason. */
  async #pairAt(keyFile: string): Promise<KeyPair | undefined> {
    const pair = await readEnrolledKeyFile(keyFile).catch(() => undefined);
    const record = pair?.state.enrolled;
    if (pair === undefined || record === undefined) return undefined;
    return isSameTarget(record.target, this.#target) ? { keyFile, key: pair.key, record } : undefined;
  }

  /** The state that `enroll` wrote beside the key. @throws CliError `file_exists` */
  async #readOwnState(): Promise<EnrollmentState> {
    const state = await new EnrollmentStateFile(this.#keyFile).load();
    if (state === undefined || !isSameTarget(state.target, this.#target)) throw notOursError(this.#keyFile);
    return state;
  }

  /** Moves a pair that `enroll` wrote into the agent's layout; readers see the same key and state. */
  async #adoptPair(state: EnrollmentState): Promise<void> {
    const key = await readSigningKeyFile(this.#keyFile).catch(() => undefined);
    const isComplete = key !== undefined && key.publicKey.thumbprint === state.keyThumbprint;
    if (!isComplete || (await this.current())?.key.publicKey.thumbprint === state.keyThumbprint) return;
    await this.dropNext();
    const nextKeyFile = await this.nextKeyFile();
    await new EnrollmentStateFile(nextKeyFile).save(state);
    const content = key.privateKey.export({ type: 'pkcs8', format: 'pem' }).toString();
    await writeNewFile({ path: nextKeyFile, content, mode: 0o600 });
    if ((await this.next()) !== undefined) await this.publishNext();
  }
}
