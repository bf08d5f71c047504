/**
 * Watches a directory by file system notifications, which are fast, and by polling, which is reliable. Notifications do
 * not cross network file systems, and swapping a link further up the path changes nothing that is watched.
 */
import { type FSWatcher, watch } from 'node:fs';
import { basename, dirname, resolve } from 'node:path';

export interface DirectoryWatchOptions {
  readonly directory: string;
  readonly pollIntervalMs: number;
  /** Called often, also when nothing changed, so it must be cheap then. Must not throw. */
  readonly onTick: () => void;
}

/** The timer does not keep the process alive. */
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
   * Watches the directory and its parent, where it may be replaced.
   * @param resolved real path that the files were last read from; the same path again changes nothing
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
      // The watched directory may be gone: resolve it again.
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
      // Without notifications (too many watchers, directory gone) polling still works.
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
