import { createPublicKey, generateKeyPairSync } from 'node:crypto';
import { describe, expect, it } from '@jest/globals';
import { Point } from '@noble/ed25519';
import fc from 'fast-check';
import { calculateJwkThumbprint } from 'jose';
import { importPublicJwk, importPublicKey } from '../../src/protocol/import-public-key.ts';
import {
  algorithmOf,
  type PublicJwk,
  parsePublicJwk,
  sameJwk,
  thumbprintOf,
} from '../../src/protocol/public-key.ts';
import { ed25519KeyOfSeed, hexToBase64url, P256_KEY, TEST_1 } from '../support/protocol/fixtures.ts';

const ED25519 = TEST_1.publicKey.jwk;
const P256 = P256_KEY.publicKey.jwk;

/** The field prime of edwards25519. */
const P = 2n ** 255n - 19n;
const SIGN_BIT = 2n ** 255n;

function littleEndian(value: bigint): string {
  return Buffer.from(value.toString(16).padStart(64, '0'), 'hex').reverse().toString('base64url');
}

function ed25519Jwk(x: string): PublicJwk {
  return { kty: 'OKP', crv: 'Ed25519', x };
}

/** All points of order 1, 2, 4 and 8, made from one of order 8. */
const TORSION_POINTS: readonly Point[] = (() => {
  const generator = Point.fromHex('26e8958fc2b227b045c3f489f2ef98f0d5dfac05d3c63339b13802886d53fc05');
  const points = [Point.ZERO];
  for (let point = generator; !point.equals(Point.ZERO); point = point.add(generator)) points.push(point);
  return points;
})();

function encode(point: Point): string {
  return Buffer.from(point.toBytes()).toString('base64url');
}

describe('thumbprints', () => {
  it('are those of RFC 8037 appendix A.3', () => {
    expect(TEST_1.publicKey.thumbprint).toBe('kPrK_qmxVWaYVA9wwBF6Iuo3vVzz7TxHCTwXBygrS4k');
  });

  it('equal what jose computes', async () => {
    const jwks = [ED25519, P256];
    for (let i = 0; i < 20; i++) {
      const ed25519 = generateKeyPairSync('ed25519').publicKey.export({ format: 'jwk' });
      const p256 = generateKeyPairSync('ec', { namedCurve: 'P-256' }).publicKey.export({ format: 'jwk' });
      for (const jwk of [ed25519, p256]) jwks.push(importPublicJwk(jwk)?.jwk ?? ED25519);
    }
    for (const jwk of jwks) expect(thumbprintOf(jwk)).toBe(await calculateJwkThumbprint({ ...jwk }));
    expect(new Set(jwks.map(thumbprintOf)).size).toBe(42);
  });
});

describe('parsePublicJwk', () => {
  it('reads both kinds, and imports them', () => {
    for (const jwk of [ED25519, P256]) {
      expect(parsePublicJwk({ ...jwk })).toEqual(jwk);
      expect(importPublicJwk({ ...jwk })).toMatchObject({
        jwk,
        algorithm: algorithmOf(jwk),
        thumbprint: thumbprintOf(jwk),
      });
    }
    expect([ED25519, P256].map(algorithmOf)).toEqual(['Ed25519', 'ES256']);
  });

  const x = '11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo';
  const shortX = hexToBase64url('00'.repeat(31));
  const longX = hexToBase64url('00'.repeat(33));
  it.each<[string, unknown]>([
    ['null', null],
    ['text', 'key'],
    ['a list', [ED25519]],
    ['nothing in it', {}],
    ['the private key', { ...ED25519, d: x }],
    ['a key ID', { ...ED25519, kid: 'a' }],
    ['an algorithm', { ...ED25519, alg: 'Ed25519' }],
    ['a use', { ...ED25519, use: 'sig' }],
    ['y beside an Ed25519 key', { ...ED25519, y: x }],
    ['no x', { kty: 'OKP', crv: 'Ed25519' }],
    ['x that is a number', { ...ED25519, x: 1 }],
    ['x with padding', { ...ED25519, x: `${x}=` }],
    ['x in the other alphabet', { ...ED25519, x: '11qYAYKxCrfVS/7TyWQHOg7hcvPapiMlrwIaaPcHURo' }],
    ['x with a stray bit', { ...ED25519, x: '11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURp' }],
    ['x of 31 bytes', { ...ED25519, x: shortX }],
    ['x of 33 bytes', { ...ED25519, x: longX }],
    ['X25519', { ...ED25519, crv: 'X25519' }],
    ['Ed448', { ...ED25519, crv: 'Ed448' }],
    ['the names in other case', { kty: 'okp', crv: 'ed25519', x }],
    ['an EC key on Ed25519', { kty: 'EC', crv: 'Ed25519', x }],
    ['an OKP key on P-256', { ...P256, kty: 'OKP' }],
    ['P-384', { ...P256, crv: 'P-384' }],
    ['secp256k1', { ...P256, crv: 'secp256k1' }],
    ['no y', { kty: 'EC', crv: 'P-256', x: P256.x }],
    ['y of 31 bytes', { ...P256, y: shortX }],
    ['y that is null', { ...P256, y: null }],
    ['the private P-256 key', { ...P256, d: x }],
    ['a symmetric key', { kty: 'oct', k: x }],
    ['an RSA key', { kty: 'RSA', n: x, e: 'AQAB' }],
  ])('refuses %s', (_, value) => {
    expect(parsePublicJwk(value)).toBeUndefined();
    expect(importPublicJwk(value)).toBeUndefined();
  });
});

