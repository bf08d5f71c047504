/** Missing and malformed credentials, and passports and proofs that are not valid. */
import type { PassportToSign } from '../../../protocol/signing.ts';
import { generateSigningKey } from '../../../protocol/signing.ts';
import type { Transcript } from '../../../protocol/transcript.ts';
import { AUTHORIZATION_HEADER, PASSPORT_HEADER, type PassportHeader } from '../../../protocol/wire-names.ts';
import type { PublicFault } from '../wire/conformance-case.ts';
import type { HeaderLine, WireRequest } from '../wire/exchange.ts';
import {
  passportLine,
  type SignedWireRequest,
  withHeader,
  withMoreHeaders,
} from '../wire/sign-wire-request.ts';

type Fault = PublicFault<'invalid_request_proof'>;
type Detail = Fault['detail'];

/** A valid request, altered in transit. */
function mistreated(
  detail: Detail,
  what: string,
  mistreat: (signed: SignedWireRequest) => WireRequest,
  passportIn?: PassportHeader,
): Fault {
  return { what, detail, make: (subject) => mistreat(subject.sign()), ...(passportIn && { passportIn }) };
}

/** Faults on a route whose passport is in `Authorization`. */
function inAuthorization(
  detail: Detail,
  what: string,
  value: (passport: string) => string | undefined,
): Fault {
  const mistreat = ({ passport, request }: SignedWireRequest) =>
    withHeader(request, AUTHORIZATION_HEADER, value(passport));
  return mistreated(detail, what, mistreat, AUTHORIZATION_HEADER);
}

/** Faults on a route with `passport_header`. */
function inOwnHeader(
  detail: Detail,
  what: string,
  mistreat: (signed: SignedWireRequest) => WireRequest,
): Fault {
  return mistreated(detail, what, mistreat, PASSPORT_HEADER);
}

/** The same request with another text instead of the passport. */
function withPassport({ passportHeader, request }: SignedWireRequest, passport: string): WireRequest {
  return withHeader(request, ...passportLine(passportHeader, passport));
}

function andAuthorization({ request }: SignedWireRequest, ...values: readonly string[]): WireRequest {
  return withMoreHeaders(
    request,
    values.map((value): HeaderLine => [AUTHORIZATION_HEADER, value]),
  );
}

/** The same passport with other claims and an unchanged signature. */
function reworded(passport: string, change: (claims: string) => string): string {
  const [header, claims = '', signature] = passport.split('.');
  const changed = Buffer.from(change(Buffer.from(claims, 'base64url').toString())).toString('base64url');
  return [header, changed, signature].join('.');
}

const UNSIGNED_HEADER = Buffer.from('{"typ":"proofgate-passport+jwt","alg":"none","kid":"dk_billing"}');

