/** Records the arguments of every process on this machine, repeatedly, while others run. */
import { readdirSync, readFileSync } from 'node:fs';

/** A command takes longer. */
const INTERVAL_MS = 150;

export class ProcessArguments {
  /** Each command line once. */
  readonly seen = new Set<string>();
  readonly #timer: NodeJS.Timeout;

  constructor() {
    this.#timer = setInterval(() => this.look(), INTERVAL_MS);
  }

  /** Reads synchronously, which takes a millisecond or two: asynchronous reads would miss short-lived processes. */
  look(): void {
    for (const pid of readdirSync('/proc').filter((name) => /^[0-9]+$/.test(name))) {
      const text = commandLineOf(pid);
      if (text !== '') this.seen.add(text.replaceAll('\0', ' '));
    }
  }

  stop(): void {
    clearInterval(this.#timer);
  }
}

/** Empty where it has ended meanwhile. */
function commandLineOf(pid: string): string {
  try {
    return readFileSync(`/proc/${pid}/cmdline`, 'utf8');
  } catch {
    return '';
  }
}