describe('Ed25519 points that are refused', () => {
  it('eight of small order', () => {
    expect(TORSION_POINTS).toHaveLength(8);
    for (const point of TORSION_POINTS) expect(importPublicKey(ed25519Jwk(encode(point)))).toBeUndefined();
  });

  it('eight classes of mixed order: a good point plus each of small order', () => {
    const good = Point.fromBytes(Buffer.from(ED25519.x, 'base64url'));
    const accepted = TORSION_POINTS.map((point) => importPublicKey(ed25519Jwk(encode(good.add(point)))));
    expect(accepted.map((key) => key !== undefined)).toEqual([true, ...Array(7).fill(false)]);
  });

  it('that OpenSSL would take', () => {
    const mixed = Point.fromBytes(Buffer.from(ED25519.x, 'base64url')).add(TORSION_POINTS[1] ?? Point.ZERO);
    const jwk = { ...ed25519Jwk(encode(mixed)) };
    expect(createPublicKey({ key: jwk, format: 'jwk' }).asymmetricKeyType).toBe('ed25519');
    expect(importPublicKey(ed25519Jwk(encode(mixed)))).toBeUndefined();
  });

  it('every encoding that is not canonical: y from p to 2^255 - 1, with either sign', () => {
    for (let y = P; y < SIGN_BIT; y++) {
      expect(importPublicKey(ed25519Jwk(littleEndian(y)))).toBeUndefined();
      expect(importPublicKey(ed25519Jwk(littleEndian(y + SIGN_BIT)))).toBeUndefined();
    }
  });

  it('x = 0 with the sign bit', () => {
    expect(importPublicKey(ed25519Jwk(littleEndian(1n + SIGN_BIT)))).toBeUndefined();
    expect(importPublicKey(ed25519Jwk(littleEndian(P - 1n + SIGN_BIT)))).toBeUndefined();
  });

  it('off the curve', () => {
    // y = 2 has no x (RFC 8032 section 5.1.3, step 3).
    expect(importPublicKey(ed25519Jwk(littleEndian(2n)))).toBeUndefined();
  });

  it('every point of 32 random bytes that is not k times the base point', () => {
    const seen = { accepted: 0, refused: 0 };
    fc.assert(
      fc.property(fc.uint8Array({ minLength: 32, maxLength: 32 }), (bytes) => {
        const key = importPublicKey(ed25519Jwk(Buffer.from(bytes).toString('base64url')));
        expect(key !== undefined).toBe(isMultipleOfBase(bytes));
        seen[key === undefined ? 'refused' : 'accepted'] += 1;
      }),
      { numRuns: 100 },
    );
    expect(seen.refused).toBeGreaterThan(seen.accepted);
  });
});

/** Multiplies by the group's order by the definition, without the library's own test. */
function isMultipleOfBase(bytes: Uint8Array): boolean {
  const order = 2n ** 252n + 27742317777372353535851937790883648493n;
  let sum = Point.ZERO;
  let addend: Point;
  try {
    addend = Point.fromBytes(bytes);
  } catch {
    return false;
  }
  if (addend.equals(Point.ZERO)) return false;
  for (let rest = order; rest > 0n; rest >>= 1n) {
    if ((rest & 1n) === 1n) sum = sum.add(addend);
    addend = addend.double();
  }
  return sum.equals(Point.ZERO);
}

