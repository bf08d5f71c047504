import { describe, expect, it } from '@jest/globals';
import fc from 'fast-check';
import { MAX_ATTRIBUTES, MAX_PASSPORT_BYTES } from '../../src/protocol/limits.ts';
import { parsePassport, passportSha256 } from '../../src/protocol/passport.ts';
import { verifySignature } from '../../src/protocol/verify-signature.ts';
import {
  claimsDraft,
  headerDraft,
  type JsonDraft,
  jwsOf,
  jwsOfTexts,
  NOW_SECONDS,
  P256_KEY,
  TEST_1,
  TEST_2,
  VALID_JWS,
} from '../support/protocol/fixtures.ts';

function withHeader(change: (header: JsonDraft) => void): string {
  const header = headerDraft();
  change(header);
  return jwsOf(header, claimsDraft());
}

function withClaims(change: (claims: JsonDraft) => void): string {
  const claims = claimsDraft();
  change(claims);
  return jwsOf(headerDraft(), claims);
}

const withClaim = (name: string, value: unknown) =>
  withClaims((claims) => Object.assign(claims, { [name]: value }));

const HEADER_TEXT = JSON.stringify(headerDraft());
const CLAIMS_TEXT = JSON.stringify(claimsDraft());
const [HEADER = '', CLAIMS = '', SIGNATURE = ''] = VALID_JWS.split('.');
const encode = (text: string) => Buffer.from(text).toString('base64url');

describe('parsePassport reads', () => {
  it('every claim', () => {
    expect(parsePassport(VALID_JWS)).toEqual({
      sha256: passportSha256(VALID_JWS),
      keyId: 'broker-1',
      algorithm: 'Ed25519',
      claims: {
        issuer: 'https://broker.example',
        subject: 'spiffe://shop.example/ns/prod/sa/billing',
        trustDomain: 'shop.example',
        audience: 'https://api.shop.example',
        issuedAtSeconds: NOW_SECONDS,
        expiresAtSeconds: NOW_SECONDS + 300,
        notBeforeSeconds: NOW_SECONDS,
        keyBinding: 'attested_workload',
        holderJwk: TEST_2.publicKey.jwk,
        passportId: 'passport-1',
        provenance: new Map([['cluster', 'eu-1']]),
        context: new Map([['team', 'billing']]),
      },
      signingInput: Buffer.from(`${HEADER}.${CLAIMS}`),
      signature: Buffer.from(SIGNATURE, 'base64url'),
    });
  });

  it('what its signature covers', () => {
    const passport = parsePassport(VALID_JWS);
    expect(passport).toBeDefined();
    if (passport === undefined) return;
    expect(verifySignature(TEST_1.publicKey, passport.signingInput, passport.signature)).toBe(true);
  });

  it('ES256, and a P-256 holder key', () => {
    const jwk = P256_KEY.publicKey.jwk;
    const jws = jwsOf({ ...headerDraft(), alg: 'ES256' }, { ...claimsDraft(), cnf: { jwk } }, P256_KEY);
    expect(parsePassport(jws)).toMatchObject({ algorithm: 'ES256', claims: { holderJwk: jwk } });
  });

  // Another than signers write is read another way.
  it.each(['Ed25519', 'ES256'])('key ID and %s of a header whose members stand elsewhere', (alg) => {
    const { typ } = headerDraft();
    const kid = 'k/1';
    for (const header of [
      { kid, alg, typ },
      { alg, typ, kid },
      { typ, kid, alg },
    ]) {
      expect(parsePassport(jwsOf(header, claimsDraft()))).toMatchObject({ keyId: kid, algorithm: alg });
    }
  });

  it('as many members as there can be', () => {
    const all = attributes(MAX_ATTRIBUTES);
    const cnf = { jwk: P256_KEY.publicKey.jwk };
    const claims = { ...claimsDraft(), cnf, nbf: NOW_SECONDS, provenance: all, context: all };
    const passport = parsePassport(jwsOf({ ...headerDraft(), alg: 'ES256' }, claims, P256_KEY));
    expect(passport?.claims.context?.size).toBe(MAX_ATTRIBUTES);
  });

  it.each(['nbf', 'provenance', 'context'])('without %s', (name) => {
    const passport = parsePassport(withClaims((claims) => delete claims[name]));
    const member = name === 'nbf' ? 'notBeforeSeconds' : name;
    expect(passport?.claims).toHaveProperty(member, undefined);
  });

  it.each<[string, string]>([
    ['members in another order', jwsOf({ kid: 'k', alg: 'Ed25519', typ: headerDraft().typ }, claimsDraft())],
    ['white space between the members', jwsOfTexts(JSON.stringify(headerDraft(), null, 2), CLAIMS_TEXT)],
    ['a name spelt with an escape', jwsOfTexts(HEADER_TEXT, CLAIMS_TEXT.replace('"iss"', '"\\u0069ss"'))],
    ['empty provenance', withClaim('provenance', {})],
    ['32 attributes', withClaim('context', attributes(MAX_ATTRIBUTES))],
    ['an attribute named __proto__', jwsOfTexts(HEADER_TEXT, CLAIMS_TEXT.replace('"team"', '"__proto__"'))],
    ['an issuer of 512 characters', withClaim('iss', 'i'.repeat(512))],
    ['a key ID of 128 characters', withHeader((header) => Object.assign(header, { kid: 'k'.repeat(128) }))],
    ['an expiry before the issue: times are judged later', withClaim('exp', 1)],
    ['a holder key of small order: points are judged later', withClaim('cnf', smallOrderHolder())],
  ])('%s', (_, jws) => {
    expect(parsePassport(jws)).toBeDefined();
  });

  it.each(['spiffe://shop.example/.../A_b-C..', 'ci:a,b/../c//?d#%2e', 'SPIFFE'])('subject %s', (sub) => {
    expect(parsePassport(withClaim('sub', sub))?.claims.subject).toBe(sub);
  });

  it('an attribute named __proto__ as an attribute', () => {
    const jws = jwsOfTexts(HEADER_TEXT, CLAIMS_TEXT.replace('"team"', '"__proto__"'));
    expect(parsePassport(jws)?.claims.context).toEqual(new Map([['__proto__', 'billing']]));
  });
});

