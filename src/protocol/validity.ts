/**
 * Whether a passport, a proof, a key or a bundle is valid at a given time, allowing for clock skew. A time that is not
 * a number is invalid. Its bounds are in `limits.ts`; the skew is the bundle's `skew_seconds`.
 * Source: docs/design/protocol.md "Transcript".
 */

export function hasStarted(startSeconds: number, nowSeconds: number, skewSeconds: number): boolean {
  return nowSeconds >= startSeconds - skewSeconds;
}

export function hasEnded(endSeconds: number, nowSeconds: number, skewSeconds: number): boolean {
  return !(nowSeconds < endSeconds + skewSeconds);
}

/** Whether the value is a time: whole seconds since the epoch, after it. */
export function isSeconds(value: unknown): value is number {
  return typeof value === 'number' && Number.isSafeInteger(value) && value > 0;
}
