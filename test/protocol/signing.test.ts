import { generateKeyPairSync, type KeyObject } from 'node:crypto';
import { describe, expect, it } from '@jest/globals';
import { compactVerify, decodeProtectedHeader } from 'jose';
import { isJti } from '../../src/protocol/identifiers.ts';
import { parsePassport } from '../../src/protocol/passport.ts';
import { signMessage } from '../../src/protocol/signature.ts';
import {
  generateSigningKey,
  newJti,
  type PassportToSign,
  parseSigningKey,
  type SigningKey,
  SigningKeyError,
  signingKeyOf,
  signPassport,
  signTranscript,
} from '../../src/protocol/signing.ts';
import { decodeTranscript, parseTranscript } from '../../src/protocol/transcript.ts';
import { verifySignature } from '../../src/protocol/verify-signature.ts';
import { NOW_SECONDS, P256_KEY, TEST_1, TEST_2, TRANSCRIPT } from '../support/protocol/fixtures.ts';

const PASSPORT: PassportToSign = {
  keyId: 'broker-1',
  issuer: 'https://broker.example',
  subject: 'spiffe://shop.example/ns/prod/sa/billing',
  trustDomain: 'shop.example',
  audience: 'https://api.shop.example',
  issuedAtSeconds: NOW_SECONDS,
  expiresAtSeconds: NOW_SECONDS + 300,
  keyBinding: 'attested_workload',
  holderJwk: TEST_2.publicKey.jwk,
};

const SIGNERS: readonly (readonly [string, SigningKey])[] = [
  ['Ed25519', TEST_1],
  ['ES256', P256_KEY],
];

it('knows the raw point of Ed25519 keys alone', () => {
  const sizes = (['Ed25519', 'ES256'] as const).map(
    (algorithm) => generateSigningKey(algorithm).publicKey.rawPoint.byteLength,
  );
  expect(sizes).toEqual([32, 0]);
});

describe.each(SIGNERS)('signPassport with %s', (alg, key) => {
  it('makes what parses and verifies', () => {
    const passport = parsePassport(signPassport(PASSPORT, key));
    expect(passport).toMatchObject({
      keyId: 'broker-1',
      algorithm: alg,
      claims: {
        issuer: PASSPORT.issuer,
        subject: PASSPORT.subject,
        audience: PASSPORT.audience,
        notBeforeSeconds: undefined,
        holderJwk: PASSPORT.holderJwk,
        provenance: undefined,
        context: undefined,
      },
    });
    if (passport === undefined) return;
    expect(verifySignature(key.publicKey, passport.signingInput, passport.signature)).toBe(true);
  });

  it('carries what is optional', () => {
    const optional = {
      notBeforeSeconds: NOW_SECONDS,
      provenance: { cluster: 'eu-1' },
      context: { team: 'a' },
    };
    expect(parsePassport(signPassport({ ...PASSPORT, ...optional }, key))?.claims).toMatchObject({
      notBeforeSeconds: NOW_SECONDS,
      provenance: new Map([['cluster', 'eu-1']]),
      context: new Map([['team', 'a']]),
    });
  });

  it('makes a JWS that jose accepts', async () => {
    const jws = signPassport(PASSPORT, key);
    const { payload, protectedHeader } = await compactVerify(jws, key.publicKey.keyObject, {
      algorithms: [alg],
    });
    expect(protectedHeader).toEqual({ typ: 'proofgate-passport+jwt', alg, kid: 'broker-1' });
    expect(decodeProtectedHeader(jws)).toEqual(protectedHeader);
    expect(JSON.parse(Buffer.from(payload).toString())).toMatchObject({
      iss: PASSPORT.issuer,
      exp: NOW_SECONDS + 300,
    });
  });

  it('names each passport anew', () => {
    const names = Array.from(
      { length: 20 },
      () => parsePassport(signPassport(PASSPORT, key))?.claims.passportId,
    );
    expect(new Set(names).size).toBe(20);
  });
});

