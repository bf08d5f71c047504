/**
 * Says of bytes whether they still hold what was signed: the very payload, and enough signatures over it by the pinned
 * keys. Written apart from the code under test: lenient where that is strict, and by `node:crypto` alone.
 */
import { type KeyObject, verify } from 'node:crypto';

export interface ExpectedSignatures {
  /** The document as it was signed. */
  readonly original: Buffer;
  readonly keys: readonly KeyObject[];
  readonly threshold: number;
}

export function isAsSigned(bytes: Buffer, { original, keys, threshold }: ExpectedSignatures): boolean {
  const [found, signed] = [readEnvelope(bytes), readEnvelope(original)];
  if (found === undefined || found.payload !== signed?.payload) return false;
  const holding = keys.filter((key) => found.signatures.some((entry) => holds(found.payload, entry, key)));
  return holding.length >= threshold;
}

interface Envelope {
  readonly payload: string;
  readonly signatures: readonly Readonly<Record<string, unknown>>[];
}

function readEnvelope(bytes: Buffer): Envelope | undefined {
  try {
    const value: Envelope = JSON.parse(bytes.toString('utf8'));
    return typeof value?.payload === 'string' && Array.isArray(value.signatures) ? value : undefined;
  } catch {
    return undefined;
  }
}

function holds(payload: string, entry: Readonly<Record<string, unknown>>, key: KeyObject): boolean {
  const message = Buffer.from(`${String(entry?.protected)}.${payload}`);
  const signature = Buffer.from(String(entry?.signature), 'base64url');
  return key.asymmetricKeyType === 'ed25519'
    ? verify(null, message, key, signature)
    : verify('sha256', message, { key, dsaEncoding: 'ieee-p1363' }, signature);
}
