/**
 * Computes how far this clock differs from a server's, from the `Date` of its answer. Verifiers deny proofs if the
 * clocks differ too much.
 */
import { DEFAULT_SKEW_SECONDS } from '../../protocol/limits.ts';

/** `Date` has whole seconds, and the answer takes time to arrive. */
const TOLERANCE_MS = (DEFAULT_SKEW_SECONDS + 1) * 1000;

/**
 * Whole seconds that this clock is ahead, negative when it is behind; undefined for a difference that verifiers accept
 * by default.
 * @param date `Date` header of the answer @param sentMs when the request was sent
 */
export function clockAheadSeconds(
  date: string | null | undefined,
  sentMs: number,
  nowMs: number,
): number | undefined {
  const theirsMs = Date.parse(date ?? '');
  // The server read its clock between `sentMs` and `nowMs`.
  const aheadMs = theirsMs < sentMs ? sentMs - theirsMs : Math.min(nowMs - theirsMs, 0);
  return Math.abs(aheadMs) > TOLERANCE_MS ? Math.round(aheadMs / 1000) : undefined;
}

export function clockText(aheadSeconds: number): string {
  const side = aheadSeconds > 0 ? 'ahead of' : 'behind';
  return `this clock is ${Math.abs(aheadSeconds)} s ${side} the server's; verifiers accept ${DEFAULT_SKEW_SECONDS} s by default: synchronize it`;
}
