/** Signed requests as the published vectors and the worked example of docs/protocol.md hold them. */
import { hash } from 'node:crypto';
import { expect } from '@jest/globals';
import { type HeaderLookup, readCredentials } from '../../src/protocol/credentials.ts';
import { passportSha256 } from '../../src/protocol/passport.ts';
import { isDenial } from '../../src/protocol/reasons.ts';
import { isCanonicalTarget, normalizeAuthority, parseOrigin } from '../../src/protocol/request-target.ts';
import { signMessage, verifySignature } from '../../src/protocol/signature.ts';
import type { SigningKey } from '../../src/protocol/signing.ts';
import { formatTranscript, type Transcript } from '../../src/protocol/transcript.ts';
import { jwsOfTexts } from './fixtures.ts';

export interface RequestVector {
  readonly name: string;
  /** Names of keys. */
  readonly passport_key: string;
  readonly holder_key: string;
  readonly passport_header: string;
  readonly passport_claims: string;
  readonly passport: string;
  readonly transcript: string;
  readonly signature: string;
  readonly auth_site: string;
  readonly route: {
    readonly route_id: string;
    readonly audience: string;
    readonly body: 'bound' | 'unbound';
  };
  readonly request: {
    readonly method: string;
    readonly scheme: string;
    /** As sent. */
    readonly authority: string;
    readonly target: string;
    /** Those that are signed. */
    readonly headers: { readonly [name: string]: string };
    readonly body_base64url: string;
  };
}

/** Everything in the vector follows from keys, claims and request; ES256 signatures only verify. */
export function expectVectorToHold(vector: RequestVector, passportKey: SigningKey, holder: SigningKey): void {
  const { passport, proof } = credentialsOf(vector);
  expect(passport.claims.holderJwk).toEqual(holder.publicKey.jwk);
  expect(verifySignature(passportKey.publicKey, passport.signingInput, passport.signature)).toBe(true);
  expect(verifySignature(holder.publicKey, proof.transcriptBytes, proof.signature)).toBe(true);
  expect(vector.passport.startsWith(`${withoutSignature(jwsOfVector(vector, passportKey))}.`)).toBe(true);
  if (passportKey.publicKey.algorithm === 'Ed25519') {
    expect(vector.passport).toBe(jwsOfVector(vector, passportKey));
  }
  if (holder.publicKey.algorithm === 'Ed25519') {
    const signature = signMessage('Ed25519', holder.privateKey, Buffer.from(vector.transcript));
    expect(vector.signature).toBe(signature.toString('base64url'));
  }
  expect(isCanonicalTarget(vector.request.target)).toBe(true);
  expect(parseOrigin(`${proof.transcript.scheme}://${proof.transcript.authority}`)).toBeDefined();
  expect(formatTranscript(transcriptOf(vector))).toBe(vector.transcript);
}

function credentialsOf({ passport, transcript, signature }: RequestVector) {
  const values = new Map([
    ['authorization', `Passport ${passport}`],
    ['x-proofgate-transcript', Buffer.from(transcript).toString('base64url')],
    ['x-proofgate-signature', signature],
  ]);
  const lookup = (name: string): HeaderLookup => ({ kind: 'single', value: values.get(name) ?? '' });
  const credentials = readCredentials({ lookup, names: () => [...values.keys()] }, () => undefined);
  if (isDenial(credentials)) throw new Error(`credentials: ${credentials.detail}`);
  return credentials;
}

function jwsOfVector({ passport_header, passport_claims }: RequestVector, key: SigningKey): string {
  return jwsOfTexts(passport_header, passport_claims, key);
}

function withoutSignature(jws: string): string {
  return jws.slice(0, jws.lastIndexOf('.'));
}

/** The transcript as a verifier makes it again. */
export function transcriptOf(vector: RequestVector): Transcript {
  const { passport, proof } = credentialsOf(vector);
  const { request, route } = vector;
  const body = Buffer.from(request.body_base64url, 'base64url');
  const isBound = route.body === 'bound' && (body.length > 0 || /^(?:POST|PUT|PATCH)$/.test(request.method));
  return {
    authSite: vector.auth_site,
    keyId: passport.keyId,
    passportSha256: passportSha256(vector.passport),
    issuer: passport.claims.issuer,
    subject: passport.claims.subject,
    audience: route.audience,
    routeId: route.route_id,
    method: request.method,
    scheme: request.scheme,
    authority: normalizeAuthority(request.scheme, request.authority),
    target: request.target,
    jti: proof.transcript.jti,
    issuedAtSeconds: proof.transcript.issuedAtSeconds,
    expiresAtSeconds: proof.transcript.expiresAtSeconds,
    contentSha256: isBound ? hash('sha256', body, 'base64url') : '-',
    headers: Object.entries(request.headers)
      .map(([name, value]) => ({ name, value }))
      .sort((a, b) => (a.name < b.name ? -1 : 1)),
  };
}