describe('Ed25519 points that are accepted', () => {
  it('those of any private key', () => {
    fc.assert(
      fc.property(fc.uint8Array({ minLength: 32, maxLength: 32 }), (seed) => {
        const key = ed25519KeyOfSeed(Buffer.from(seed).toString('hex'));
        expect(key.publicKey.keyObject.export({ format: 'jwk' })).toEqual(key.publicKey.jwk);
      }),
      { numRuns: 30 },
    );
  });
});

/** The field prime of P-256. */
const P256_PRIME = 2n ** 256n - 2n ** 224n + 2n ** 192n + 2n ** 96n - 1n;

function p256Jwk(x: bigint, y: bigint): PublicJwk {
  const coordinate = (value: bigint) => hexToBase64url(value.toString(16).padStart(64, '0'));
  return { kty: 'EC', crv: 'P-256', x: coordinate(x), y: coordinate(y) };
}

/** The point of P-256 with the smallest positive x (y found by Fermat, the prime is 3 modulo 4). */
function smallPoint(): { readonly x: bigint; readonly y: bigint } {
  const b = 0x5ac635d8aa3a93e7b3ebbd55769886bc651d06b0cc53b0f63bce3c3e27d2604bn;
  for (let x = 1n; ; x++) {
    const square = (((x ** 3n - 3n * x + b) % P256_PRIME) + P256_PRIME) % P256_PRIME;
    const y = power(square, (P256_PRIME + 1n) / 4n, P256_PRIME);
    if ((y * y) % P256_PRIME === square) return { x, y };
  }
}

function power(base: bigint, exponent: bigint, modulus: bigint): bigint {
  let result = 1n;
  let factor = base;
  for (let rest = exponent; rest > 0n; rest >>= 1n) {
    if ((rest & 1n) === 1n) result = (result * factor) % modulus;
    factor = (factor * factor) % modulus;
  }
  return result;
}

describe('P-256 points', () => {
  const { x, y } = smallPoint();

  it('on the curve are accepted, with either y', () => {
    expect(importPublicKey(p256Jwk(x, y))?.algorithm).toBe('ES256');
    expect(importPublicKey(p256Jwk(x, P256_PRIME - y))?.algorithm).toBe('ES256');
  });

  it.each([
    ['off the curve, by y', p256Jwk(x, y + 1n)],
    ['off the curve, by x', p256Jwk(x + P256_PRIME / 2n, y)],
    ['zero', p256Jwk(0n, 0n)],
    ['x not reduced', p256Jwk(x + P256_PRIME, y)],
    ['both the largest number of 32 bytes', p256Jwk(2n ** 256n - 1n, 2n ** 256n - 1n)],
    ['x and y swapped', p256Jwk(y, x)],
  ])('are refused: %s', (_, jwk) => {
    expect(parsePublicJwk({ ...jwk })).toEqual(jwk);
    expect(importPublicKey(jwk)).toBeUndefined();
  });
});

describe('sameJwk', () => {
  const ec = (x: string, y: string): PublicJwk => ({ kty: 'EC', crv: 'P-256', x, y });
  const one = hexToBase64url('01'.repeat(32));
  const two = hexToBase64url('02'.repeat(32));

  it.each([
    ['two of Ed25519', ed25519Jwk(one), ed25519Jwk(one)],
    ['two of P-256', ec(one, two), ec(one, two)],
  ])('is so for %s with the same members', (_, a, b) => {
    expect([sameJwk(a, b), sameJwk(b, a)]).toEqual([true, true]);
  });

  it.each([
    ['another x', ed25519Jwk(one), ed25519Jwk(two)],
    ['another x, on P-256', ec(one, one), ec(two, one)],
    ['another y', ec(one, one), ec(one, two)],
    ['another kind with the same x', ed25519Jwk(one), ec(one, one)],
    ['another kind and another x', ed25519Jwk(one), ec(two, one)],
  ])('is not so with %s', (_, a, b) => {
    expect([sameJwk(a, b), sameJwk(b, a)]).toEqual([false, false]);
  });
});
