import { createHash, createPublicKey, generateKeyPairSync, sign, verify } from 'node:crypto';
import { describe, expect, it } from '@jest/globals';
import { hashes, sign as nobleSign, verify as nobleVerify } from '@noble/ed25519';
import fc from 'fast-check';
import { CompactSign, compactVerify } from 'jose';
import type { PublicKey } from '../../src/protocol/public-key.ts';
import { SIGNATURE_BYTES, signMessage } from '../../src/protocol/signature.ts';
import type { SigningKey } from '../../src/protocol/signing.ts';
import { verifySignature } from '../../src/protocol/verify-signature.ts';
import { ed25519KeyOfSeed, P256_KEY, TEST_1, TEST_2 } from '../support/protocol/fixtures.ts';

hashes.sha512 = (message) => Uint8Array.from(createHash('sha512').update(message).digest());

const bytes = fc.uint8Array({ maxLength: 100 });
const seed = fc
  .uint8Array({ minLength: 32, maxLength: 32 })
  .map((value) => Buffer.from(value).toString('hex'));

/** One bit flipped, anywhere. */
function flip(value: Uint8Array, position: number): Uint8Array {
  const changed = Uint8Array.from(value);
  const at = position % (changed.length * 8);
  changed[at >> 3] = (changed[at >> 3] ?? 0) ^ (1 << (at & 7));
  return changed;
}

function nobleVerifies(key: PublicKey, message: Uint8Array, signature: Uint8Array): boolean {
  const publicKey = Uint8Array.from(Buffer.from(key.jwk.x, 'base64url'));
  try {
    return nobleVerify(Uint8Array.from(signature), Uint8Array.from(message), publicKey, { zip215: false });
  } catch {
    return false;
  }
}

describe('Ed25519, beside @noble/ed25519', () => {
  it('makes the same signatures, which both accept', () => {
    fc.assert(
      fc.property(seed, bytes, (secret, message) => {
        const key = ed25519KeyOfSeed(secret);
        const signature = signMessage('Ed25519', key.privateKey, message);
        const secretBytes = Uint8Array.from(Buffer.from(secret, 'hex'));
        expect(signature.equals(nobleSign(message, secretBytes))).toBe(true);
        expect(verifySignature(key.publicKey, message, signature)).toBe(true);
        expect(nobleVerifies(key.publicKey, message, signature)).toBe(true);
      }),
      { numRuns: 40 },
    );
  });

  it('refuses what it refuses: one bit changed, another message, another key', () => {
    const what = fc.constantFrom('signature', 'message', 'key');
    fc.assert(
      fc.property(seed, bytes, fc.nat(), what, (secret, message, at, changed) => {
        const key = ed25519KeyOfSeed(secret);
        const signature = signMessage('Ed25519', key.privateKey, message);
        const altered = {
          key: changed === 'key' ? TEST_1.publicKey : key.publicKey,
          message: changed === 'message' ? Uint8Array.of(...message, at % 256) : message,
          signature: changed === 'signature' ? flip(signature, at) : signature,
        };
        expect(nobleVerifies(altered.key, altered.message, altered.signature)).toBe(false);
        expect(verifySignature(altered.key, altered.message, altered.signature)).toBe(false);
      }),
      { numRuns: 60 },
    );
  });

  it('refuses random bytes as it does', () => {
    fc.assert(
      fc.property(fc.uint8Array({ minLength: 64, maxLength: 64 }), bytes, (signature, message) => {
        expect(nobleVerifies(TEST_1.publicKey, message, signature)).toBe(false);
        expect(verifySignature(TEST_1.publicKey, message, signature)).toBe(false);
      }),
      { numRuns: 40 },
    );
  });
});

const KEYS: readonly (readonly [string, SigningKey])[] = [
  ['Ed25519', TEST_1],
  ['ES256', P256_KEY],
];

