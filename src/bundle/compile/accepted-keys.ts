/**
 * Keys that were checked before. Checking an Ed25519 key costs as much as a verification and says the same each time, so a
 * bundle that changes little loads in the time that its new keys cost.
 */
import { importPublicKey, type PublicJwk, type PublicKey } from '../../protocol/public-key.ts';

export class AcceptedKeys {
  /** Of the last bundle that was loaded, and of the last attempt, which may have failed half-way. */
  #loaded: ReadonlyMap<string, PublicKey> = new Map();
  #attempted: ReadonlyMap<string, PublicKey> = new Map();

  /** One attempt to load a bundle. Keys that it does not use are forgotten when it has succeeded. */
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

/** The key itself, so that nothing but this very key is recognised. */
function nameOf(jwk: PublicJwk): string {
  return jwk.kty === 'OKP' ? jwk.x : `${jwk.x}.${jwk.y}`;
}
