/**
 * Notices changes in a directory soon, by the system's notices, and surely, by polling: notices do not cross network
 * file systems, and a link that is swapped further up the path changes nothing that is watched.
 */
import { type FSWatcher, watch } from 'node:fs';
import { basename, dirname, resolve } from 'node:path';

export interface DirectoryWatchOptions {
  readonly directory: string;
  readonly pollIntervalMs: number;
  /** Called often, also when nothing changed: it must be cheap then. Must not throw. */
  readonly onTick: () => void;
}

/** Keeps no process alive. */
export class DirectoryWatch {
  readonly #options: DirectoryWatchOptions;
  readonly #poll: NodeJS.Timeout;
  #watchers: FSWatcher[] = [];
  #resolved: string | undefined;

  constructor(options: DirectoryWatchOptions) {
    this.#options = options;
    this.#poll = setInterval(options.onTick, options.pollIntervalMs).unref();
  }

  /**
   * Watches the directory as it stands and the one above it, where it may be replaced.
   * @param resolved real path that the files were last read from; the same one again changes nothing
   */
  follow(resolved: string): void {
    if (resolved === this.#resolved) return;
    this.#resolved = resolved;
    this.#stopWatching();
    const directory = resolve(this.#options.directory);
    const name = basename(directory);
    this.#watch(directory, () => true);
    this.#watch(dirname(directory), (changed) => {
      const isOurs = changed === null || changed === name;
      // What is watched may be gone: look for it anew.
      if (isOurs) this.#resolved = undefined;
      return isOurs;
    });
    if (resolved !== directory) this.#watch(resolved, () => true);
  }

  close(): void {
    clearInterval(this.#poll);
    this.#stopWatching();
  }

  #watch(directory: string, isOurs: (changed: string | null) => boolean): void {
    try {
      const watcher = watch(directory, { persistent: false }, (_event, changed) => {
        if (isOurs(changed)) this.#options.onTick();
      });
      // Without notices (too many watchers, directory gone) there is still the poll.
      watcher.on('error', () => watcher.close());
      this.#watchers.push(watcher);
    } catch {
      // As above.
    }
  }

  #stopWatching(): void {
    for (const watcher of this.#watchers) watcher.close();
    this.#watchers = [];
  }
}
