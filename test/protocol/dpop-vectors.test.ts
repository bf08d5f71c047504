/** The published DPoP proofs: the verifier reads each, for the passport and request of the vector, and finds the signature valid. */
import { expect, it } from '@jest/globals';
import { parseDpopProof } from '../../src/protocol/dpop-proof.ts';
import { passportSha256 } from '../../src/protocol/passport.ts';
import { normalizeAuthority, pathOf } from '../../src/protocol/request-target.ts';
import { verifySignature } from '../../src/protocol/verify-signature.ts';
import { ALL_TEST_KEYS } from '../support/fixtures/test-keys.ts';
import { DPOP } from '../support/protocol/published-vectors.ts';

it.each(DPOP.map((vector) => [vector.name, vector] as const))('%s', (_name, vector) => {
  const { headers, holder_key, issued_at, jti, nonce, passport, request } = vector;
  const { authority, method, scheme, target } = request;
  const proof = parseDpopProof(headers.DPoP);
  const publicKey = ALL_TEST_KEYS.get(holder_key)?.publicKey;
  if (proof === undefined || publicKey === undefined) throw new Error('no proof or no key');
  const { signature, signingInput, ...facts } = proof;
  expect(facts).toEqual({
    ...{ jwk: publicKey.jwk, method, jti, nonce, issuedAtSeconds: issued_at },
    origin: { scheme, authority: normalizeAuthority(scheme, authority) },
    path: pathOf(target),
    tokenSha256: passportSha256(passport),
  });
  expect(headers.Authorization).toBe(`DPoP ${passport}`);
  expect(verifySignature(publicKey, signingInput, signature)).toBe(true);
});
