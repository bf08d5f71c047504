import { describe, expect, it } from '@jest/globals';
import { calculateJwkThumbprint } from 'jose';
import {
  findIssuerKey,
  MAX_KEYS,
  parseKeySet,
  parseKeySetText,
} from '../../../src/control/issuers/key-set.ts';
import { type IssuerSigner, makeSigner } from '../../support/fixtures/token-signer.ts';

const rsa = makeSigner('RS256');
const ec = makeSigner('ES256');
const ed = makeSigner('Ed25519');

type Jwk = { readonly [member: string]: unknown };
const read = (...keys: readonly unknown[]) => parseKeySet({ keys });
const usable = (jwk: Jwk) => read(jwk)?.length;
const without = (jwk: Jwk, ...names: readonly string[]) =>
  Object.fromEntries(Object.entries(jwk).filter(([name]) => !names.includes(name)));

describe('usable is', () => {
  it.each<[string, IssuerSigner, readonly string[]]>([
    ['an RSA key', rsa, ['RS256', 'PS256']],
    ['a P-256 key', ec, ['ES256']],
    ['an Ed25519 key', ed, ['Ed25519']],
  ])('%s', async (_, { jwk, kid }, algorithms) => {
    const [key] = read(without(jwk, 'alg', 'use')) ?? [];
    expect(key).toMatchObject({ kid, algorithms });
    expect(key?.thumbprint).toBe(await calculateJwkThumbprint(jwk, 'sha256'));
    expect(key?.keyObject.type).toBe('public');
  });

  it('for the one algorithm that it names', () => {
    expect(read({ ...rsa.jwk, alg: 'PS256' })?.[0]?.algorithms).toEqual(['PS256']);
  });

  it.each<[string, Jwk]>([
    ['with key_ops', { ...without(rsa.jwk, 'use'), key_ops: ['verify'] }],
    ['with a certificate, which is not looked at', { ...rsa.jwk, x5c: ['AAAA'], x5t: 'AAAA' }],
    ['with unknown members', { ...ec.jwk, 'example.com/x': 1 }],
    ['with 3072 bits', makeSigner('RS256', 3072).jwk],
  ])('%s', (_, jwk) => {
    expect(usable(jwk)).toBe(1);
  });
});

const privateRsa = rsa.privateKey.export({ format: 'jwk' });
const ecOf = (namedCurve: 'P-384') => ({ ...ec.jwk, crv: namedCurve });

