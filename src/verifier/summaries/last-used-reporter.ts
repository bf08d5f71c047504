/**
 * Reports to Control when derived keys last signed an allowed request, a minute. No request waits for it. What could not be reported
 * is reported later, as long as the bundle lists the key.
 */
import { setTimeout as delay } from 'node:timers/promises';
import type { CountedDecision } from '../../bundle/format/decision-summary.ts';
import { type KeyUse, LastUses, MAX_KEY_USES } from '../../bundle/format/key-use.ts';

export interface LastUsedReporterOptions {
  /** @param uses at most {@link MAX_KEY_USES} @returns `unsupported` when Control does not know it. @throws when it was not taken */
  readonly post: (uses: readonly KeyUse[], signal: AbortSignal) => Promise<'taken' | 'unsupported'>;
  /** Whether the current bundle has the derived key. */
  readonly isKnown: (keyId: string) => boolean;
  readonly metrics: LastUsedMetrics;
  /** Milliseconds since the epoch. Default: the system's clock. */
  readonly nowMs?: () => number;
  /** Until the first report. Default: random, so that verifiers report at different times. */
  readonly firstWaitMs?: number;
  /** Resolves after the time, or at once when aborted. Default: the timer of Node.js. */
  readonly sleep?: (waitMs: number, signal: AbortSignal) => Promise<void>;
}

export interface LastUsedMetrics {
  /** @param keys in the post */
  readonly reported: (outcome: 'taken' | 'unsupported' | 'failed', keys: number) => void;
}

const MINUTE_MS = 60_000;
/** Between pages: the verifiers of a target share its rate limit at Control with their polls. */
const PAGE_PAUSE_MS = 500;

export class LastUsedReporter {
  readonly #options: LastUsedReporterOptions;
  readonly #uses = new LastUses();
  readonly #stop = new AbortController();
  #running: Promise<void> | undefined;

  constructor(options: LastUsedReporterOptions) {
    this.#options = options;
  }

  add({ derivedKeyId }: Pick<CountedDecision, 'derivedKeyId'>): void {
    const { nowMs = Date.now } = this.#options;
    if (derivedKeyId !== undefined) this.#uses.add({ keyId: derivedKeyId, usedAtSeconds: nowMs() / 1000 });
  }

  /** Adds what a worker process has seen. */
  merge(uses: readonly KeyUse[]): void {
    this.#uses.addAll(uses);
  }

  /** Returns at once. */
  start(): void {
    this.#running ??= this.#run();
  }

  /** What is not reported yet is lost. */
  async close(): Promise<void> {
    this.#stop.abort();
    await this.#running;
  }

  async #run(): Promise<void> {
    const { firstWaitMs = Math.random() * MINUTE_MS, sleep = pause } = this.#options;
    const { signal } = this.#stop;
    for (let waitMs = firstWaitMs; ; waitMs = MINUTE_MS) {
      await sleep(waitMs, signal);
      // As many pages as there are now, because keys in use come back while their page is sent.
      for (let left = Math.ceil(this.#uses.size / MAX_KEY_USES); left > 0; left--) {
        if (signal.aborted || !(await this.#reportPage())) break;
        if (left > 1) await sleep(PAGE_PAUSE_MS, signal);
      }
      if (signal.aborted) return;
    }
  }

  /** @returns whether Control takes more */
  async #reportPage(): Promise<boolean> {
    const { isKnown, metrics, post } = this.#options;
    const page = this.#uses.takePage();
    try {
      const outcome = await post(page, this.#stop.signal);
      metrics.reported(outcome, page.length);
      if (outcome === 'unsupported') this.#uses.clear();
      return outcome === 'taken';
    } catch {
      // The polls already say in the log that Control does not answer.
      this.#uses.addAll(page);
      this.#uses.keep(isKnown);
      metrics.reported('failed', page.length);
      return false;
    }
  }
}

async function pause(waitMs: number, signal: AbortSignal): Promise<void> {
  await delay(waitMs, undefined, { signal, ref: false }).catch(() => undefined);
}
