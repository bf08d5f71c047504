/** Parses `Retry-After` (RFC 9110 section 10.2.3): whole seconds, or a date. */

/** Maximum wait; longer requests are capped. */
const MAX_RETRY_AFTER_MS = 3_600_000;

/** Milliseconds from now; undefined for a missing, repeated or invalid header. */
export function parseRetryAfterMs(header: string | string[] | undefined, nowMs: number): number | undefined {
  if (typeof header !== 'string') return undefined;
  const afterMs = /^[0-9]{1,9}$/.test(header) ? Number(header) * 1000 : dateOf(header) - nowMs;
  return Number.isNaN(afterMs) ? undefined : Math.min(Math.max(afterMs, 0), MAX_RETRY_AFTER_MS);
}

/** Accepts only IMF-fixdate: `Sun, 06 Nov 1994 08:49:37 GMT`. Date.parse alone also accepts a bare year. */
function dateOf(text: string): number {
  return /^[A-Z][a-z]{2}, [0-9]{2} [A-Z][a-z]{2} [0-9]{4} [0-9:]{8} GMT$/.test(text)
    ? Date.parse(text)
    : Number.NaN;
}
