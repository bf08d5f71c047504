/** Defaults of both replay stores. Source: docs/protocol.md "Replay". */

export const DEFAULT_HOLDER_QUOTA_PER_MINUTE = 600_000;

/** The system's wall clock, seconds since the epoch, with fractions. */
export function systemClockSeconds(): number {
  return Date.now() / 1000;
}
