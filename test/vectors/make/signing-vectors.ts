/** Makes `signing.json` by the rules of docs/design/protocol.md, step by step; the tests compare it with `src/protocol/`. */
import { createHash } from 'node:crypto';
import type { SigningKey } from '../../../src/protocol/signing.ts';
import { signSameEachTime } from '../../support/fixtures/deterministic.ts';
import { ALL_TEST_KEYS } from '../../support/fixtures/test-keys.ts';
import type { SigningVector } from './format.ts';
import { PROOF_EXPIRES_AT, PROOF_ISSUED_AT, SIGNING_CASES, type SigningCase } from './signing-cases.ts';

export function signingVectors(): readonly SigningVector[] {
  return SIGNING_CASES.map(signingVector);
}

function signingVector(signingCase: SigningCase): SigningVector {
  const { claims, kid, ...given } = signingCase;
  const holder = keyNamed(given.holder_key);
  const passport = passportOf(
    kid,
    { ...claims, cnf: { jwk: holder.publicKey.jwk } },
    keyNamed(given.passport_key),
  );
  const transcript = transcriptOf(signingCase, passport.jws);
  const signature = signSameEachTime(holder, Buffer.from(transcript)).toString('base64url');
  return {
    name: given.name,
    passport_key: given.passport_key,
    holder_key: given.holder_key,
    auth_site: given.auth_site,
    route: given.route,
    request: given.request,
    also_signed: given.also_signed,
    jti: given.jti,
    issued_at: PROOF_ISSUED_AT,
    expires_at: PROOF_EXPIRES_AT,
    passport,
    transcript,
    transcript_sha256: sha256(transcript),
    signature,
    headers: {
      ...(given.route.passport_header === undefined
        ? { Authorization: `Passport ${passport.jws}` }
        : { [given.route.passport_header]: passport.jws }),
      'X-Proofgate-Transcript': Buffer.from(transcript).toString('base64url'),
      'X-Proofgate-Signature': signature,
    },
    replay_identifier: sha256(
      ['proofgate-jti-v1', given.auth_site, holder.publicKey.thumbprint, given.jti]
        .map((line) => `${line}\n`)
        .join(''),
    ),
  };
}

function keyNamed(name: string): SigningKey {
  const key = ALL_TEST_KEYS.get(name);
  if (key === undefined) throw new Error(`no key ${name}`);
  return key;
}

function sha256(bytes: string | Uint8Array): string {
  return createHash('sha256').update(bytes).digest('base64url');
}

function passportOf(kid: string, claimed: object, key: SigningKey): SigningVector['passport'] {
  const header = JSON.stringify({ typ: 'proofgate-passport+jwt', alg: key.publicKey.algorithm, kid });
  const claims = JSON.stringify(claimed);
  const input = [header, claims].map((text) => Buffer.from(text).toString('base64url')).join('.');
  const signature = signSameEachTime(key, Buffer.from(input)).toString('base64url');
  return { header, claims, signing_input_sha256: sha256(input), jws: `${input}.${signature}` };
}

function transcriptOf({ auth_site, claims, jti, kid, route, ...given }: SigningCase, jws: string): string {
  const { authority, method, scheme, target } = given.request;
  const defaultPort = scheme === 'https' ? /:443$/ : /:80$/;
  const names = [...new Set([...route.signed_headers, ...given.also_signed])].sort();
  const lines: readonly (readonly [string, string | number])[] = [
    ['auth-site', auth_site],
    ['key-id', kid],
    ['passport-sha256', sha256(jws)],
    ['issuer', String(claims.iss)],
    ['subject', String(claims.sub)],
    ['audience', String(claims.aud)],
    ['route-id', route.route_id],
    ['method', method],
    ['scheme', scheme],
    ['authority', authority.toLowerCase().replace(defaultPort, '')],
    ['target', target],
    ['jti', jti],
    ['issued-at', PROOF_ISSUED_AT],
    ['expires-at', PROOF_EXPIRES_AT],
    ['content-sha256', contentSha256(route.body, given.request)],
    ['headers', names.length === 0 ? '-' : names.join(',')],
    ...names.map((name) => [`header.${name}`, headerValue(given.request.headers, name)] as const),
  ];
  return `transcript-v1\n${lines.map(([name, value]) => `${name}=${value}\n`).join('')}`;
}

function contentSha256(body: 'bound' | 'unbound', { body_base64, method }: SigningVector['request']): string {
  const bytes = Buffer.from(body_base64, 'base64');
  if (body === 'unbound') return '-';
  return bytes.length > 0 || ['POST', 'PUT', 'PATCH'].includes(method) ? sha256(bytes) : '-';
}

function headerValue(headers: SigningVector['request']['headers'], wanted: string): string {
  const [value, ...others] = headers
    .filter(([name]) => name.toLowerCase() === wanted)
    .map(([, text]) => text);
  if (value === undefined || others.length > 0) throw new Error(`${wanted} is not there once`);
  return value.replace(/^[ \t]+|[ \t]+$/g, '');
}