function attributes(count: number): JsonDraft {
  return Object.fromEntries(Array.from({ length: count }, (_, i) => [`name-${i}`, 'value']));
}

function smallOrderHolder(): unknown {
  return { jwk: { kty: 'OKP', crv: 'Ed25519', x: Buffer.alloc(32).toString('base64url') } };
}

describe('parsePassport refuses', () => {
  it.each<[string, string]>([
    ['nothing', ''],
    ['two parts', `${HEADER}.${CLAIMS}`],
    ['four parts', `${VALID_JWS}.`],
    ['five parts, as encrypted', `${VALID_JWS}.${CLAIMS}.${SIGNATURE}`],
    ['an empty header', `.${CLAIMS}.${SIGNATURE}`],
    ['empty claims', `${HEADER}..${SIGNATURE}`],
    ['no signature', `${HEADER}.${CLAIMS}.`],
    ['a signature of 63 bytes', `${HEADER}.${CLAIMS}.${Buffer.alloc(63).toString('base64url')}`],
    ['a signature of 65 bytes', `${HEADER}.${CLAIMS}.${Buffer.alloc(65).toString('base64url')}`],
    ['a padded signature', `${VALID_JWS}==`],
    ['stray bits in the signature', `${VALID_JWS.slice(0, -1)}${strayBits(VALID_JWS.slice(-1))}`],
    ['white space in front', ` ${VALID_JWS}`],
    ['white space behind', `${VALID_JWS} `],
    ['a line feed behind', `${VALID_JWS}\n`],
    ['white space within', VALID_JWS.replace('.', '. ')],
    ['padding in the header', `${encode(`${HEADER_TEXT} `)}=.${CLAIMS}.${SIGNATURE}`],
    ['JSON instead of base64url', `${HEADER_TEXT}.${CLAIMS}.${SIGNATURE}`],
    ['a JWS in JSON', JSON.stringify({ protected: HEADER, payload: CLAIMS, signature: SIGNATURE })],
  ])('another shape: %s', (_, jws) => {
    expect(parsePassport(jws)).toBeUndefined();
  });

  it.each<[string, string]>([
    ['no typ', withHeader((header) => delete header.typ)],
    ['no alg', withHeader((header) => delete header.alg)],
    ['no kid', withHeader((header) => delete header.kid)],
    ['another member', withHeader((header) => Object.assign(header, { cty: 'JWT' }))],
    ['crit', withHeader((header) => Object.assign(header, { crit: ['exp'] }))],
    ['b64', withHeader((header) => Object.assign(header, { b64: false }))],
    ['an embedded key', withHeader((header) => Object.assign(header, { jwk: TEST_1.publicKey.jwk }))],
    ['a key set', withHeader((header) => Object.assign(header, { jku: 'https://evil.example' }))],
    ['a certificate', withHeader((header) => Object.assign(header, { x5c: [] }))],
    ['typ JWT', withHeader((header) => Object.assign(header, { typ: 'JWT' }))],
    ['typ in capitals', withHeader((header) => Object.assign(header, { typ: 'PROOFGATE-PASSPORT+JWT' }))],
    [
      'typ as a media type',
      withHeader((header) => Object.assign(header, { typ: 'application/proofgate-passport+jwt' })),
    ],
    ['alg none', withHeader((header) => Object.assign(header, { alg: 'none' }))],
    ['alg EdDSA', withHeader((header) => Object.assign(header, { alg: 'EdDSA' }))],
    ['alg HS256', withHeader((header) => Object.assign(header, { alg: 'HS256' }))],
    ['alg RS256', withHeader((header) => Object.assign(header, { alg: 'RS256' }))],
    ['alg ES384', withHeader((header) => Object.assign(header, { alg: 'ES384' }))],
    ['alg in lower case', withHeader((header) => Object.assign(header, { alg: 'ed25519' }))],
    ['alg as a list', withHeader((header) => Object.assign(header, { alg: ['Ed25519'] }))],
    ['an empty kid', withHeader((header) => Object.assign(header, { kid: '' }))],
    ['kid of 129 characters', withHeader((header) => Object.assign(header, { kid: 'k'.repeat(129) }))],
    ['kid with a space', withHeader((header) => Object.assign(header, { kid: 'a b' }))],
    ['kid with a line feed', withHeader((header) => Object.assign(header, { kid: 'a\n' }))],
    ['kid that is a number', withHeader((header) => Object.assign(header, { kid: 1 }))],
    ['alg twice', jwsOfTexts(HEADER_TEXT.replace('"alg"', '"alg":"none","alg"'), CLAIMS_TEXT)],
    ['a list', jwsOf([headerDraft()], claimsDraft())],
    ['null', jwsOf(null, claimsDraft())],
    ['text', jwsOf('header', claimsDraft())],
    ['no JSON', jwsOfTexts('{', CLAIMS_TEXT)],
    ['two values', jwsOfTexts(`${HEADER_TEXT}{}`, CLAIMS_TEXT)],
    ['a byte order mark', jwsOfTexts(`\ufeff${HEADER_TEXT}`, CLAIMS_TEXT)],
    ['required members on the prototype', jwsOfTexts(`{"__proto__":${HEADER_TEXT}}`, CLAIMS_TEXT)],
  ])('another header: %s', (_, jws) => {
    expect(parsePassport(jws)).toBeUndefined();
  });

  it.each(['iss', 'sub', 'trust_domain', 'aud', 'iat', 'exp', 'key_binding', 'cnf', 'jti'])(
    'claims without %s',
    (name) => {
      expect(parsePassport(withClaims((claims) => delete claims[name]))).toBeUndefined();
    },
  );

  describe.each(['iss', 'sub', 'trust_domain', 'aud', 'jti'])('another text in %s', (name) => {
    it.each<[unknown]>([
      [''],
      ['a b'],
      [' a'],
      ['a\n'],
      ['a\u0000'],
      ['é'],
      ['a'.repeat(513)],
      [1],
      [null],
      [true],
      [['a']],
      [{}],
    ])('%j', (value) => {
      expect(parsePassport(withClaim(name, value))).toBeUndefined();
    });
  });

  it.each(['spiffe://shop.example', 'spiffe://shop.example/a/../b', 'SPIFFE://shop.example/a'])(
    'no canonical SPIFFE ID: %s',
    (sub) => {
      expect(parsePassport(withClaim('sub', sub))).toBeUndefined();
    },
  );

  describe.each(['iat', 'exp', 'nbf'])('another time in %s', (name) => {
    it.each<[unknown]>([[0], [-1], [1.5], ['1800000000'], [null], [true], [[1]], [2 ** 53], [1e300]])(
      '%j',
      (value) => {
        expect(parsePassport(withClaim(name, value))).toBeUndefined();
      },
    );
  });

  it.each<[unknown]>([['hardware'], ['Software'], [''], [null], [0], [['software']]])(
    'another key_binding: %j',
    (value) => {
      expect(parsePassport(withClaim('key_binding', value))).toBeUndefined();
    },
  );

  const { jwk } = TEST_2.publicKey;
  it.each<[string, unknown]>([
    ['null', null],
    ['empty', {}],
    ['a key ID', { kid: 'a' }],
    ['a thumbprint', { jkt: 'a' }],
    ['a key and something else', { jwk, kid: 'a' }],
    ['the key itself', jwk],
    ['a list', [{ jwk }]],
    ['a private key', { jwk: { ...jwk, d: jwk.x } }],
    ['a key with a key ID', { jwk: { ...jwk, kid: 'a' } }],
    ['a key with padding', { jwk: { ...jwk, x: `${jwk.x}=` } }],
    ['a symmetric key', { jwk: { kty: 'oct', k: 'AAAA' } }],
    ['a key in text', { jwk: JSON.stringify(jwk) }],
  ])('another cnf: %s', (_, cnf) => {
    expect(parsePassport(withClaim('cnf', cnf))).toBeUndefined();
  });

  describe.each(['provenance', 'context'])('another %s', (name) => {
    it.each<[string, unknown]>([
      ['null', null],
      ['text', 'a'],
      ['a list', []],
      ['33 entries', attributes(MAX_ATTRIBUTES + 1)],
      ['an empty name', { '': 'a' }],
      ['a name with a space', { 'a b': 'a' }],
      ['a name of 513 characters', { ['a'.repeat(513)]: 'a' }],
      ['an empty value', { a: '' }],
      ['a value of 513 characters', { a: 'a'.repeat(513) }],
      ['a value beyond ASCII', { a: 'é' }],
      ['a number', { a: 1 }],
      ['null within', { a: null }],
      ['an object within', { a: {} }],
      ['a list within', { a: ['b'] }],
    ])('%s', (_, value) => {
      expect(parsePassport(withClaim(name, value))).toBeUndefined();
    });
  });

  it.each<[string, string]>([
    ['another claim', withClaim('scope', 'admin')],
    ['a claim of __proto__', jwsOfTexts(HEADER_TEXT, CLAIMS_TEXT.replace('{', '{"__proto__":{},'))],
    ['a list', jwsOf(headerDraft(), [claimsDraft()])],
    ['null', jwsOf(headerDraft(), null)],
    ['no JSON', jwsOfTexts(HEADER_TEXT, CLAIMS_TEXT.slice(1))],
    ['nothing', jwsOfTexts(HEADER_TEXT, '')],
    ['a claim twice', jwsOfTexts(HEADER_TEXT, CLAIMS_TEXT.replace('{', '{"sub":"admin",'))],
    [
      'a claim twice, spelt with an escape',
      jwsOfTexts(HEADER_TEXT, CLAIMS_TEXT.replace('{', '{"s\\u0075b":"admin",')),
    ],
    ['a member of cnf twice', jwsOfTexts(HEADER_TEXT, CLAIMS_TEXT.replace('"jwk":', '"jwk":{},"jwk":'))],
    ['an attribute twice', jwsOfTexts(HEADER_TEXT, CLAIMS_TEXT.replace('"team":', '"team":"x","team":'))],
    ['bytes beyond ASCII', jwsOfTexts(HEADER_TEXT, CLAIMS_TEXT.replace('billing', 'b\u00fclling'))],
  ])('other claims: %s', (_, jws) => {
    expect(parsePassport(jws)).toBeUndefined();
  });

  it('more than 8 KiB, and not 8 KiB', () => {
    expect(parsePassport(jwsOfLength(MAX_PASSPORT_BYTES))).toBeDefined();
    expect(parsePassport(jwsOfLength(MAX_PASSPORT_BYTES + 1))).toBeUndefined();
  });

  it('a change of any one character, or gives it another hash', () => {
    fc.assert(
      fc.property(
        fc.nat(VALID_JWS.length - 1),
        fc.string({ minLength: 1, maxLength: 1 }),
        (at, character) => {
          fc.pre(VALID_JWS.charAt(at) !== character);
          const changed = VALID_JWS.slice(0, at) + character + VALID_JWS.slice(at + 1);
          const passport = parsePassport(changed);
          if (passport === undefined) return;
          expect(passport.sha256).not.toBe(passportSha256(VALID_JWS));
          expect(verifySignature(TEST_1.publicKey, passport.signingInput, passport.signature)).toBe(false);
        },
      ),
      { numRuns: 500 },
    );
  });
});

/** The same value in the bits that count, other bits behind them. */
function strayBits(last: string): string {
  return String.fromCharCode(last.charCodeAt(0) + 1);
}

/** A well-formed passport of exactly that many characters, by long attributes, names and a key ID. */
function jwsOfLength(length: number): string {
  const values = Array.from({ length: 11 }, (_, i) => [`n${i}`, 'v'.repeat(480)] as const);
  for (let fill = 1; fill <= 512; fill++) {
    for (const kid of ['k', 'kk', 'kkk', 'kkkk']) {
      const context = { ...Object.fromEntries(values), fill: 'f'.repeat(fill) };
      const jws = jwsOf({ ...headerDraft(), kid }, { ...claimsDraft(), context });
      if (jws.length === length) return jws;
    }
  }
  throw new Error('no passport has that length');
}

it('reads a claim of every visible character, the last of which is the tilde', () => {
  const subject = Array.from({ length: 0x7e - 0x20 }, (_, at) => String.fromCharCode(0x21 + at)).join('');
  expect(parsePassport(withClaim('sub', subject))?.claims.subject).toBe(subject);
});
