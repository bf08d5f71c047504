/**
 * Caches access tokens whose signature has been verified, as `passport-cache.ts` does passports. An entry states only that these
 * bytes carry a valid signature by the key with that thumbprint, and the holder key.
 */
import { LRUCache } from 'lru-cache';
import type { AccessToken } from '../../../protocol/access-token.ts';
import type { PublicKey } from '../../../protocol/public-key.ts';

export interface VerifiedToken {
  readonly token: AccessToken;
  /** RFC 7638 thumbprint of the key that verified the signature. */
  readonly verifiedByThumbprint: string;
  /** The key with the thumbprint in `cnf`, whose point is valid. */
  readonly holder: PublicKey;
}

export interface TokenCache {
  /** @param sha256 base64url SHA-256 of the compact JWS */
  get(sha256: string): VerifiedToken | undefined;
  remember(entry: VerifiedToken): void;
}

const MAX_BYTES = 16 * 1024 * 1024;
/** Parsed claims take several times their bytes. */
const BYTES_FOR_EACH = 8;
const ENTRY_ALLOWANCE_BYTES = 1024;

export function createTokenCache(maxBytes = MAX_BYTES): TokenCache {
  const entries = new LRUCache<string, VerifiedToken>({
    maxSize: maxBytes,
    sizeCalculation: ({ token }) => BYTES_FOR_EACH * token.signingInput.byteLength + ENTRY_ALLOWANCE_BYTES,
  });
  return {
    get: (sha256) => entries.get(sha256),
    remember: (entry) => void entries.set(entry.token.sha256, entry),
  };
}
