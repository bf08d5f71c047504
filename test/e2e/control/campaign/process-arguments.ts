/** The arguments of every process of this machine, looked at again and again while others run. */
import { readdir, readFile } from 'node:fs/promises';

const INTERVAL_MS = 50;

export class ProcessArguments {
  /** Each command line once. */
  readonly seen = new Set<string>();
  readonly #timer: NodeJS.Timeout;

  constructor() {
    this.#timer = setInterval(() => void this.look(), INTERVAL_MS);
  }

  async look(): Promise<void> {
    const pids = (await readdir('/proc')).filter((name) => /^[0-9]+$/.test(name));
    for (const pid of pids) {
      // It may have ended meanwhile.
      const text = await readFile(`/proc/${pid}/cmdline`, 'utf8').catch(() => '');
      if (text !== '') this.seen.add(text.replaceAll('\0', ' '));
    }
  }

  stop(): void {
    clearInterval(this.#timer);
  }
}