describe('passed over, without harm to others, is', () => {
  it.each<[string, unknown]>([
    ['a key of 1024 bits', makeSigner('RS256', 1024).jwk],
    ['a key of 2047 bits', makeSigner('RS256', 2047).jwk],
    [
      'a modulus that begins with a zero',
      {
        ...rsa.jwk,
        n: Buffer.concat([Buffer.alloc(1), Buffer.from(String(rsa.jwk.n), 'base64url')]).toString(
          'base64url',
        ),
      },
    ],
    ['a modulus of more than 8192 bits', { ...rsa.jwk, n: Buffer.alloc(1025, 0xff).toString('base64url') }],
    ['the exponent 3', { ...rsa.jwk, e: 'Aw' }],
    ['an even exponent', { ...rsa.jwk, e: 'AQAA' }],
    ['a long exponent', { ...rsa.jwk, e: Buffer.alloc(5, 0xff).toString('base64url') }],
    ['a padded modulus', { ...rsa.jwk, n: `${rsa.jwk.n}==` }],
    ['a number as a modulus', { ...rsa.jwk, n: 5 }],
    ['no exponent', without(rsa.jwk, 'e')],
    ['a key for encryption', { ...rsa.jwk, use: 'enc' }],
    ['a use that is a list', { ...rsa.jwk, use: ['sig'] }],
    ['a key for signing only', { ...rsa.jwk, key_ops: ['sign'] }],
    ['a key for nothing', { ...rsa.jwk, key_ops: [] }],
    ['key_ops that are a text', { ...rsa.jwk, key_ops: 'verify' }],
    ['another algorithm', { ...rsa.jwk, alg: 'RS512' }],
    // RFC 9964: the type of post-quantum keys.
    [
      'an ML-DSA key',
      { kty: 'AKP', alg: 'ML-DSA-65', kid: rsa.kid, pub: Buffer.alloc(1952, 1).toString('base64url') },
    ],
    ['an algorithm for encryption', { ...rsa.jwk, alg: 'RSA-OAEP-256' }],
    ['an algorithm of another type', { ...rsa.jwk, alg: 'ES256' }],
    ['a symmetric algorithm', { ...rsa.jwk, alg: 'HS256' }],
    ['an algorithm that is a list', { ...rsa.jwk, alg: ['RS256'] }],
    ['the name EdDSA', { ...ed.jwk, alg: 'EdDSA' }],
    ['no name', without(rsa.jwk, 'kid')],
    ['an empty name', { ...rsa.jwk, kid: '' }],
    ['a name with a space', { ...rsa.jwk, kid: 'a b' }],
    ['a number as a name', { ...rsa.jwk, kid: 1 }],
    ['a private RSA key', { ...privateRsa, kid: 'p' }],
    ['a private member alone', { ...rsa.jwk, d: 'AQAB' }],
    ['a private EC key', { ...ec.privateKey.export({ format: 'jwk' }), kid: 'p' }],
    ['a symmetric key', { kty: 'oct', k: 'AAAA', kid: 'p', alg: 'HS256' }],
    ['a public key with a symmetric member', { ...rsa.jwk, k: 'AAAA' }],
    ['P-384', ecOf('P-384')],
    ['a point off the curve', { ...ec.jwk, y: ec.jwk.x }],
    ['Ed448', { ...ed.jwk, crv: 'Ed448' }],
    ['X25519', { ...ed.jwk, crv: 'X25519' }],
    ['an Ed25519 key of small order', { ...ed.jwk, x: 'AQAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA' }],
    ['no type', without(ec.jwk, 'kty')],
    ['an unknown type', { ...ec.jwk, kty: 'AKP' }],
    ['nothing', {}],
  ])('%s', (_, jwk) => {
    expect(read(jwk, ec.jwk)?.map(({ kid }) => kid)).toEqual([ec.kid]);
  });
});

describe('no key set is', () => {
  it.each([
    ['a list', [rsa.jwk]],
    ['one key', rsa.jwk],
    ['keys that are an object', { keys: { a: rsa.jwk } }],
    ['keys that are no objects', { keys: [rsa.jwk, 'x'] }],
    ['null', null],
    ['a text', 'keys'],
    ['too many keys', { keys: Array.from({ length: MAX_KEYS + 1 }, () => ec.jwk) }],
  ])('%s', (_, value) => {
    expect(parseKeySet(value)).toBeUndefined();
    expect(parseKeySetText(JSON.stringify(value))).toBeUndefined();
  });

  it('what names a member twice', () => {
    expect(parseKeySetText('{"keys":[],"keys":[]}')).toBeUndefined();
    expect(parseKeySetText('{"keys":[]}')).toEqual([]);
  });
});

describe('a token’s key', () => {
  const other = makeSigner('RS256');

  it('is found by name and algorithm', () => {
    const keys = read(rsa.jwk, { ...ec.jwk, kid: rsa.kid }, ed.jwk) ?? [];
    expect(findIssuerKey(keys, rsa.kid, 'ES256')).toMatchObject({
      kind: 'key',
      key: { algorithms: ['ES256'] },
    });
    expect(findIssuerKey(keys, rsa.kid, 'RS256')).toMatchObject({
      kind: 'key',
      key: { algorithms: ['RS256'] },
    });
    expect(findIssuerKey(keys, rsa.kid, 'PS256')).toEqual({ kind: 'other_algorithm' });
    expect(findIssuerKey(keys, ed.kid, 'ES256')).toEqual({ kind: 'other_algorithm' });
    expect(findIssuerKey(keys, 'unknown', 'RS256')).toEqual({ kind: 'unknown' });
  });

  it('is none of two with one name', () => {
    const keys = read(rsa.jwk, { ...other.jwk, kid: rsa.kid }) ?? [];
    expect(findIssuerKey(keys, rsa.kid, 'RS256')).toEqual({ kind: 'ambiguous' });
  });

  it('may be listed twice', () => {
    expect(findIssuerKey(read(rsa.jwk, rsa.jwk) ?? [], rsa.kid, 'RS256').kind).toBe('key');
  });
});
