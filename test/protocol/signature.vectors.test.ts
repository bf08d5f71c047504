/** Pins the answers of {@link verifySignature} on published edge cases. */
import { existsSync, readFileSync } from 'node:fs';
import { describe, expect, it } from '@jest/globals';
import { importPublicJwk } from '../../src/protocol/import-public-key.ts';
import type { PublicKey } from '../../src/protocol/public-key.ts';
import { verifySignature } from '../../src/protocol/verify-signature.ts';
import { hexToBase64url } from '../support/protocol/fixtures.ts';

const VECTORS = new URL('../vectors/', import.meta.url);

function readJson<T>(url: URL): T {
  return JSON.parse(readFileSync(url, 'utf8'));
}

interface WycheproofCase {
  readonly tcId: number;
  readonly comment: string;
  readonly msg: string;
  readonly sig: string;
  readonly result: 'valid' | 'invalid' | 'acceptable';
}
interface WycheproofGroup {
  readonly publicKey: { readonly curve: string; readonly pk?: string; readonly uncompressed?: string };
  /** Some groups have none. */
  readonly publicKeyJwk?: { readonly kid?: string; readonly x: string };
  readonly tests: readonly WycheproofCase[];
}
interface WycheproofFile {
  readonly numberOfTests: number;
  readonly testGroups: readonly WycheproofGroup[];
}

function keyOfGroup({ publicKey }: WycheproofGroup): PublicKey | undefined {
  if (publicKey.curve === 'edwards25519') {
    return importPublicJwk({ kty: 'OKP', crv: 'Ed25519', x: hexToBase64url(publicKey.pk ?? '') });
  }
  // 04, then both coordinates (SEC 1 section 2.3.3).
  const coordinates = Buffer.from(publicKey.uncompressed ?? '', 'hex').subarray(1);
  const [x, y] = [coordinates.subarray(0, 32), coordinates.subarray(32)];
  return importPublicJwk({
    kty: 'EC',
    crv: 'P-256',
    x: x.toString('base64url'),
    y: y.toString('base64url'),
  });
}

/**
 * Cases whose answer is not the one that Wycheproof expects, by file and `tcId`, each with its reason.
 * There is none: no key of these files is refused, and no case of them is `acceptable`.
 */
const DEVIATIONS: { readonly [file: string]: { readonly [tcId: number]: string } } = {};

describe.each([
  ['ed25519_test.json', 151],
  ['ecdsa_secp256r1_sha256_p1363_test.json', 262],
])('Wycheproof %s', (name, total) => {
  const file = readJson<WycheproofFile>(new URL(`wycheproof/${name}`, VECTORS));
  const cases = file.testGroups.flatMap((group) => group.tests.map((test) => ({ group, test })));

  it(`has ${total} cases`, () => {
    expect([cases.length, file.numberOfTests]).toEqual([total, total]);
  });

  it('has keys that are all accepted, and equal to its own JWKs', () => {
    for (const group of file.testGroups) {
      const key = keyOfGroup(group);
      expect(key).toBeDefined();
      if (group.publicKeyJwk === undefined) continue;
      const { kid, ...jwk } = group.publicKeyJwk;
      expect(key?.jwk).toEqual(jwk);
      // Members that are not the key's are refused: a key ID here.
      if (kid !== undefined) expect(importPublicJwk(group.publicKeyJwk)).toBeUndefined();
    }
  });

  it.each(cases.map(({ group, test }) => [test.tcId, test.result, test.comment, group, test] as const))(
    '%i, %s: %s',
    (tcId, result, _, group, test) => {
      const key = keyOfGroup(group);
      const accepted =
        key !== undefined && verifySignature(key, Buffer.from(test.msg, 'hex'), Buffer.from(test.sig, 'hex'));
      const isDeviation = DEVIATIONS[name]?.[tcId] !== undefined;
      expect(result).not.toBe('acceptable');
      expect(accepted).toBe((result === 'valid') !== isDeviation);
    },
  );
});

interface CctvCase {
  readonly number: number;
  readonly key: string;
  readonly sig: string;
  /** Signed as it stands, in ASCII. */
  readonly msg: string;
  readonly flags: readonly string[] | null;
}
interface CctvAnswers {
  readonly total: number;
  readonly accepted: readonly number[];
  readonly signature_refused: readonly number[];
}
type Answer = 'accepted' | 'signature_refused' | 'key_refused';

function answerTo({ key, sig, msg }: CctvCase): Answer {
  const publicKey = importPublicJwk({ kty: 'OKP', crv: 'Ed25519', x: hexToBase64url(key) });
  if (publicKey === undefined) return 'key_refused';
  return verifySignature(publicKey, Buffer.from(msg), Buffer.from(sig, 'hex'))
    ? 'accepted'
    : 'signature_refused';
}

/** Any of these makes the key one that is refused. */
const BAD_KEY_FLAGS = ['low_order_A', 'low_order_component_A', 'non_canonical_A'];

/** Beside the checkout: not in a package registry, see test/vectors/README.md. */
const CCTV = new URL('../../../shared/vectors/cctv-ed25519/ed25519vectors.json', import.meta.url);

if (existsSync(CCTV)) {
  const cases = readJson<readonly CctvCase[]>(CCTV);
  const pinned = readJson<CctvAnswers>(new URL('cctv-ed25519.json', VECTORS));

  describe('CCTV Ed25519', () => {
    const answers = new Map(cases.map((test) => [test.number, answerTo(test)]));
    const numbersOf = (answer: Answer) =>
      [...answers.keys()].filter((number) => answers.get(number) === answer);

    it('gives the pinned answer to each case', () => {
      expect(answers.size).toBe(pinned.total);
      expect(numbersOf('accepted')).toEqual(pinned.accepted);
      expect(numbersOf('signature_refused')).toEqual(pinned.signature_refused);
    });

    it('refuses exactly the keys of small order, of mixed order, or in a second spelling', () => {
      const expected = cases.filter(({ flags }) => flags?.some((flag) => BAD_KEY_FLAGS.includes(flag)));
      expect(numbersOf('key_refused')).toEqual(expected.map(({ number }) => number));
    });

    /**
     * Accepted is the one ordinary signature. Another one, whose R is the neutral element in its canonical spelling,
     * satisfies the equation of RFC 8032 section 5.1.7 as well; its nonce was 0, which gives the key away and which no
     * signer comes to. libsodium refuses every R of small order.
     */
    it('accepts no R of small order or spelt twice, and no signature that needs the cofactor', () => {
      const accepted = cases.filter(({ number }) => answers.get(number) === 'accepted');
      expect(accepted.map(({ flags }) => flags ?? [])).toEqual([[]]);
    });
  });
} else {
  process.stdout.write('CCTV Ed25519 cases are skipped: ../shared/vectors/cctv-ed25519 is not there\n');
}
