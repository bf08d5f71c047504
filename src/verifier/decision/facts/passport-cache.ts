/**
 * Caches passports whose signature has been verified, so that most requests cost one signature verification. An entry
 * states only that these bytes carry a valid signature by the key with that thumbprint, and the holder key. Everything
 * else about a passport is evaluated against the current bundle each time. Passports with invalid signatures are not
 * cached, so they cannot evict valid entries.
 */
import { LRUCache } from 'lru-cache';
import { MAX_SKEW_SECONDS } from '../../../protocol/limits.ts';
import type { Passport } from '../../../protocol/passport.ts';
import type { PublicKey } from '../../../protocol/public-key.ts';
import { hasEnded } from '../../../protocol/validity.ts';

interface VerifiedPassport {
  readonly passport: Passport;
  /** RFC 7638 thumbprint of the key that verified the signature. */
  readonly verifiedByThumbprint: string;
  /** The validated key in `cnf`; undefined when its point is invalid. */
  readonly holder: PublicKey | undefined;
}

export interface PassportCache {
  /** @param sha256 base64url SHA-256 of the compact JWS */
  get(sha256: string): VerifiedPassport | undefined;
  /** @param nowSeconds the clock of the decision, used to remove expired entries from time to time */
  remember(entry: VerifiedPassport, nowSeconds: number): void;
}

/**
 * Maximum size of the cached passports, with an allowance for each entry's objects: some 20,000 usual ones. A caller may have
 * thousands of 8 KiB passports signed for itself, and memory must stay bounded.
 */
const MAX_BYTES = 32 * 1024 * 1024;
const ENTRY_ALLOWANCE_BYTES = 1024;
/** Interval between sweeps over all entries; a sweep takes about a millisecond for a full cache. */
const SWEEP_INTERVAL_SECONDS = 30;

export interface KeptPassports extends PassportCache {
  readonly size: number;
}

/** Without a maximum number of entries, it allocates no room in advance: an explanation needs one entry. */
export function createPassportCache(maxBytes = MAX_BYTES): KeptPassports {
  const entries = new LRUCache<string, VerifiedPassport>({
    maxSize: maxBytes,
    sizeCalculation: ({ passport }) => passport.signingInput.byteLength + ENTRY_ALLOWANCE_BYTES,
  });
  let sweptSeconds = Number.NEGATIVE_INFINITY;

  function sweep(nowSeconds: number): void {
    sweptSeconds = nowSeconds;
    for (const [sha256, { passport }] of entries.entries()) {
      // Expired even with the largest skew that a bundle may state, so no bundle can accept it.
      if (hasEnded(passport.claims.expiresAtSeconds, nowSeconds, MAX_SKEW_SECONDS)) entries.delete(sha256);
    }
  }

  return {
    get size() {
      return entries.size;
    },
    get: (sha256) => entries.get(sha256),
    remember(entry, nowSeconds) {
      // A clock that went back triggers a sweep too.
      if (Math.abs(nowSeconds - sweptSeconds) >= SWEEP_INTERVAL_SECONDS) sweep(nowSeconds);
      entries.set(entry.passport.sha256, entry);
    },
  };
}
