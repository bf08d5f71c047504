/**
 * Fuzzes passports: a compact JWS as it is (`j…`), or header and claims as JSON on two lines (`c…`), which an issuer of the
 * site signs and its holder uses for a request. Whatever issuers sign, only permitted claims are allowed.
 */
import { isDeepStrictEqual } from 'node:util';
import { MAX_PASSPORT_BYTES } from '../../../src/protocol/limits.ts';
import { type Passport, parsePassport, passportSha256 } from '../../../src/protocol/passport.ts';
import { signMessage } from '../../../src/protocol/signature.ts';
import { signTranscript } from '../../../src/protocol/signing.ts';
import type { Transcript } from '../../../src/protocol/transcript.ts';
import { SIGNATURE_HEADER, TRANSCRIPT_HEADER } from '../../../src/protocol/wire-names.ts';
import { factsOfWire } from '../../support/fixtures/signed-request.ts';
import { TEST_SITE_KEYS } from '../../support/fixtures/test-keys.ts';
import { decideAtSite, NOW_SECONDS, SITE_ALLOWED, SITE_CONTENT, SITE_DENIED } from '../site.ts';
import { type FuzzTarget, mustHold } from '../target.ts';

const AS_IT_STANDS = 0x6a;
/** This key issues and holds; the first issuer's entry limits its claims. */
const signer = TEST_SITE_KEYS.broker;

function run(input: Buffer): void {
  const text = input.toString('latin1', 1);
  if (input[0] === AS_IT_STANDS) return void checkParsed(text);
  const jws = jwsOf(text);
  const passport = checkParsed(jws);
  if (passport !== undefined) checkDecision(jws, passport);
}

function checkParsed(jws: string): Passport | undefined {
  const passport = parsePassport(jws);
  if (passport === undefined) return undefined;
  mustHold(jws.length <= MAX_PASSPORT_BYTES, 'a passport has at most 8 KiB');
  const spelt = `${passport.signingInput.toString('latin1')}.${passport.signature.toString('base64url')}`;
  mustHold(spelt === jws, 'a passport is spelt in one way');
  mustHold(passport.sha256 === passportSha256(jws), 'its hash is that of all that was sent');
  const [header = '', claims = ''] = jws.split('.').map((part) => Buffer.from(part, 'base64url').toString());
  mustHold(
    isDeepStrictEqual(JSON.parse(claims), claimsOf(passport)),
    'what was read is all that the token says',
  );
  mustHold(membersIn(claims) === membersOf(JSON.parse(claims)), 'no member is there twice');
  const { algorithm: alg, keyId: kid } = passport;
  mustHold(
    isDeepStrictEqual(JSON.parse(header), { typ: 'proofgate-passport+jwt', alg, kid }),
    'so is the header',
  );
  mustHold(
    isVisible(kid, 128) && textsOf(passport).every((text) => isVisible(text, 512)),
    'texts are visible',
  );
  return passport;
}

/** Colons outside of strings: one for each member. */
function membersIn(json: string): number {
  return json.replace(/"(?:[^"\\]|\\.)*"/g, '').split(':').length - 1;
}

function membersOf(value: unknown): number {
  if (typeof value !== 'object' || value === null) return 0;
  return Object.values(value).reduce((sum: number, member) => sum + 1 + membersOf(member), 0);
}

/** The claims as JSON would give them. */
function claimsOf({ claims: c }: Passport): object {
  const optional = {
    nbf: c.notBeforeSeconds,
    provenance: c.provenance && Object.fromEntries(c.provenance),
    context: c.context && Object.fromEntries(c.context),
  };
  return {
    iss: c.issuer,
    sub: c.subject,
    trust_domain: c.trustDomain,
    aud: c.audience,
    iat: c.issuedAtSeconds,
    exp: c.expiresAtSeconds,
    key_binding: c.keyBinding,
    cnf: { jwk: c.holderJwk },
    jti: c.passportId,
    ...Object.fromEntries(Object.entries(optional).filter(([, value]) => value !== undefined)),
  };
}

function textsOf({ claims: c }: Passport): readonly string[] {
  const attributes = [...(c.provenance ?? []), ...(c.context ?? [])].flat();
  return [c.issuer, c.subject, c.trustDomain, c.audience, c.passportId, ...attributes];
}

function isVisible(text: string, maxLength: number): boolean {
  const codes = [...text].map((character) => character.charCodeAt(0));
  return text.length > 0 && text.length <= maxLength && codes.every((code) => code > 0x20 && code < 0x7f);
}

