/**
 * Nonces that a verifier gives to DPoP clients: a time and a MAC over it and the site, so that nothing is kept for one and
 * all replicas with the key know each other's.
 * Source: RFC 9449 section 9.
 */
import { createHmac, timingSafeEqual } from 'node:crypto';
import { decodeBase64url } from './base64url.ts';

/** How long a client may use one. */
export const DPOP_NONCE_SECONDS = 300;

export const DPOP_NONCE_KEY_BYTES = 32;
const TIME_BYTES = 6;
const MAC_BYTES = 16;
/** Keeps the MACs of nonces apart from others that a key might serve. */
const LABEL = 'proofgate-dpop-nonce-v1\n';

export interface DpopNonces {
  /** A new nonce: 30 characters of the base64url alphabet. */
  issue(nowSeconds: number): string;
  /** Whether one of the keys made it for this site, and it is still to be used. Up to `skewSeconds` from another clock's future. */
  accepts(nonce: string, nowSeconds: number, skewSeconds: number): boolean;
}

/**
 * @param keys of at least 32 bytes: the first makes nonces, all are accepted, so that replicas can change keys one by one
 */
export function createDpopNonces(authSite: string, keys: readonly [Buffer, ...Buffer[]]): DpopNonces {
  const macOf = (key: Buffer, time: Buffer) => {
    return createHmac('sha256', key)
      .update(LABEL)
      .update(`${authSite}\n`)
      .update(time)
      .digest()
      .subarray(0, MAC_BYTES);
  };
  return {
    issue(nowSeconds) {
      const time = Buffer.alloc(TIME_BYTES);
      time.writeUIntBE(nowSeconds, 0, TIME_BYTES);
      return Buffer.concat([time, macOf(keys[0], time)]).toString('base64url');
    },
    accepts(nonce, nowSeconds, skewSeconds) {
      const bytes = decodeBase64url(nonce);
      if (bytes?.length !== TIME_BYTES + MAC_BYTES) return false;
      const time = bytes.subarray(0, TIME_BYTES);
      const issuedSeconds = time.readUIntBE(0, TIME_BYTES);
      const mac = bytes.subarray(TIME_BYTES);
      const isOurs = keys.some((key) => timingSafeEqual(macOf(key, time), mac));
      return (
        isOurs && issuedSeconds <= nowSeconds + skewSeconds && nowSeconds < issuedSeconds + DPOP_NONCE_SECONDS
      );
    },
  };
}
