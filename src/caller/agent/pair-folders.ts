/**
 * The folders in which the agent keeps pairs of a key and its state: the installed, the previous and the next pair. One
 * link switches both files together; a crash leaves the installed pair complete.
 * Source: docs/operate/workloads.md "Files"; the layout is in `src/caller/enroll/state-file.ts`.
 */
import { lstat, mkdir, readdir, readlink, rm } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { replaceLink, syncDirectory } from '../../process/files/durable-files.ts';
import { systemErrorCode, usageError } from '../../process/program/errors.ts';
import { currentNumber, numberOf, type PairNames, pairNamesOf } from '../enroll/state-file.ts';

export class PairFolders {
  readonly #keyFile: string;
  readonly #statePathOf: (keyFile: string) => string;
  readonly #names: PairNames;

  /** @param statePathOf path of the state beside a key */
  constructor(keyFile: string, statePathOf: (keyFile: string) => string) {
    this.#keyFile = keyFile;
    this.#statePathOf = statePathOf;
    this.#names = pairNamesOf(keyFile);
  }

  /**
   * The kind of file at the key's path: `own_link` is the link to the installed pair.
   * @throws CliError `file_not_written`
   */
  async kind(): Promise<'nothing' | 'own_link' | 'file' | 'other'> {
    try {
      const stats = await lstat(this.#keyFile);
      if (stats.isFile()) return 'file';
      if (!stats.isSymbolicLink()) return 'other';
    } catch (error) {
      if (systemErrorCode(error) === 'ENOENT') return 'nothing';
      throw notWritten(dirname(this.#keyFile), error);
    }
    const { current, key } = this.#names;
    return (await readlink(this.#keyFile)) === join(current, key) ? 'own_link' : 'other';
  }

  /** Path of the installed key, even if the file is missing; undefined when no pair was installed. */
  async currentKeyFile(): Promise<string | undefined> {
    const number = await currentNumber(this.#names);
    return number === undefined ? undefined : this.#keyFileAt(number);
  }

  /** Path of the next key, even if its folder is missing. */
  async nextKeyPath(): Promise<string> {
    return this.#keyFileAt(await this.#nextNumber());
  }

  /** As {@link nextKeyPath}; creates the folder. @throws CliError `file_not_written` */
  async nextKeyFile(): Promise<string> {
    const path = await this.nextKeyPath();
    try {
      await mkdir(dirname(path), { mode: 0o700, recursive: true });
    } catch (error) {
      throw notWritten(this.#names.directory, error);
    }
    return path;
  }

  /** Discards the next pair. */
  async dropNext(): Promise<void> {
    await rm(dirname(await this.nextKeyPath()), { recursive: true, force: true });
  }

  /** Installs the next pair; keeps the previous one for concurrent readers. @throws CliError `file_not_written` */
  async publishNext(): Promise<void> {
    const number = await this.#nextNumber();
    const folder = this.#folder(number);
    const { current, directory, key, prefix } = this.#names;
    try {
      const own: readonly string[] = [key, this.#statePathOf(key)];
      for (const name of await readdir(folder)) {
        if (!own.includes(name)) await rm(join(folder, name), { recursive: true, force: true });
      }
      await syncDirectory(folder);
      await this.#placeLink(join(directory, current), `${prefix}${number}`);
      await syncDirectory(directory);
    } catch (error) {
      throw notWritten(directory, error);
    }
    await this.linkToCurrent();
    await this.prune();
  }

  /** Links the state first, so that a reader that finds the key also finds its state. */
  async linkToCurrent(): Promise<void> {
    const { current, directory, key } = this.#names;
    try {
      for (const name of [this.#statePathOf(key), key])
        await this.#placeLink(join(directory, name), join(current, name));
      await syncDirectory(directory);
    } catch (error) {
      throw notWritten(directory, error);
    }
  }

  /** Removes all pairs except the installed one and its neighbours, and a leftover temporary link. */
  async prune(): Promise<void> {
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

  #folder(number: number): string {
    return join(this.#names.directory, `${this.#names.prefix}${number}`);
  }

  #keyFileAt(number: number): string {
    return join(this.#folder(number), this.#names.key);
  }

  async #nextNumber(): Promise<number> {
    return ((await currentNumber(this.#names)) ?? 0) + 1;
  }

  async #placeLink(path: string, target: string): Promise<void> {
    if ((await readlink(path).catch(() => undefined)) === target) return;
    await replaceLink(path, target, this.#temporaryLink);
  }

  get #temporaryLink(): string {
    return join(this.#names.directory, `${this.#names.prefix}link`);
  }
}

function notWritten(path: string, error: unknown) {
  return usageError(
    'file_not_written',
    `${path} cannot be written to (${systemErrorCode(error) ?? 'unknown'})`,
  );
}
