/**
 * A directory of captured denials, one file for each, named by its decision ID. Several processes may share it. It keeps the
 * newest files within its limits, and touches no other files.
 */
import { lstat, readdir, rename, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';

export interface CaptureLimits {
  readonly maxFiles: number;
  readonly maxBytes: number;
}

export const CAPTURE_LIMITS: CaptureLimits = { maxFiles: 1000, maxBytes: 64 * 1024 * 1024 };

const FILE = /^[0-9a-f-]{36}\.json(?:\.part)?$/;
/** Only the owner may read callers' requests. */
const FILE_MODE = 0o600;

export class CaptureDirectory {
  readonly #path: string;
  readonly #limits: CaptureLimits;
  /** Values since the files were last counted; the first write counts files of an earlier run. */
  #writtenFiles = Number.POSITIVE_INFINITY;
  #writtenBytes = 0;

  constructor(path: string, limits: CaptureLimits = CAPTURE_LIMITS) {
    this.#path = path;
    this.#limits = limits;
  }

  /** @throws Error of the file system, also when old files cannot be removed; nothing is written then */
  async write(decisionId: string, text: string): Promise<void> {
    const bytes = Buffer.byteLength(text);
    if (this.#isDue) await this.#makeRoom(bytes);
    const file = join(this.#path, `${decisionId}.json`);
    const part = `${file}.part`;
    try {
      await writeFile(part, text, { mode: FILE_MODE, flag: 'wx' });
      await rename(part, file);
    } catch (error) {
      await rm(part, { force: true }).catch(() => undefined);
      throw error;
    }
    this.#writtenFiles += 1;
    this.#writtenBytes += bytes;
  }

  /**
   * Counting a full directory costs some milliseconds, so a process may exceed the limits by a fiftieth before it
   * counts.
   */
  get #isDue(): boolean {
    const { maxBytes, maxFiles } = this.#limits;
    return this.#writtenFiles >= maxFiles / 50 || this.#writtenBytes >= maxBytes / 50;
  }

  /** Makes room for one file of that size. */
  async #makeRoom(size: number): Promise<void> {
    let [count, bytes] = [1, size];
    for (const file of await this.#newestFirst()) {
      count += 1;
      bytes += file.size;
      if (count > this.#limits.maxFiles || bytes > this.#limits.maxBytes)
        await rm(file.path, { force: true });
    }
    this.#writtenFiles = 0;
    this.#writtenBytes = 0;
  }

  async #newestFirst() {
    const names = (await readdir(this.#path)).filter((name) => FILE.test(name));
    const files = names.map(async (name) => {
      const path = join(this.#path, name);
      // Another process may have removed it.
      const stats = await lstat(path).catch(() => undefined);
      return stats === undefined ? [] : [{ path, size: stats.size, changedMs: stats.mtimeMs }];
    });
    return (await Promise.all(files)).flat().sort((a, b) => b.changedMs - a.changedMs);
  }
}
