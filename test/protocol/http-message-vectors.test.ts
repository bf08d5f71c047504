/** The published HTTP messages: the verifier reads each, builds the same base, and finds the signature valid. */
import { expect, it } from '@jest/globals';
import { digestMatches } from '../../src/protocol/content-digest.ts';
import type { RequestHeaders } from '../../src/protocol/credentials.ts';
import {
  coveredValues,
  firstUncovered,
  formatSignatureBase,
  readHttpSignature,
  SITE_PROFILE,
} from '../../src/protocol/http-signature.ts';
import { normalizeAuthority } from '../../src/protocol/request-target.ts';
import { verifySignature } from '../../src/protocol/verify-signature.ts';
import { passportHeaderOf } from '../../src/protocol/wire-names.ts';
import { ALL_TEST_KEYS } from '../support/fixtures/test-keys.ts';
import { HTTP_MESSAGES } from '../support/protocol/published-vectors.ts';
import type { HttpMessageVector } from '../vectors/make/format.ts';

/** The request's headers with those of the signature in place of its own. */
function headersOf({ headers, request }: HttpMessageVector): RequestHeaders {
  const lines = new Map(
    [...request.headers, ...Object.entries(headers)].map(([name, value]) => [
      name.toLowerCase(),
      value.replace(/^[ \t]+|[ \t]+$/g, ''),
    ]),
  );
  const values = (name: string) => [lines.get(name)].filter((value) => value !== undefined);
  return {
    values,
    lookup: (name) => {
      const [value] = values(name);
      return value === undefined ? { kind: 'absent' } : { kind: 'single', value };
    },
    names: () => [...lines.keys()],
    lines: () => [...lines],
  };
}

it.each(HTTP_MESSAGES.map((vector) => [vector.name, vector] as const))('%s', (_name, vector) => {
  const { auth_site, created, expires, key, key_id, nonce, request, route } = vector;
  const headers = headersOf(vector);
  const reading = readHttpSignature(
    headers,
    SITE_PROFILE,
    auth_site,
    passportHeaderOf(route.passport_header),
    false,
  );
  if (reading.kind !== 'read') throw new Error(reading.kind);
  const { signature } = reading;
  expect(signature).toMatchObject({
    ...{ jti: nonce, keyId: key_id, issuedAtSeconds: created, expiresAtSeconds: expires },
    otherSignatures: undefined,
  });
  const authority = normalizeAuthority(request.scheme, request.authority);
  const covered = coveredValues(signature.components, { ...request, authority, headers });
  if (covered.kind !== 'covered') throw new Error(covered.name);
  const base = formatSignatureBase(covered.lines, signature.params);
  expect(base).toBe(vector.signature_base);
  const publicKey = ALL_TEST_KEYS.get(key)?.publicKey;
  if (publicKey === undefined) throw new Error(`no key ${key}`);
  expect(verifySignature(publicKey, Buffer.from(base), signature.signature)).toBe(true);
  expect(firstUncovered(signature.components, SITE_PROFILE, route.signed_headers)).toBeUndefined();
  const { contentDigest } = signature;
  const body = Buffer.from(request.body_base64, 'base64');
  const isBound = route.body === 'bound' && (body.length > 0 || ['POST', 'PUT'].includes(request.method));
  if (isBound) expect(contentDigest).toBeDefined();
  if (contentDigest !== undefined) expect(digestMatches(contentDigest, body)).toBe(true);
});
