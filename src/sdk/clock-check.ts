/** Compares the clock with the `Date` of responses: verifiers deny proofs of a clock that differs too much. */
import { DEFAULT_SKEW_SECONDS } from '../protocol/limits.ts';

const WARN_EVERY_MS = 60_000;
/** `Date` has whole seconds, and the response takes a while. */
const TOLERANCE_MS = (DEFAULT_SKEW_SECONDS + 1) * 1000;

export class ClockCheck {
  readonly #warn: (text: string) => void;
  readonly #nowMs: () => number;
  #warnedAtMs = Number.NEGATIVE_INFINITY;

  constructor(warn: (text: string) => void, nowMs: () => number) {
    this.#warn = warn;
    this.#nowMs = nowMs;
  }

  /**
   * @param date of the response that just came
   * @param sentMs when its request was sent
   */
  see(date: string | null | undefined, sentMs: number): void {
    const theirsMs = Date.parse(date ?? '');
    const nowMs = this.#nowMs();
    const differenceMs = theirsMs < sentMs ? theirsMs - sentMs : Math.max(theirsMs - nowMs, 0);
    if (!(Math.abs(differenceMs) > TOLERANCE_MS) || performance.now() - this.#warnedAtMs < WARN_EVERY_MS)
      return;
    this.#warnedAtMs = performance.now();
    const seconds = Math.round(Math.abs(differenceMs) / 1000);
    const side = differenceMs < 0 ? 'ahead of' : 'behind';
    this.#warn(
      `this clock is ${seconds} s ${side} the server's; verifiers accept ${DEFAULT_SKEW_SECONDS} s by default: synchronize it`,
    );
  }
}
