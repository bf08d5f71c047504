/** Parses the `traceparent` header. Source: W3C Trace Context section 3.2. */

export interface Traceparent {
  /** 32 lower-case hexadecimal characters. */
  readonly traceId: string;
  /** ID of the sending span: 16 lower-case hexadecimal characters. */
  readonly spanId: string;
  readonly isSampled: boolean;
}

/** Version ff and all-zero IDs are invalid; future versions may append fields (section 3.2.2). */
const TRACEPARENT =
  /^(?!ff)([0-9a-f]{2})-(?!0{32})([0-9a-f]{32})-(?!0{16})([0-9a-f]{16})-([0-9a-f]{2})(-.*)?$/;
/** Section 3.2.2.5 */
const SAMPLED = 1;

/** @returns undefined for an invalid value */
export function parseTraceparent(value: string | undefined): Traceparent | undefined {
  if (value === undefined) return undefined;
  const [, version, traceId, spanId, flags = '', rest] = TRACEPARENT.exec(value) ?? [];
  if (traceId === undefined || spanId === undefined) return undefined;
  if (version === '00' && rest !== undefined) return undefined;
  return { traceId, spanId, isSampled: (Number.parseInt(flags, 16) & SAMPLED) !== 0 };
}