describe.each(KEYS)('%s, beside jose', (alg, key) => {
  it('accepts what jose signed', async () => {
    await fc.assert(
      fc.asyncProperty(bytes, async (payload) => {
        const jws = await new CompactSign(payload).setProtectedHeader({ alg }).sign(key.privateKey);
        const dot = jws.lastIndexOf('.');
        const signature = Buffer.from(jws.slice(dot + 1), 'base64url');
        const message = Buffer.from(jws.slice(0, dot));
        expect(verifySignature(key.publicKey, message, signature)).toBe(true);
      }),
      { numRuns: 40 },
    );
  });

  it('agrees with jose on what is changed in one bit, or not at all', async () => {
    const seen = { accepted: 0, refused: 0 };
    await fc.assert(
      fc.asyncProperty(bytes, fc.option(fc.nat()), async (payload, at) => {
        const header = Buffer.from(JSON.stringify({ alg })).toString('base64url');
        const input = `${header}.${Buffer.from(payload).toString('base64url')}`;
        const made = signMessage(key.publicKey.algorithm, key.privateKey, Buffer.from(input));
        const signature = at === null ? made : flip(made, at);
        const accepted = verifySignature(key.publicKey, Buffer.from(input), signature);
        const jws = `${input}.${Buffer.from(signature).toString('base64url')}`;
        const byJose = await compactVerify(jws, key.publicKey.keyObject).then(
          () => true,
          () => false,
        );
        expect(accepted).toBe(byJose);
        expect(accepted).toBe(at === null);
        seen[accepted ? 'accepted' : 'refused'] += 1;
      }),
      { numRuns: 80 },
    );
    expect(Math.min(seen.accepted, seen.refused)).toBeGreaterThan(0);
  });
});

describe('verifySignature', () => {
  const message = Buffer.from('message');

  it.each(KEYS)('takes 64 bytes only: %s', (_, key) => {
    const signature = signMessage(key.publicKey.algorithm, key.privateKey, message);
    expect(signature).toHaveLength(SIGNATURE_BYTES);
    expect(verifySignature(key.publicKey, message, signature)).toBe(true);
    for (const other of [
      Buffer.alloc(0),
      signature.subarray(0, 63),
      Buffer.concat([signature, Buffer.alloc(1)]),
      Buffer.concat([signature, signature]),
    ]) {
      expect(verifySignature(key.publicKey, message, other)).toBe(false);
    }
  });

  it('refuses an ES256 signature in DER, and one whose r or s is 0', () => {
    const signature = signMessage('ES256', P256_KEY.privateKey, message);
    const zero = Buffer.alloc(32);
    for (const other of [
      Buffer.concat([zero, signature.subarray(32)]),
      Buffer.concat([signature.subarray(0, 32), zero]),
      Buffer.concat([zero, zero]),
    ]) {
      expect(verifySignature(P256_KEY.publicKey, message, other)).toBe(false);
    }
    expect(verifySignature(P256_KEY.publicKey, message, sign('sha256', message, P256_KEY.privateKey))).toBe(
      false,
    );
  });

  it('answers false where OpenSSL throws: a key that is not of its algorithm', () => {
    const mixed: PublicKey = { ...TEST_1.publicKey, algorithm: 'ES256' };
    const signature = signMessage('Ed25519', TEST_1.privateKey, message);
    expect(verifySignature(mixed, message, signature)).toBe(false);
    expect(verifySignature({ ...P256_KEY.publicKey, algorithm: 'Ed25519' }, message, signature)).toBe(false);
  });

  it('tells keys apart', () => {
    const signature = signMessage('Ed25519', TEST_1.privateKey, message);
    expect(verifySignature(TEST_2.publicKey, message, signature)).toBe(false);
  });
});

describe('signMessage', () => {
  it('makes the signature of RFC 8032 section 7.1, TEST 1', () => {
    expect(signMessage('Ed25519', TEST_1.privateKey, Buffer.alloc(0)).toString('hex')).toBe(
      'e5564300c360ac729086e2cc806e828a84877f1eb8e5d974d873e065224901555fb8821590a33bacc61e39701cf9b46bd25bf5f0595bbe24655141438e7a100b',
    );
  });

  it('makes ES256 signatures of SHA-256, as r || s', () => {
    const message = Buffer.from('sample');
    const signature = signMessage('ES256', P256_KEY.privateKey, message);
    const key = createPublicKey(P256_KEY.privateKey);
    expect(verify('sha256', message, { key, dsaEncoding: 'ieee-p1363' }, signature)).toBe(true);
  });

  it('throws for a private key that is not of the algorithm', () => {
    const p384 = generateKeyPairSync('ec', { namedCurve: 'P-384' }).privateKey;
    const rsa = generateKeyPairSync('rsa', { modulusLength: 1024 }).privateKey;
    const message = Buffer.from('message');
    expect(() => signMessage('Ed25519', P256_KEY.privateKey, message)).toThrow(TypeError);
    for (const key of [TEST_1.privateKey, p384, rsa]) {
      expect(() => signMessage('ES256', key, message)).toThrow(TypeError);
    }
  });
});
