/**
 * Adds to a denial how far the signer's clock differs from the server's, because the application does not know the
 * clock that signed. Source: docs/operate/signer.md "A wrong clock".
 */

import type { HeaderLines } from '../../../process/http-proxy/client-exchange.ts';
import { CLOCK_AHEAD_HEADER, REASON_HEADER } from '../../../protocol/wire-names.ts';
import { clockAheadSeconds } from '../../sign/clock-difference.ts';

export interface DeniedTimes {
  /** When the request was sent, by the clock that signed. */
  readonly sentMs: number;
  readonly nowMs: number;
}

/** Undefined unless the answer denies the proof and the clock is wrong. */
export function deniedClockAhead(upstream: HeaderLines, { nowMs, sentMs }: DeniedTimes): number | undefined {
  const first = (wanted: string) => upstream.find(([name]) => name.toLowerCase() === wanted)?.[1];
  if (first(REASON_HEADER) !== 'invalid_request_proof') return undefined;
  return clockAheadSeconds(first('date'), sentMs, nowMs);
}

/** Headers that are removed from an upstream's response, because only the signer sets them. */
export const OWN_HEADERS: ReadonlySet<string> = new Set([CLOCK_AHEAD_HEADER]);
