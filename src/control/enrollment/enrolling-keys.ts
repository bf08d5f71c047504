/**
 * Public keys of workloads. The same key comes with a challenge, a submission and every poll; checking its point costs
 * more than all else that is done for one of them, so keys that were found sound are remembered.
 */
import { LRUCache } from 'lru-cache';
import { importPublicKey, type PublicKey, parsePublicJwk } from '../../protocol/public-key.ts';

const MAX_REMEMBERED_KEYS = 10_000;

export class EnrollingKeys {
  /** By the coordinate, which is all that an Ed25519 key is. */
  readonly #sound = new LRUCache<string, PublicKey>({ max: MAX_REMEMBERED_KEYS });

  /** Undefined for whatever is not an Ed25519 key that can be used. */
  import(value: unknown): PublicKey | undefined {
    const jwk = parsePublicJwk(value);
    if (jwk?.kty !== 'OKP') return undefined;
    const key = this.#sound.get(jwk.x) ?? importPublicKey(jwk);
    if (key !== undefined) this.#sound.set(jwk.x, key);
    return key;
  }

  /** Of a row, where it was put after it had been found sound. */
  stored(publicJwk: string): PublicKey {
    const key = this.import(JSON.parse(publicJwk));
    if (key === undefined) throw new Error('a stored public key cannot be used');
    return key;
  }
}
