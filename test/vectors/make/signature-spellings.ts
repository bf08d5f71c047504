/** Changed signatures: other encodings of the same signature, and invalid ones. All in base64url. */

import { P256_ORDER } from './deterministic-es256.ts';

/** The order of Ed25519's group: S plus this is another spelling of the same signature. */
const ED25519_ORDER = 2n ** 252n + 27742317777372353535851937790883648493n;

export function withLargerS(signature: string): string {
  const bytes = Buffer.from(signature, 'base64url');
  let s = BigInt(`0x${Buffer.from(bytes.subarray(32)).reverse().toString('hex')}`) + ED25519_ORDER;
  for (let index = 32; index < 64; index++, s >>= 8n) bytes[index] = Number(s & 0xffn);
  return bytes.toString('base64url');
}

export function withBitChanged(signature: string, index: number): string {
  const bytes = Buffer.from(signature, 'base64url');
  bytes[index] = (bytes[index] ?? 0) ^ 1;
  return bytes.toString('base64url');
}

export function withOtherS(signature: string): string {
  const bytes = Buffer.from(signature, 'base64url');
  const s = P256_ORDER - BigInt(`0x${bytes.subarray(32).toString('hex')}`);
  return Buffer.concat([
    bytes.subarray(0, 32),
    Buffer.from(s.toString(16).padStart(64, '0'), 'hex'),
  ]).toString('base64url');
}
