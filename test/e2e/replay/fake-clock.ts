/** A wall clock of one process that a test can set while the process runs (libfaketime); timers are not affected. */
import { existsSync } from 'node:fs';
import { mkdtemp, readdir, rename, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

const LIBRARY = 'libfaketimeMT.so.1';
const SHARED_MEMORY = '/dev/shm';

export class FakeClock {
  /** For the environment of the process. */
  readonly env: Readonly<Record<string, string>>;
  readonly #directory: string;
  #offsetSeconds = 0;

  private constructor(directory: string, library: string) {
    this.#directory = directory;
    this.env = {
      // The C library must load before Redis' allocator, which asks for the time before the library is ready.
      LD_PRELOAD: `${library} libc.so.6`,
      FAKETIME_TIMESTAMP_FILE: join(directory, 'offset'),
      FAKETIME_NO_CACHE: '1',
      FAKETIME_DONT_FAKE_MONOTONIC: '1',
    };
  }

  /** Right at first. @throws where libfaketime is not installed */
  static async create(): Promise<FakeClock> {
    const library = await findLibrary();
    const clock = new FakeClock(await mkdtemp(join(tmpdir(), 'pg-clock-')), library);
    await clock.put(0);
    return clock;
  }

  /** How far ahead of the system's clock; behind it when negative. */
  get offsetSeconds(): number {
    return this.#offsetSeconds;
  }

  /** The process's next look at the clock sees it. */
  async put(offsetSeconds: number): Promise<void> {
    const file = join(this.#directory, 'offset');
    await writeFile(`${file}.next`, `${offsetSeconds < 0 ? '' : '+'}${offsetSeconds}\n`);
    await rename(`${file}.next`, file);
    this.#offsetSeconds = offsetSeconds;
  }

  /** When its process has ended. The library leaves shared memory behind when it was killed. */
  async remove(): Promise<void> {
    await rm(this.#directory, { recursive: true, force: true });
    for (const name of await readdir(SHARED_MEMORY)) {
      const pid = /^(?:sem\.)?faketime_(?:shm|sem)_([0-9]+)$/.exec(name)?.[1];
      if (pid !== undefined && !existsSync(`/proc/${pid}`))
        await rm(join(SHARED_MEMORY, name), { force: true });
    }
  }
}

/** Debian keeps it below the folder of the machine's architecture. */
async function findLibrary(): Promise<string> {
  for (const architecture of ['', ...(await readdir('/usr/lib'))]) {
    const path = join('/usr/lib', architecture, 'faketime', LIBRARY);
    if (existsSync(path)) return path;
  }
  throw new Error('libfaketime is not installed: scripts/install-system-packages.sh');
}
