/**
 * Passports whose signature has been verified, so that the steady state costs one verification a request.
 * An entry says no more than: these bytes carry a good signature by the key with that thumbprint, and this is
 * their holder key. Everything else about a passport is evaluated against the current bundle each time.
 * Junk never gets in, so it cannot push good entries out.
 */
import { LRUCache } from 'lru-cache';
import type { Passport } from '../protocol/passport.ts';
import type { PublicKey } from '../protocol/public-key.ts';

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
  remember(entry: VerifiedPassport): void;
}

/** About 4 KiB an entry. */
const DEFAULT_MAX_ENTRIES = 20_000;

export function createPassportCache(maxEntries = DEFAULT_MAX_ENTRIES): PassportCache {
  const entries = new LRUCache<string, VerifiedPassport>({ max: maxEntries });
  return {
    get: (sha256) => entries.get(sha256),
    remember: (entry) => void entries.set(entry.passport.sha256, entry),
  };
}
