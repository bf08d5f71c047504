import { timingSafeEqual } from 'node:crypto';

/** Compares in constant time. The lengths are not secret. */
export function isSameSecret(one: string, other: string): boolean {
  const oneBytes = Buffer.from(one);
  const otherBytes = Buffer.from(other);
  return oneBytes.length === otherBytes.length && timingSafeEqual(oneBytes, otherBytes);
}
