/**
 * Whether a passport, a proof, a key or a bundle is valid at a moment, given how far clocks may be apart. A time that is
 * not a number is not valid.
 * Source: docs/protocol.md "Transcript".
 */

export function hasStarted(startSeconds: number, nowSeconds: number, skewSeconds: number): boolean {
  return nowSeconds >= startSeconds - skewSeconds;
}

export function hasEnded(endSeconds: number, nowSeconds: number, skewSeconds: number): boolean {
  return !(nowSeconds < endSeconds + skewSeconds);
}
