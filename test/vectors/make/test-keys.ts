/**
 * The private keys that the vectors are made with. They are published on purpose, so that others can make the same vectors: a
 * verifier that trusts one of them trusts everybody.
 */
import { createECDH, createHash, createPrivateKey } from 'node:crypto';
import { type SigningKey, signingKeyOf } from '../../../src/protocol/signing.ts';
import type { SiteKeys } from '../../support/fixtures/snapshot.ts';
import { ed25519KeyOfSeed, P256_KEY, TEST_1, TEST_2 } from '../../support/protocol/fixtures.ts';

/** A private key is the SHA-256 of this text and its name. */
const SEED_PREFIX = 'proofgate test key: ';

function secretOf(name: string): Buffer {
  return createHash('sha256').update(`${SEED_PREFIX}${name}`).digest();
}

function ed25519(name: string): SigningKey {
  return ed25519KeyOfSeed(secretOf(name).toString('hex'));
}

function p256(name: string): SigningKey {
  const d = secretOf(name);
  const ecdh = createECDH('prime256v1');
  ecdh.setPrivateKey(d);
  // 0x04, x, y (SEC 1 section 2.3.3)
  const point = ecdh.getPublicKey();
  const text = (bytes: Buffer) => bytes.toString('base64url');
  const key = {
    kty: 'EC',
    crv: 'P-256',
    d: text(d),
    x: text(point.subarray(1, 33)),
    y: text(point.subarray(33)),
  };
  return signingKeyOf(createPrivateKey({ key, format: 'jwk' }));
}

export const TEST_SITE_KEYS: SiteKeys = {
  broker: ed25519('broker'),
  brokerEc: p256('brokerEc'),
  automation: ed25519('automation'),
  billing: ed25519('billing'),
  reporting: p256('reporting'),
  revoked: ed25519('revoked'),
};

/** Keys outside of any bundle: holders for whom a broker vouches, and forgers. */
export const OTHER_TEST_KEYS = {
  stranger: ed25519('stranger'),
  holder: ed25519('holder'),
  holderEc: p256('holderEc'),
  bundleSigner: ed25519('bundleSigner'),
} as const;

/** By the names that the vectors use. */
export const ALL_TEST_KEYS: ReadonlyMap<string, SigningKey> = new Map([
  ['rfc8032-test-1', TEST_1],
  ['rfc8032-test-2', TEST_2],
  ['rfc6979-p256', P256_KEY],
  ...Object.entries<SigningKey>({ ...TEST_SITE_KEYS, ...OTHER_TEST_KEYS }),
]);
