/**
 * Passports whose signature has been verified, so that the steady state costs one verification a request.
 * An entry says no more than: these bytes carry a good signature by the key with that thumbprint, and this is
 * their holder key. Everything else about a passport is evaluated against the current bundle each time.
 * Junk never gets in, so it cannot push good entries out.
 */
import { LRUCache } from 'lru-cache';
import { MAX_SKEW_SECONDS } from '../../protocol/limits.ts';
import type { Passport } from '../../protocol/passport.ts';
import type { PublicKey } from '../../protocol/public-key.ts';
import { hasEnded } from '../../protocol/validity.ts';

export interface VerifiedPassport {
  readonly passport: Passport;
  /** RFC 7638 thumbprint of the key that verified the signature. */
  readonly verifiedByThumbprint: string;
  /** The key in `cnf`, checked; undefined when the point was refused. */
  readonly holder: PublicKey | undefined;
}

export interface PassportCache {
  /** @param sha256 base64url SHA-256 of the compact JWS */
  get(sha256: string): VerifiedPassport | undefined;
  /** @param nowSeconds the clock of the decision: now and then, expired entries are let go of */
  remember(entry: VerifiedPassport, nowSeconds: number): void;
}

const DEFAULT_MAX_ENTRIES = 20_000;
/**
 * Most bytes of passports, with an allowance for each entry's objects: a caller may have thousands of 8 KiB
 * passports signed for itself, and memory must not follow.
 */
const MAX_BYTES = 32 * 1024 * 1024;
const ENTRY_ALLOWANCE_BYTES = 1024;
/** All entries are looked at this often, about a millisecond for a full cache. */
const SWEEP_INTERVAL_SECONDS = 30;

export interface KeptPassports extends PassportCache {
  readonly size: number;
}

export function createPassportCache(maxEntries = DEFAULT_MAX_ENTRIES): KeptPassports {
  const entries = new LRUCache<string, VerifiedPassport>({
    max: maxEntries,
    maxSize: MAX_BYTES,
    sizeCalculation: ({ passport }) => passport.signingInput.byteLength + ENTRY_ALLOWANCE_BYTES,
  });
  let sweptSeconds = Number.NEGATIVE_INFINITY;

  function sweep(nowSeconds: number): void {
    sweptSeconds = nowSeconds;
    for (const [sha256, { passport }] of entries.entries()) {
      // Expired for the largest skew that a bundle may state: of no use under any bundle.
      if (hasEnded(passport.claims.expiresAtSeconds, nowSeconds, MAX_SKEW_SECONDS)) entries.delete(sha256);
    }
  }

  return {
    get size() {
      return entries.size;
    },
    get: (sha256) => entries.get(sha256),
    remember(entry, nowSeconds) {
      // A clock that went back begins a new interval too.
      if (Math.abs(nowSeconds - sweptSeconds) >= SWEEP_INTERVAL_SECONDS) sweep(nowSeconds);
      entries.set(entry.passport.sha256, entry);
    },
  };
}
