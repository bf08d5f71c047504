/** Compares the signed requests of `test/vectors/signing.json` with the protocol's own code, which did not generate them. */
import { hash } from 'node:crypto';
import { expect } from '@jest/globals';
import { readCredentials } from '../../src/protocol/credentials.ts';
import { passportSha256 } from '../../src/protocol/passport.ts';
import { isDenial } from '../../src/protocol/reasons.ts';
import { isCanonicalTarget, normalizeAuthority, parseOrigin } from '../../src/protocol/request-target.ts';
import { signMessage } from '../../src/protocol/signature.ts';
import type { SigningKey } from '../../src/protocol/signing.ts';
import { formatTranscript, type Transcript } from '../../src/protocol/transcript.ts';
import { verifySignature } from '../../src/protocol/verify-signature.ts';
import { passportHeaderOf } from '../../src/protocol/wire-names.ts';
import { replayIdentifier } from '../../src/verifier/replay/identifier.ts';
import { headersOfLines } from '../support/fixtures/signed-request.ts';
import { jwsOfTexts } from '../support/protocol/fixtures.ts';
import type { SigningVector } from '../vectors/make/format.ts';

/** Everything in the vector follows from keys, claims and request; ES256 signatures only verify. */
export function expectVectorToHold(vector: SigningVector, passportKey: SigningKey, holder: SigningKey): void {
  const { passport, proof } = credentialsOf(vector);
  expect(passport.claims.holderJwk).toEqual(holder.publicKey.jwk);
  expect(verifySignature(passportKey.publicKey, passport.signingInput, passport.signature)).toBe(true);
  expect(verifySignature(holder.publicKey, proof.transcriptBytes, proof.signature)).toBe(true);
  const { claims, header, jws } = vector.passport;
  const again = jwsOfTexts(header, claims, passportKey);
  expect(withoutSignature(jws)).toBe(withoutSignature(again));
  expect(vector.passport.signing_input_sha256).toBe(hash('sha256', withoutSignature(jws), 'base64url'));
  if (passportKey.publicKey.algorithm === 'Ed25519') expect(jws).toBe(again);
  if (holder.publicKey.algorithm === 'Ed25519') {
    const signature = signMessage('Ed25519', holder.privateKey, Buffer.from(vector.transcript));
    expect(vector.signature).toBe(signature.toString('base64url'));
  }
  expect(isCanonicalTarget(vector.request.target)).toBe(true);
  expect(parseOrigin(`${proof.transcript.scheme}://${proof.transcript.authority}`)).toBeDefined();
  expect(formatTranscript(transcriptOf(vector))).toBe(vector.transcript);
  expect(vector.transcript_sha256).toBe(hash('sha256', vector.transcript, 'base64url'));
  expect(vector.replay_identifier).toBe(
    replayIdentifier(vector.auth_site, holder.publicKey.thumbprint, vector.jti),
  );
}

function credentialsOf({ headers, passport, route, signature, transcript }: SigningVector) {
  expect(headers).toEqual({
    ...(route.passport_header === undefined
      ? { Authorization: `Passport ${passport.jws}` }
      : { [route.passport_header]: passport.jws }),
    'X-Proofgate-Transcript': Buffer.from(transcript).toString('base64url'),
    'X-Proofgate-Signature': signature,
  });
  const lines = headersOfLines(Object.entries(headers).map(([name, value]) => ({ name, value })));
  const credentials = readCredentials(lines, passportHeaderOf(route.passport_header), () => undefined);
  if (isDenial(credentials)) throw new Error(`credentials: ${credentials.detail}`);
  return credentials;
}

function withoutSignature(jws: string): string {
  return jws.slice(0, jws.lastIndexOf('.'));
}

/** The transcript as a verifier makes it again. */
function transcriptOf(vector: SigningVector): Transcript {
  const { passport } = credentialsOf(vector);
  const { request, route } = vector;
  const body = Buffer.from(request.body_base64, 'base64');
  const isBound = route.body === 'bound' && (body.length > 0 || /^(?:POST|PUT|PATCH)$/.test(request.method));
  return {
    authSite: vector.auth_site,
    keyId: passport.keyId,
    passportSha256: passportSha256(vector.passport.jws),
    issuer: passport.claims.issuer,
    subject: passport.claims.subject,
    audience: route.audience,
    routeId: route.route_id,
    method: request.method,
    scheme: request.scheme,
    authority: normalizeAuthority(request.scheme, request.authority),
    target: request.target,
    jti: vector.jti,
    issuedAtSeconds: vector.issued_at,
    expiresAtSeconds: vector.expires_at,
    contentSha256: isBound ? hash('sha256', body, 'base64url') : '-',
    headers: signedHeadersOf(vector),
  };
}

function signedHeadersOf({ also_signed, request, route }: SigningVector): Transcript['headers'] {
  const lines = headersOfLines(request.headers.map(([name, value]) => ({ name, value })));
  const names = [...new Set([...route.signed_headers, ...also_signed])].sort();
  return names.map((name) => {
    const found = lines.lookup(name);
    if (found.kind !== 'single') throw new Error(`${name} is ${found.kind}`);
    return { name, value: found.value };
  });
}
