/** Documents that carry a trust bundle. Sources: SPIFFE_Trust_Domain_and_Bundle section 4, X509-SVID section 6. */
import { generateKeyPairSync } from 'node:crypto';
import { expect, test } from '@jest/globals';
import { readBundleJson, readBundleText } from '../../src/spiffe/bundles/bundle-document.ts';
import { pemOf, SpiffeAuthority } from '../support/fakes/spiffe-authority.ts';

const authority = SpiffeAuthority.create('shop.example');
const other = SpiffeAuthority.create('shop.example');
const [x509Key, jwtKey] = keysOf(authority);

function keysOf(from: SpiffeAuthority): readonly Record<string, unknown>[] {
  const { keys } = from.bundleDocument();
  return Array.isArray(keys) ? keys : [];
}

test('a SPIFFE bundle has both kinds of authorities, its sequence and its hint', () => {
  const read = readBundleText(JSON.stringify(authority.bundleDocument({ spiffe_sequence: 5 })));
  expect(read).toMatchObject({ kind: 'bundle', sequence: 5, refreshHintSeconds: 60 });
  if (read.kind !== 'bundle') throw new Error(read.text);
  expect(read.x509Authorities.map(({ der }) => der)).toEqual([authority.certificateDer]);
  expect(read.jwtAuthorities.map(({ kid }) => kid)).toEqual([authority.kid]);
});

test('PEM has X.509 authorities alone', () => {
  const read = readBundleText(`\n${authority.pem}\n${other.pem}`);
  if (read.kind !== 'bundle') throw new Error(read.text);
  expect(read.x509Authorities.map(({ der }) => der)).toEqual([
    authority.certificateDer,
    other.certificateDer,
  ]);
  expect(read.jwtAuthorities).toEqual([]);
});

test('unknown types and uses, and later certificates of an x5c, are ignored', () => {
  const extra = other.certificateDer.toString('base64');
  const { x5c } = x509Key ?? {};
  const chain = { ...x509Key, x5c: [...(Array.isArray(x5c) ? x5c : []), extra] };
  const strange = [
    { use: 'wit-svid', kty: 'EC' },
    { use: 'x509-svid', kty: 'EC' },
    { use: 'x509-svid', kty: 'EC', x5c: [] },
    { use: 'jwt-svid', kty: 'OKP', kid: 'a', crv: 'Ed25519', x: 'AAAA' },
    { use: 'jwt-svid', kty: 'AKP', kid: 'b', alg: 'ML-DSA-44', pub: 'AAAA' },
    { kty: 'RSA' },
  ];
  const read = readBundleJson({ keys: [...strange, chain, jwtKey] });
  if (read.kind !== 'bundle') throw new Error(read.text);
  expect(read.x509Authorities.map(({ der }) => der)).toEqual([authority.certificateDer]);
  expect(read.jwtAuthorities.map(({ kid }) => kid)).toEqual([authority.kid]);
});

test('the private members of a published key are dropped', () => {
  const { privateKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' });
  const published = { ...privateKey.export({ format: 'jwk' }), use: 'jwt-svid', kid: 'a' };
  const read = readBundleJson({ keys: [published] });
  if (read.kind !== 'bundle') throw new Error(read.text);
  expect(Object.keys(read.jwtAuthorities[0]?.jwk ?? {})).toEqual(['kty', 'crv', 'x', 'y']);
  expect(read.jwtAuthorities[0]?.publicKey.type).toBe('public');
});

test('a short RSA key is left out', () => {
  const { publicKey } = generateKeyPairSync('rsa', { modulusLength: 1024 });
  const weak = { ...publicKey.export({ format: 'jwk' }), use: 'jwt-svid', kid: 'weak' };
  expect(readBundleJson({ keys: [weak, jwtKey] })).toMatchObject({
    jwtAuthorities: [{ kid: authority.kid }],
  });
});

test.each([
  ['nothing', ''],
  ['text', 'hello'],
  ['half a certificate', authority.pem.slice(0, 200)],
  [
    'a private key beside a certificate',
    `${authority.pem}-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----\n`,
  ],
  ['a certificate that is none', pemOf(Buffer.from('3003020101', 'hex'))],
  ['broken JSON', '{"keys": ['],
  ['a member twice', '{"keys": [], "keys": []}'],
  ['no keys', '{}'],
  ['keys that are no objects', '{"keys": [1]}'],
  ['a kid twice', JSON.stringify({ keys: [jwtKey, jwtKey] })],
  ['a point off the curve', JSON.stringify({ keys: [{ ...jwtKey, x: jwtKey?.y }] })],
  ['101 authorities', JSON.stringify({ keys: Array.from({ length: 101 }, () => x509Key) })],
])('%s is unreadable', (_name, text) => {
  expect(readBundleText(text).kind).toBe('unreadable');
});
