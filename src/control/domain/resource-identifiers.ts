/**
 * Generates identifiers. IDs of resources sort by creation time, so that pages follow it. References that must be
 * unguessable are fully random.
 */
import { randomBytes } from 'node:crypto';

export const ID_PREFIXES = {
  environment: 'env',
  fleet: 'flt',
  siteUid: 'su',
  target: 'tgt',
  source: 'tas',
  enrollmentPolicy: 'ep',
  challenge: 'ch',
  enrollment: 'enr',
  derivedKey: 'dk',
  signingKey: 'sk',
  roleGrant: 'rg',
  accessToken: 'at',
  auditEvent: 'ae',
} as const;
export type IdentifiedKind = keyof typeof ID_PREFIXES;

/** Crockford's base 32; its digits are in ASCII order. */
const DIGITS = '0123456789abcdefghjkmnpqrstvwxyz';

/** Such as `enr_06cz…`: 48 bits of milliseconds, then 80 random bits, 26 characters in all. */
export function newId(kind: IdentifiedKind, nowMs: number): string {
  if (!(nowMs >= 0)) throw new RangeError('an ID needs the moment at which it is made');
  const bytes = Buffer.alloc(16);
  bytes.writeUIntBE(nowMs, 0, 6);
  randomBytes(10).copy(bytes, 6);
  let value = BigInt(`0x${bytes.toString('hex')}`);
  let text = '';
  for (let digit = 0; digit < 26; digit++) {
    text = (DIGITS[Number(value & 31n)] ?? '') + text;
    value >>= 5n;
  }
  return `${ID_PREFIXES[kind]}_${text}`;
}

/** The opaque reference of an enrollment policy: 160 random bits. */
export function newPolicyReference(): string {
  return `epr_${randomBytes(20).toString('base64url')}`;
}
