/**
 * Posts counts of decisions to Control a minute. No request waits for it. The counts of a post that failed are dropped, not
 * sent with the next ones, because Control would show them in the wrong minute; their number is sent.
 */
import { setTimeout as delay } from 'node:timers/promises';
import {
  type CountedDecision,
  DecisionCounts,
  type DecisionSummary,
  totalOf,
} from '../../bundle/format/decision-summary.ts';

export interface SummaryPosterOptions {
  /** @returns `unsupported` when Control does not know summaries. @throws when it was not taken */
  readonly post: (summary: DecisionSummary, signal: AbortSignal) => Promise<'taken' | 'unsupported'>;
  readonly metrics: SummaryMetrics;
  /** Milliseconds since the epoch. Default: the system's clock. */
  readonly nowMs?: () => number;
  /** Between the end of a minute and its post, the same for each minute. Default: random. */
  readonly delayMs?: number;
  /** Resolves after the time, or at once when aborted. Default: the timer of Node.js. */
  readonly sleep?: (waitMs: number, signal: AbortSignal) => Promise<void>;
}

export interface SummaryMetrics {
  /** @param decisions in the summary */
  readonly posted: (outcome: 'taken' | 'unsupported' | 'failed', decisions: number) => void;
}

const MINUTE_MS = 60_000;
/**
 * Spreads the posts of all verifiers. Control counts a post in the minute of 30 seconds before it, so that clocks may differ
 * and no post has to say its time.
 */
const MAX_DELAY_MS = 20_000;

export class SummaryPoster {
  readonly #options: SummaryPosterOptions;
  readonly #counts = new DecisionCounts();
  readonly #stop = new AbortController();
  #running: Promise<void> | undefined;

  constructor(options: SummaryPosterOptions) {
    this.#options = options;
  }

  add(decision: CountedDecision): void {
    this.#counts.add(decision);
  }

  /** Adds what a worker process has counted. */
  merge(summary: DecisionSummary): void {
    this.#counts.merge(summary);
  }

  /** Returns at once. */
  start(): void {
    this.#running ??= this.#run();
  }

  /** What is counted and not posted yet is lost. */
  async close(): Promise<void> {
    this.#stop.abort();
    await this.#running;
  }

  async #run(): Promise<void> {
    const { nowMs = Date.now, delayMs = Math.random() * MAX_DELAY_MS, sleep = pause } = this.#options;
    const { signal } = this.#stop;
    while (!signal.aborted) {
      await sleep(MINUTE_MS - (nowMs() % MINUTE_MS), signal);
      if (signal.aborted) return;
      const summary = this.#counts.take();
      await sleep(delayMs, signal);
      if (!signal.aborted) await this.#post(summary);
    }
  }

  async #post(summary: DecisionSummary): Promise<void> {
    const { metrics, post } = this.#options;
    const decisions = totalOf(summary);
    try {
      metrics.posted(await post(summary, this.#stop.signal), decisions);
    } catch {
      // The polls already say in the log that Control does not answer.
      this.#counts.drop(decisions + summary.dropped);
      metrics.posted('failed', decisions);
    }
  }
}

async function pause(waitMs: number, signal: AbortSignal): Promise<void> {
  await delay(waitMs, undefined, { signal, ref: false }).catch(() => undefined);
}
