/**
 * Imports public keys of workloads and caches the valid ones. The same key arrives with a challenge, a submission and
 * every poll, and validating its point is the most expensive part of such a request.
 */
import { LRUCache } from 'lru-cache';
import { importPublicKey, type PublicKey, parsePublicJwk } from '../../protocol/public-key.ts';

const MAX_REMEMBERED_KEYS = 10_000;

export class EnrollingKeys {
  /** By the coordinate `x`, which defines an Ed25519 key. */
  readonly #sound = new LRUCache<string, PublicKey>({ max: MAX_REMEMBERED_KEYS });

  /** Undefined unless the value is a usable Ed25519 key. */
  import(value: unknown): PublicKey | undefined {
    const jwk = parsePublicJwk(value);
    if (jwk?.kty !== 'OKP') return undefined;
    const key = this.#sound.get(jwk.x) ?? importPublicKey(jwk);
    if (key !== undefined) this.#sound.set(jwk.x, key);
    return key;
  }

  /** Imports a key from a row; it was validated before it was stored. */
  stored(publicJwk: string): PublicKey {
    const key = this.import(JSON.parse(publicJwk));
    if (key === undefined) throw new Error('a stored public key cannot be used');
    return key;
  }
}
