/** Deterministic ES256 signatures: RFC 6979, with P-256 and SHA-256. For vectors only; it is slow and not constant-time. */
import { createECDH, createHash, createHmac } from 'node:crypto';

/** The order of P-256's base point (FIPS 186-5, SP 800-186 section 3.2.1.3). */
export const P256_ORDER = 0xffffffff00000000ffffffffffffffffbce6faada7179e84f3b9cac2fc632551n;

/**
 * @param d the private key, 32 bytes
 * @returns `r || s`, 64 bytes
 */
export function signEs256Deterministically(d: Uint8Array, message: Uint8Array): Buffer {
  const digest = createHash('sha256').update(message).digest();
  const k = deterministicK(Buffer.from(d), digest);
  const ecdh = createECDH('prime256v1');
  ecdh.setPrivateKey(bytesOf(k));
  const r = integerOf(ecdh.getPublicKey().subarray(1, 33)) % P256_ORDER;
  const s = (inverse(k) * ((integerOf(digest) + r * integerOf(d)) % P256_ORDER)) % P256_ORDER;
  return Buffer.concat([bytesOf(r), bytesOf(s)]);
}

/** RFC 6979 section 3.2. The order has as many bits as the digest, so the first candidate is nearly always good. */
function deterministicK(d: Buffer, digest: Buffer): bigint {
  const seed = Buffer.concat([d, bytesOf(integerOf(digest) % P256_ORDER)]);
  let key: Buffer = Buffer.alloc(32, 0);
  let value: Buffer = Buffer.alloc(32, 1);
  for (const separator of [0, 1]) {
    key = hmac(key, value, Buffer.of(separator), seed);
    value = hmac(key, value);
  }
  for (;;) {
    value = hmac(key, value);
    const k = integerOf(value);
    if (k > 0n && k < P256_ORDER) return k;
    key = hmac(key, value, Buffer.of(0));
    value = hmac(key, value);
  }
}

function hmac(key: Buffer, ...parts: readonly Buffer[]): Buffer {
  return createHmac('sha256', key).update(Buffer.concat(parts)).digest();
}

/** Fermat: the order is prime. */
function inverse(value: bigint): bigint {
  let result = 1n;
  let base = value % P256_ORDER;
  for (let exponent = P256_ORDER - 2n; exponent > 0n; exponent >>= 1n) {
    if (exponent & 1n) result = (result * base) % P256_ORDER;
    base = (base * base) % P256_ORDER;
  }
  return result;
}

function integerOf(bytes: Uint8Array): bigint {
  return BigInt(`0x${Buffer.from(bytes).toString('hex')}`);
}

function bytesOf(value: bigint): Buffer {
  return Buffer.from(value.toString(16).padStart(64, '0'), 'hex');
}