describe.each(SIGNERS)('signTranscript with %s', (_, key) => {
  it('makes what parses and verifies', () => {
    const proof = signTranscript(TRANSCRIPT, key);
    const bytes = decodeTranscript(proof.transcript) ?? Buffer.alloc(0);
    expect(parseTranscript(bytes, 'authorization')).toEqual(TRANSCRIPT);
    expect(verifySignature(key.publicKey, bytes, Buffer.from(proof.signature, 'base64url'))).toBe(true);
  });

  it.each<[string, string]>([
    ['U+010A, a line feed in its low byte', 'a\u010aheader.x-user=b'],
    ['U+0141, an A in its low byte', '\u0141'],
    ['a byte beyond ASCII', 'caf\u00e9'],
    ['a line feed', 'a\nheader.x-user=b'],
  ])('makes nothing that a verifier reads out of a value with %s', (_name, value) => {
    const { transcript } = signTranscript({ ...TRANSCRIPT, headers: [{ name: 'x-tenant', value }] }, key);
    expect(parseTranscript(decodeTranscript(transcript) ?? Buffer.alloc(0), 'authorization')).toBeUndefined();
  });
});

describe('newJti', () => {
  it('is 22 characters, another each time', () => {
    const made = Array.from({ length: 100 }, newJti);
    expect(made.every((jti) => isJti(jti) && jti.length === 22)).toBe(true);
    expect(new Set(made).size).toBe(100);
  });
});

describe('parseSigningKey', () => {
  const pemOf = (key: KeyObject) => key.export({ format: 'pem', type: 'pkcs8' }).toString();

  it.each(SIGNERS)('reads %s in PEM, as text or bytes', (_, key) => {
    const pem = pemOf(key.privateKey);
    for (const given of [pem, Buffer.from(pem), Uint8Array.from(Buffer.from(pem))]) {
      expect(parseSigningKey(given).publicKey.jwk).toEqual(key.publicKey.jwk);
    }
  });

  it.each<[string, string]>([
    ['nothing', ''],
    ['text', 'key'],
    ['a public key', TEST_1.publicKey.keyObject.export({ format: 'pem', type: 'spki' }).toString()],
    [
      'an encrypted key',
      TEST_1.privateKey
        .export({ format: 'pem', type: 'pkcs8', cipher: 'aes-256-cbc', passphrase: 'secret' })
        .toString(),
    ],
    ['RSA', pemOf(generateKeyPairSync('rsa', { modulusLength: 1024 }).privateKey)],
    ['Ed448', pemOf(generateKeyPairSync('ed448').privateKey)],
    ['X25519', pemOf(generateKeyPairSync('x25519').privateKey)],
    ['P-384', pemOf(generateKeyPairSync('ec', { namedCurve: 'P-384' }).privateKey)],
    ['secp256k1', pemOf(generateKeyPairSync('ec', { namedCurve: 'secp256k1' }).privateKey)],
    ['brainpool', pemOf(generateKeyPairSync('ec', { namedCurve: 'brainpoolP256r1' }).privateKey)],
  ])('refuses %s, without saying what it holds', (_, pem) => {
    expect(() => parseSigningKey(pem)).toThrow(SigningKeyError);
    expect(() => parseSigningKey(pem)).toThrow(
      /^(?:not an unencrypted private key in PEM|neither an Ed25519 nor a P-256 key)$/,
    );
  });
});

describe('signingKeyOf', () => {
  it('refuses a public key', () => {
    expect(() => signingKeyOf(TEST_1.publicKey.keyObject)).toThrow(SigningKeyError);
  });
});

describe('generateSigningKey', () => {
  it.each(['Ed25519', 'ES256'] as const)(
    'makes a new %s key each time, which signs for its public half',
    (algorithm) => {
      const [one, other] = [generateSigningKey(algorithm), generateSigningKey(algorithm)];
      const message = Buffer.from('message');
      const signature = signMessage(algorithm, one.privateKey, message);
      expect(one.publicKey.algorithm).toBe(algorithm);
      expect(verifySignature(one.publicKey, message, signature)).toBe(true);
      expect(verifySignature(other.publicKey, message, signature)).toBe(false);
    },
  );
});
