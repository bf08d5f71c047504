/** Compares this clock with the `Date` of responses, and warns of a difference. */
import { clockAheadSeconds, clockText } from '../sign/clock-difference.ts';

const WARN_EVERY_MS = 60_000;

export class ClockCheck {
  readonly #warn: (text: string) => void;
  readonly #nowMs: () => number;
  #warnedAtMs = Number.NEGATIVE_INFINITY;

  constructor(warn: (text: string) => void, nowMs: () => number) {
    this.#warn = warn;
    this.#nowMs = nowMs;
  }

  /**
   * @param date `Date` of the response that just arrived
   * @param sentMs when its request was sent
   */
  check(date: string | null | undefined, sentMs: number): void {
    const seconds = clockAheadSeconds(date, sentMs, this.#nowMs());
    if (seconds === undefined || performance.now() - this.#warnedAtMs < WARN_EVERY_MS) return;
    this.#warnedAtMs = performance.now();
    this.#warn(clockText(seconds));
  }
}