const MALFORMED: readonly Fault[] = [
  inAuthorization('authorization_missing', 'no Authorization', () => undefined),
  inAuthorization('authorization_scheme', 'a bearer token', (passport) => `Bearer ${passport}`),
  inAuthorization('authorization_scheme', 'an empty Authorization', () => ''),
  inAuthorization('authorization_scheme', 'a passport without its scheme', (passport) => passport),
  mistreated('passport_malformed', 'no JWS', (signed) => withPassport(signed, 'me')),
  inAuthorization('passport_malformed', 'the scheme alone', () => 'Passport'),
  inAuthorization(
    'passport_malformed',
    'the scheme in other capitals',
    (passport) => `PASSPORT  ${passport}`,
  ),
  mistreated('passport_malformed', 'white space within', (signed) =>
    withPassport(signed, signed.passport.replace('.', ' .')),
  ),
  mistreated('passport_malformed', 'two passports', ({ request, passport, passportHeader }) =>
    withMoreHeaders(request, [passportLine(passportHeader, passport)]),
  ),
  mistreated(
    'passport_malformed',
    'a passport and a bearer token',
    (signed) => andAuthorization(signed, 'Bearer token'),
    AUTHORIZATION_HEADER,
  ),
  mistreated('passport_malformed', 'two passports on one line', (signed) => {
    const [, line] = passportLine(signed.passportHeader, signed.passport);
    return withHeader(signed.request, signed.passportHeader, `${line}, ${line}`);
  }),
  mistreated('passport_malformed', 'an algorithm none', (signed) =>
    withPassport(
      signed,
      `${UNSIGNED_HEADER.toString('base64url')}.${signed.passport.split('.').slice(1).join('.')}`,
    ),
  ),
  mistreated('passport_malformed', 'a claim that is not in the format', (signed) =>
    withPassport(
      signed,
      reworded(signed.passport, (claims) => claims.replace('{', '{"admin":1,')),
    ),
  ),
  mistreated('passport_malformed', 'a passport of more than 8 KiB', (signed) =>
    withPassport(signed, `${signed.passport}${'A'.repeat(8192)}`),
  ),
  mistreated('proof_missing', 'no transcript', ({ request }) =>
    withHeader(request, 'x-proofgate-transcript'),
  ),
  mistreated('proof_missing', 'no signature', ({ request }) => withHeader(request, 'x-proofgate-signature')),
  mistreated('proof_missing', 'a transcript under a name with _', ({ request, proof }) =>
    withHeader(withHeader(request, 'x-proofgate-transcript'), 'x_proofgate_transcript', proof.transcript),
  ),
  mistreated('proof_malformed', 'an empty transcript', ({ request }) =>
    withHeader(request, 'x-proofgate-transcript', ''),
  ),
  mistreated('proof_malformed', 'an empty signature', ({ request }) =>
    withHeader(request, 'x-proofgate-signature', ''),
  ),
  mistreated('proof_malformed', 'a second transcript', ({ request, proof }) =>
    withMoreHeaders(request, [['x-proofgate-transcript', proof.transcript]]),
  ),
  mistreated('proof_malformed', 'a second, empty transcript', ({ request }) =>
    withMoreHeaders(request, [['x-proofgate-transcript', '']]),
  ),
  mistreated('proof_malformed', 'two transcripts on one line', ({ request, proof }) =>
    withHeader(request, 'x-proofgate-transcript', `${proof.transcript}, ${proof.transcript}`),
  ),
  mistreated('proof_malformed', 'a second signature in other capitals', ({ request, proof }) =>
    withMoreHeaders(request, [['x-proofgate-signature', `${proof.signature.slice(0, -2)}AA`]]),
  ),
  mistreated('proof_malformed', 'padding', ({ request, proof }) =>
    withHeader(request, 'x-proofgate-signature', `${proof.signature}==`),
  ),
  mistreated('proof_malformed', 'a signature in base64 instead of base64url', ({ request, proof }) =>
    withHeader(request, 'x-proofgate-signature', `+/${proof.signature.slice(2)}`),
  ),
  mistreated('proof_malformed', 'a shorter signature', ({ request, proof }) =>
    withHeader(request, 'x-proofgate-signature', proof.signature.slice(0, -4)),
  ),
  mistreated('proof_malformed', 'a transcript of more than 8 KiB', ({ request }) =>
    withHeader(request, 'x-proofgate-transcript', 'A'.repeat(8193)),
  ),
  mistreated('proof_malformed', 'a transcript with one more line', ({ request, proof }) =>
    withHeader(request, 'x-proofgate-transcript', withMoreLines(proof.transcript, 'admin=1\n')),
  ),
];

/** Faults on routes that leave `Authorization` to the application. */
const OWN_HEADER: readonly Fault[] = [
  inOwnHeader('authorization_missing', 'no X-Proofgate-Passport', ({ request }) =>
    withHeader(request, PASSPORT_HEADER),
  ),
  inOwnHeader('authorization_missing', 'a passport in Authorization instead', (signed) => {
    const request = withHeader(signed.request, PASSPORT_HEADER);
    return withHeader(request, ...passportLine(AUTHORIZATION_HEADER, signed.passport));
  }),
  inOwnHeader('authorization_missing', 'a passport under a name with _', (signed) =>
    withHeader(withHeader(signed.request, PASSPORT_HEADER), 'x_proofgate_passport', signed.passport),
  ),
  inOwnHeader('passport_malformed', 'a passport with a scheme', (signed) =>
    withHeader(signed.request, PASSPORT_HEADER, `Passport ${signed.passport}`),
  ),
  inOwnHeader('passport_repeated', 'a passport in Authorization, too', (signed) =>
    andAuthorization(signed, `Passport ${signed.passport}`),
  ),
  inOwnHeader('passport_repeated', 'a passport behind a bearer token', (signed) =>
    andAuthorization(signed, `Bearer 1, passport ${signed.passport}`),
  ),
  inOwnHeader('passport_repeated', 'a passport on a second line of Authorization', (signed) =>
    andAuthorization(signed, 'Bearer 1', `Passport ${signed.passport}`),
  ),
];

