/**
 * The state directory of a verifier that follows Control. It stores a whole bundle (the base) in a folder of its own,
 * with the steps after it and the newest freshness statement. The link `current` names the base and is replaced
 * atomically when a new one is complete, so a start always finds a complete base. Its content is not trusted: a load
 * verifies everything again.
 * Source: docs/bundle.md "The state directory".
 */

import { randomBytes } from 'node:crypto';
import { mkdir, readdir, readlink, rename, rm, stat, symlink, unlink } from 'node:fs/promises';
import { basename, join } from 'node:path';
import { bundleError } from '../../../bundle/format/bundle-error.ts';
import type { ChainPosition } from '../../../bundle/format/chain.ts';
import { BUNDLE_FILE, CURRENT_LINK, FRESHNESS_FILE } from '../../../bundle/format/file-names.ts';
import {
  fileError,
  fileNotWritten,
  syncDirectory,
  writeFileAtomically,
} from '../../../bundle/format/files.ts';
import { ResolvedDirectory } from '../../../bundle/format/local-directory.ts';
import { STEP_LOG_FILE, StepLog } from '../../../bundle/format/step-log.ts';

export const BASES_FOLDER = 'bases';
const INCOMING_PREFIX = '.incoming-';
const BASE_NAME = /^[1-9][0-9]{0,15}-[0-9a-f]{16}$/;

/** A base under construction, which is not loaded yet. */
export interface IncomingBase {
  readonly path: string;
}

/** The stored base. */
export interface StoredBase {
  readonly files: ResolvedDirectory;
  readonly log: StepLog;
  /** Size of the base's files, without the steps. */
  readonly sizeBytes: number;
}

export class StateDirectory {
  readonly #path: string;
  readonly #bases: string;
  #current: StoredBase | undefined;
  /** Bases under construction. There may be several: a newer base may be fetched while another is replaced. */
  readonly #incoming = new Set<string>();

  /** @param path must exist */
  constructor(path: string) {
    this.#path = path;
    this.#bases = join(path, BASES_FOLDER);
  }

  get current(): StoredBase | undefined {
    return this.#current;
  }

  /**
   * Finds the base of the previous run, and removes remains of bases that never became current.
   * @returns undefined when there is none
   * @throws BundleError when there is one that cannot be read
   */
  async open(): Promise<StoredBase | undefined> {
    const name = await this.#currentName();
    await this.#removeAllBut(name);
    if (name !== undefined) this.#current = await openBase(join(this.#bases, name));
    return this.#current;
  }

  /** @throws BundleError `file_not_written` */
  async newBase(): Promise<IncomingBase> {
    const path = join(this.#bases, INCOMING_PREFIX + randomBytes(8).toString('hex'));
    this.#incoming.add(path);
    try {
      await mkdir(path, { recursive: true });
    } catch (error) {
      this.#incoming.delete(path);
      throw fileNotWritten(error, BASES_FOLDER);
    }
    return { path };
  }

  async discard({ path }: IncomingBase): Promise<void> {
    this.#incoming.delete(path);
    await rm(path, { recursive: true, force: true }).catch(() => undefined);
  }

  /**
   * Makes an incoming base, whose files are written and synced, the current one.
   * @param steps documents after the base
   * @throws BundleError `file_not_written`: the previous base then stays current
   */
  async install(
    incoming: IncomingBase,
    { revision }: ChainPosition,
    steps: readonly Buffer[],
  ): Promise<void> {
    const name = `${revision}-${randomBytes(8).toString('hex')}`;
    const before = this.#current;
    const log = await StepLog.open(incoming.path);
    try {
      await log.append(steps);
      await syncDirectory(incoming.path);
      await rename(incoming.path, join(this.#bases, name));
      await syncDirectory(this.#bases);
      await this.#pointTo(name);
    } catch (error) {
      await log.close();
      throw error instanceof Error && error.name === 'BundleError'
        ? error
        : fileNotWritten(error, CURRENT_LINK);
    }
    const files = new ResolvedDirectory(join(this.#bases, name));
    this.#current = { files, log, sizeBytes: await sizeOf(files.path).catch(() => 0) };
    await before?.log.close();
    await this.#removeAllBut(name);
  }

  /** @throws BundleError `file_not_written` */
  async writeFreshness(statement: Buffer): Promise<void> {
    if (this.#current !== undefined) {
      await writeFileAtomically(this.#current.files.path, FRESHNESS_FILE, statement);
    }
  }

  async close(): Promise<void> {
    await this.#current?.log.close();
    this.#current = undefined;
  }

  async #currentName(): Promise<string | undefined> {
    const target = await readlink(join(this.#path, CURRENT_LINK)).catch((error: unknown) => {
      const problem = fileError(error, CURRENT_LINK);
      if (problem.code !== 'file_missing') throw problem;
      return undefined;
    });
    if (target === undefined) return undefined;
    const name = basename(target);
    // Only verifiers create and remove the target, so the link must not lead elsewhere.
    if (target !== join(BASES_FOLDER, name) || !BASE_NAME.test(name)) {
      throw bundleError('file_unreadable', CURRENT_LINK, '', `does not lead to a folder in ${BASES_FOLDER}/`);
    }
    return name;
  }

  async #pointTo(name: string): Promise<void> {
    const temporary = join(this.#path, `.${CURRENT_LINK}.${randomBytes(8).toString('hex')}`);
    await symlink(join(BASES_FOLDER, name), temporary);
    try {
      await rename(temporary, join(this.#path, CURRENT_LINK));
    } catch (error) {
      await unlink(temporary).catch(() => undefined);
      throw error;
    }
    await syncDirectory(this.#path);
  }

  /** What cannot be removed now is removed at the next start. */
  async #removeAllBut(kept: string | undefined): Promise<void> {
    const names = await readdir(this.#bases).catch(() => []);
    const ours = names.filter((name) => BASE_NAME.test(name) || name.startsWith(INCOMING_PREFIX));
    const links = (await readdir(this.#path).catch(() => [])).filter((name) =>
      name.startsWith(`.${CURRENT_LINK}.`),
    );
    const paths = [
      ...ours
        .filter((name) => name !== kept)
        .map((name) => join(this.#bases, name))
        .filter((path) => !this.#incoming.has(path)),
      ...links.map((name) => join(this.#path, name)),
    ];
    for (const path of paths) await rm(path, { recursive: true, force: true }).catch(() => undefined);
  }
}

async function openBase(path: string): Promise<StoredBase> {
  const sizeBytes = await sizeOf(path).catch((error: unknown) => {
    throw fileError(error, BUNDLE_FILE);
  });
  return { files: new ResolvedDirectory(path), log: await StepLog.open(path), sizeBytes };
}

async function sizeOf(path: string): Promise<number> {
  const names = (await readdir(path)).filter((name) => name !== STEP_LOG_FILE);
  const sizes = await Promise.all(names.map(async (name) => (await stat(join(path, name))).size));
  return sizes.reduce((sum, size) => sum + size, 0);
}
