/**
 * Says beside a denial how far the signer's clock is from the server's: an application in any language sees it, and cannot
 * know the clock that signed. Source: docs/operate/signer.md "A wrong clock".
 */

import type { HeaderLines } from '../../../process/http-proxy/client-exchange.ts';
import { CLOCK_AHEAD_HEADER, REASON_HEADER } from '../../../protocol/wire-names.ts';
import { clockAheadSeconds } from '../../sign/clock-difference.ts';

export interface DeniedTimes {
  /** When the request was sent, and now: by the clock that signed. */
  readonly sentMs: number;
  readonly nowMs: number;
}

/** Undefined for an answer that is no such denial, and for a clock that is right. */
export function deniedClockAhead(upstream: HeaderLines, { nowMs, sentMs }: DeniedTimes): number | undefined {
  const first = (wanted: string) => upstream.find(([name]) => name.toLowerCase() === wanted)?.[1];
  if (first(REASON_HEADER) !== 'invalid_request_proof') return undefined;
  return clockAheadSeconds(first('date'), sentMs, nowMs);
}

/** No upstream may say it. */
export const OWN_HEADERS: ReadonlySet<string> = new Set([CLOCK_AHEAD_HEADER]);