function withMoreLines(transcript: string, lines: string): string {
  return Buffer.from(`${Buffer.from(transcript, 'base64url').toString('latin1')}${lines}`).toString(
    'base64url',
  );
}

/** A passport that the caller's own key signs, with claims that differ from the bundle. */
function claiming(detail: Detail, what: string, claims: () => Partial<PassportToSign>): Fault {
  return {
    what,
    detail,
    needs: 'own_passport',
    make: (subject) => subject.sign({ passport: claims() }).request,
  };
}

const nowSeconds = () => Math.floor(Date.now() / 1000);
const aroundNow = (issuedInSeconds: number, expiresInSeconds: number) => () => ({
  issuedAtSeconds: nowSeconds() + issuedInSeconds,
  expiresAtSeconds: nowSeconds() + expiresInSeconds,
});

const PASSPORTS: readonly Fault[] = [
  claiming('key_unknown', 'a key that the bundle does not hold', () => ({ keyId: 'dk_removed' })),
  mistreated('passport_signature', 'a claim changed afterwards', (signed) =>
    withPassport(
      signed,
      reworded(signed.passport, (claims) =>
        claims.replace(/"jti":"(.)/, (_, first) => `"jti":"${first === '_' ? '-' : '_'}`),
      ),
    ),
  ),
  claiming('claims_not_allowed', 'a derived key that claims to be attested', () => ({
    keyBinding: 'attested_workload',
  })),
  claiming('claims_not_allowed', 'a derived key that claims another provenance', () => ({
    provenance: { admin: 'yes' },
  })),
  claiming('claims_not_allowed', 'a derived key that vouches for another holder', () => ({
    holderJwk: generateSigningKey('Ed25519').publicKey.jwk,
  })),
  claiming('passport_ttl', 'a derived key, for too long', aroundNow(0, 301)),
  claiming('passport_not_yet_valid', 'a derived key, issued later', aroundNow(600, 660)),
  claiming('passport_expired', 'a derived key, expired', aroundNow(-900, -700)),
  claiming('audience', 'a derived key, another audience', () => ({
    audience: 'https://other.audience.example',
  })),
];

const timed = (detail: Detail, what: string, times: () => Partial<Transcript>): Fault => ({
  what,
  detail,
  make: (subject) => subject.sign({ transcript: times() }).request,
});

const PROOFS: readonly Fault[] = [
  mistreated('proof_signature', 'a transcript changed afterwards', ({ request, transcript, proof }) => {
    const text = Buffer.from(proof.transcript, 'base64url').toString('latin1');
    const target = `${transcript.target}2`;
    const changed = text.replace(`target=${transcript.target}\n`, `target=${target}\n`);
    const header = Buffer.from(changed, 'latin1').toString('base64url');
    return { ...withHeader(request, 'x-proofgate-transcript', header), target };
  }),
  {
    what: 'the signature of another request',
    detail: 'proof_signature',
    make: (subject) =>
      withHeader(subject.sign().request, 'x-proofgate-signature', subject.sign().proof.signature),
  },
  timed('proof_ttl', 'good for more than five minutes', aroundNow(0, 301)),
  timed('proof_not_yet_valid', 'issued later', aroundNow(600, 660)),
  timed('proof_expired', 'expired', aroundNow(-600, -400)),
];

export const PROOF_FAULTS: readonly Fault[] = [...MALFORMED, ...OWN_HEADER, ...PASSPORTS, ...PROOFS];
