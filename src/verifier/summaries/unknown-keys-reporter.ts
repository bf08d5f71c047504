/**
 * Reports to Control which keys of OAuth issuers the bundle lacks, so that it fetches them before its schedule says. The first unknown
 * key is reported at once, later ones at the end of an interval, whatever callers send. No request waits for it.
 */
import { setTimeout as delay } from 'node:timers/promises';
import type { CountedDecision } from '../../bundle/format/decision-summary.ts';
import { type UnknownKey, UnknownKeys } from '../../bundle/format/unknown-keys.ts';

export interface UnknownKeysReporterOptions {
  /** @param keys at most `MAX_UNKNOWN_KEYS` */
  readonly post: (keys: readonly UnknownKey[], signal: AbortSignal) => Promise<unknown>;
  /** Resolves after the time, or at once when aborted. Default: the timer of Node.js. */
  readonly sleep?: (waitMs: number, signal: AbortSignal) => Promise<void>;
}

/** Between posts. */
const INTERVAL_MS = 10_000;

export class UnknownKeysReporter {
  readonly #options: UnknownKeysReporterOptions;
  readonly #keys = new UnknownKeys();
  readonly #stop = new AbortController();
  #running: Promise<void> | undefined;

  constructor(options: UnknownKeysReporterOptions) {
    this.#options = options;
  }

  add({ unknownKey }: Pick<CountedDecision, 'unknownKey'>): void {
    if (unknownKey !== undefined) this.merge([unknownKey]);
  }

  /** Adds what a worker process has seen. */
  merge(keys: readonly UnknownKey[]): void {
    if (this.#stop.signal.aborted) return;
    for (const key of keys) this.#keys.add(key);
    if (this.#keys.size > 0) this.#running ??= this.#run();
  }

  /** What is not reported yet is lost. */
  async close(): Promise<void> {
    this.#stop.abort();
    await this.#running;
  }

  async #run(): Promise<void> {
    const { post, sleep = pause } = this.#options;
    const { signal } = this.#stop;
    while (this.#keys.size > 0 && !signal.aborted) {
      // The polls already say in the log that Control does not answer; the next token with the key is reported again.
      await post(this.#keys.takePage(), signal).catch(() => undefined);
      await sleep(INTERVAL_MS, signal);
    }
    this.#running = undefined;
  }
}

async function pause(waitMs: number, signal: AbortSignal): Promise<void> {
  await delay(waitMs, undefined, { signal, ref: false }).catch(() => undefined);
}