function jwsOf(text: string): string {
  const [header = '', ...claims] = text.split('\n');
  const input = [header, claims.join('\n')]
    .map((part) => Buffer.from(part, 'latin1').toString('base64url'))
    .join('.');
  const signature = signMessage(signer.publicKey.algorithm, signer.privateKey, Buffer.from(input));
  return `${input}.${signature.toString('base64url')}`;
}

const AUDIENCE = 'https://api.shop.example';
const TARGET = '/v1/orders/17';

function checkDecision(jws: string, passport: Passport): void {
  const { claims, keyId } = passport;
  const transcript: Transcript = {
    authSite: SITE_CONTENT.auth_site,
    keyId,
    passportSha256: passport.sha256,
    issuer: claims.issuer,
    subject: claims.subject,
    audience: AUDIENCE,
    routeId: 'orders-read',
    method: 'GET',
    scheme: 'https',
    authority: 'api.shop.example',
    target: TARGET,
    jti: 'A'.repeat(22),
    issuedAtSeconds: NOW_SECONDS,
    expiresAtSeconds: NOW_SECONDS + 60,
    contentSha256: '-',
    headers: [],
  };
  const proof = signTranscript(transcript, signer);
  const headers = [
    { name: 'authorization', value: `Passport ${jws}` },
    { name: TRANSCRIPT_HEADER, value: proof.transcript },
    { name: SIGNATURE_HEADER, value: proof.signature },
  ];
  const { authority, method, scheme } = transcript;
  const facts = factsOfWire({ method, scheme, authority, target: TARGET, headers, body: { kind: 'none' } });
  if (decideAtSite(facts).kind === 'allowed') mustHold(mayBeSaid(passport), 'only what the issuer may say');
}

/** The rules of docs/design/protocol.md for this issuer, once more. */
function mayBeSaid({ algorithm, claims, keyId }: Passport): boolean {
  const [issuer] = SITE_CONTENT.issuers ?? [];
  const skewSeconds = SITE_CONTENT.skew_seconds ?? 5;
  const lifeSeconds = claims.expiresAtSeconds - claims.issuedAtSeconds;
  return (
    keyId === 'broker-ed' &&
    algorithm === 'Ed25519' &&
    claims.issuer === issuer?.issuer &&
    claims.trustDomain === issuer.trust_domain &&
    issuer.subject_prefixes.some((prefix) => claims.subject.startsWith(prefix)) &&
    claims.audience === AUDIENCE &&
    claims.holderJwk.x === signer.publicKey.jwk.x &&
    lifeSeconds > 0 &&
    lifeSeconds <= (issuer.max_passport_ttl_seconds ?? 300) &&
    claims.issuedAtSeconds <= NOW_SECONDS + skewSeconds &&
    (claims.notBeforeSeconds ?? 0) <= NOW_SECONDS + skewSeconds &&
    NOW_SECONDS < claims.expiresAtSeconds + skewSeconds
  );
}

function seedsOf(jws: string): readonly Buffer[] {
  const [header = '', claims = ''] = jws
    .split('.')
    .map((part) => Buffer.from(part, 'base64url').toString('latin1'));
  return [Buffer.from(`j${jws}`, 'latin1'), Buffer.from(`c${header}\n${claims}`, 'latin1')];
}

const tokens = new Set(
  [...SITE_ALLOWED, ...SITE_DENIED].flatMap(({ request }) =>
    request.headers
      .filter(([name]) => name.toLowerCase() === 'authorization')
      .map(([, value]) => value.replace(/^passport /i, '')),
  ),
);

export const passportTarget: FuzzTarget = {
  name: 'passport',
  seeds: [...tokens].flatMap(seedsOf),
  dictionary: [
    ...[
      'typ',
      'alg',
      'kid',
      'iss',
      'sub',
      'trust_domain',
      'aud',
      'iat',
      'exp',
      'nbf',
      'key_binding',
      'cnf',
      'jwk',
    ],
    ...[
      'jti',
      'provenance',
      'context',
      'kty',
      'crv',
      'x',
      'y',
      'OKP',
      'EC',
      'Ed25519',
      'P-256',
      'ES256',
      'none',
    ],
    ...[
      'proofgate-passport+jwt',
      'broker-ed',
      'dk_billing',
      'software',
      'attested_workload',
      '__proto__',
      '\\u0061',
    ],
    ...['":', ',"', '{"', '"}', 'null', 'true', '[]', '{}', '1e3', '.', '..', '=', '-0'],
    signer.publicKey.jwk.x,
  ],
  maxBytes: 8300,
  maxStepsPerByte: 60,
  run,
};
