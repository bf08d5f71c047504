/**
 * Holder keys that are not valid curve points, vouched for by a broker: their format is valid, so only the claims can be
 * rejected.
 */
import { Point } from '@noble/ed25519';
import { OTHER_TEST_KEYS } from '../fixtures/test-keys.ts';
import { BROKER, type VectorCase } from './vector-case.ts';

/** A point of order 8 (CCTV, Wycheproof and others list it). */
const ORDER_8 = 'c7176a703d4dd84fba3c0b760d10670f2a2053fa2c39ccc64ec7fd7792ac037a';

function mixedOrder(): string {
  const { jwk } = OTHER_TEST_KEYS.holder.publicKey;
  return Point.fromHex(Buffer.from(jwk.x, 'base64url').toString('hex')).add(Point.fromHex(ORDER_8)).toHex();
}

const ED25519_KEYS: readonly (readonly [string, string])[] = [
  ['the neutral element', `01${'00'.repeat(31)}`],
  ['of order 2', `ec${'ff'.repeat(30)}7f`],
  ['of order 4', '00'.repeat(32)],
  ['of order 8', ORDER_8],
  ['of mixed order', mixedOrder()],
  ['y not below p', `ee${'ff'.repeat(30)}7f`],
  ['a sign bit where x is 0', `01${'00'.repeat(30)}80`],
  ['not on the curve', `02${'00'.repeat(31)}`],
];

const base64url = (hex: string) => Buffer.from(hex, 'hex').toString('base64url');

export const KEY_CASES: readonly VectorCase[] = [
  ...ED25519_KEYS.map(([name, x]) => ({ name, jwk: { kty: 'OKP', crv: 'Ed25519', x: base64url(x) } })),
  {
    name: 'P-256, not on the curve',
    jwk: { kty: 'EC', crv: 'P-256', x: base64url('01'.repeat(32)), y: base64url('01'.repeat(32)) },
  },
  {
    name: 'P-256, zero',
    jwk: { kty: 'EC', crv: 'P-256', x: base64url('00'.repeat(32)), y: base64url('00'.repeat(32)) },
  },
].map(({ name, jwk }) => ({
  name: `holder key: ${name}`,
  plan: BROKER,
  edits: { claims: (draft: { [claim: string]: unknown }) => void Object.assign(draft, { cnf: { jwk } }) },
  outcome: 'invalid_request_proof/claims_not_allowed 401',
}));
