import { randomFillSync } from 'node:crypto';
import type { ReplayClaim } from '../../../src/verifier/replay/store.ts';

export const SKEW_SECONDS = 2;

/** Far enough ahead of now to be beyond every fence of these tests: a store does not judge a proof's times. */
const ISSUED_AHEAD_SECONDS = 200;

/** Filled at once, because tests need a million identifiers. */
const random = Buffer.alloc(32 * 1024);
let used = random.length;

export function randomIdentifier(): string {
  if (used === random.length) {
    randomFillSync(random);
    used = 0;
  }
  used += 32;
  return random.toString('base64url', used - 32, used);
}

/** A valid claim at the given clock. */
export function claimAt(nowSeconds: number, changes: Partial<ReplayClaim> = {}): ReplayClaim {
  return {
    identifier: randomIdentifier(),
    holderThumbprint: randomIdentifier(),
    subjectHash: randomIdentifier(),
    issuedAtSeconds: nowSeconds + ISSUED_AHEAD_SECONDS,
    expiresAtSeconds: nowSeconds + ISSUED_AHEAD_SECONDS + 60,
    skewSeconds: SKEW_SECONDS,
    nowSeconds,
    ...changes,
  };
}
