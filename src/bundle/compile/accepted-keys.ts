/**
 * Caches keys that have been validated. Validating an Ed25519 key costs as much as a signature verification, so a
 * bundle with few changes loads in the time that its new keys take.
 */
import { importPublicKey } from '../../protocol/import-public-key.ts';
import type { PublicJwk, PublicKey } from '../../protocol/public-key.ts';

export class AcceptedKeys {
  /** Keys of the last loaded bundle, and of the last attempt, which may have failed half-way. */
  #loaded: ReadonlyMap<string, PublicKey> = new Map();
  #attempted: ReadonlyMap<string, PublicKey> = new Map();

  /** Starts an attempt to load a bundle. When it succeeds, keys that it did not use are removed. */
  begin(): KeyAttempt {
    const used = new Map<string, PublicKey>();
    const before = [this.#attempted, this.#loaded];
    this.#attempted = used;
    return {
      importKey: (jwk) => {
        const name = nameOf(jwk);
        const key = used.get(name) ?? before[0]?.get(name) ?? before[1]?.get(name) ?? importPublicKey(jwk);
        if (key !== undefined) used.set(name, key);
        return key;
      },
      succeeded: () => {
        this.#loaded = used;
        this.#attempted = used;
      },
    };
  }
}

export interface KeyAttempt {
  importKey(jwk: PublicJwk): PublicKey | undefined;
  succeeded(): void;
}

/** The key itself, so that only this exact key matches. */
function nameOf(jwk: PublicJwk): string {
  return jwk.kty === 'OKP' ? jwk.x : `${jwk.x}.${jwk.y}`;
}
