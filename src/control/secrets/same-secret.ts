import { timingSafeEqual } from 'node:crypto';

/** Compares without telling by its duration where two texts begin to differ; their lengths are no secret. */
export function isSameSecret(one: string, other: string): boolean {
  const oneBytes = Buffer.from(one);
  const otherBytes = Buffer.from(other);
  return oneBytes.length === otherBytes.length && timingSafeEqual(oneBytes, otherBytes);
}
