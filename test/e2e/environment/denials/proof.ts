/** Denials for missing or malformed credentials, and in the first half of step 5: invalid passports and proofs. */
import type { PassportToSign } from '../../../../src/protocol/signing.ts';
import type { Transcript } from '../../../../src/protocol/transcript.ts';
import type { WireRequest } from '../../harness/exchange.ts';
import { attestedCaller, buildCaller, type Caller, derivedKeyCaller } from '../callers.ts';
import { ROUTES } from '../routes.ts';
import { type SignedRequest, sign, signedRequest, withHeader, withMoreHeaders } from '../signed-request.ts';
import {
  BROKER_ISSUER,
  newHolder,
  nowSeconds,
  OIDC_ISSUER,
  type Site,
  TRUST_DOMAIN,
  WORKLOAD_PREFIX,
} from '../site.ts';
import type { DenialCase, DenialCases } from './denial-case.ts';

type Case = DenialCase<'invalid_request_proof'>;
type Detail = Case['detail'];

const route = ROUTES.readOrder;
const billing = (site: Site) => sign(site, { caller: derivedKeyCaller(site), route });

function proofCase(detail: Detail, what: string, provoke: (site: Site) => WireRequest): Case {
  return { detail, what, routeId: route.route_id, provoke };
}

/** A valid request, altered in transit. */
function mistreated(detail: Detail, what: string, mistreat: (signed: SignedRequest) => WireRequest): Case {
  return proofCase(detail, what, (site) => mistreat(billing(site)));
}

const authorization = (request: WireRequest, value: string) => withHeader(request, 'authorization', value);

/** The same passport with other claims, its signature as it was. */
function reworded(passport: string, change: (claims: string) => string): string {
  const [header, claims = '', signature] = passport.split('.');
  const changed = Buffer.from(change(Buffer.from(claims, 'base64url').toString())).toString('base64url');
  return [header, changed, signature].join('.');
}

const unsigned = Buffer.from('{"typ":"proofgate-passport+jwt","alg":"none","kid":"dk_billing"}');

const MALFORMED: readonly Case[] = [
  mistreated('authorization_missing', 'no Authorization', ({ request }) =>
    withHeader(request, 'authorization'),
  ),
  mistreated('authorization_scheme', 'a bearer token', ({ request, passport }) =>
    authorization(request, `Bearer ${passport}`),
  ),
  mistreated('passport_malformed', 'no JWS', ({ request }) => authorization(request, 'Passport me')),
  mistreated('passport_malformed', 'two passports', ({ request, passport }) =>
    withMoreHeaders(request, [['authorization', `Passport ${passport}`]]),
  ),
  mistreated('passport_malformed', 'two passports on one line', ({ request, passport }) =>
    authorization(request, `Passport ${passport}, Passport ${passport}`),
  ),
  mistreated('passport_malformed', 'an algorithm none', ({ request, passport }) =>
    authorization(
      request,
      `Passport ${unsigned.toString('base64url')}.${passport.split('.').slice(1).join('.')}`,
    ),
  ),
  mistreated('passport_malformed', 'a claim that is not in the format', ({ request, passport }) =>
    authorization(request, `Passport ${reworded(passport, (claims) => claims.replace('{', '{"admin":1,'))}`),
  ),
  mistreated('proof_missing', 'no transcript', ({ request }) =>
    withHeader(request, 'x-proofgate-transcript'),
  ),
  mistreated('proof_missing', 'no signature', ({ request }) => withHeader(request, 'x-proofgate-signature')),
  mistreated('proof_malformed', 'a second transcript', ({ request, proof }) =>
    withMoreHeaders(request, [['x-proofgate-transcript', proof.transcript]]),
  ),
  mistreated('proof_malformed', 'a second signature in other capitals', ({ request, proof }) =>
    withMoreHeaders(request, [['x-proofgate-signature', `${proof.signature.slice(0, -2)}AA`]]),
  ),
  mistreated('proof_malformed', 'padding', ({ request, proof }) =>
    withHeader(request, 'x-proofgate-signature', `${proof.signature}==`),
  ),
  mistreated('proof_malformed', 'a transcript of more than 8 KiB', ({ request }) =>
    withHeader(request, 'x-proofgate-transcript', 'A'.repeat(8193)),
  ),
];

const byDerivedKey = (keyId: 'dk_revoked' | 'dk_expired') => (site: Site) =>
  signedRequest(site, { caller: derivedKeyCaller(site, keyId), route });
const byBrokerKey = (keyId: 'broker-next' | 'broker-last') => (site: Site) =>
  signedRequest(site, { caller: attestedCaller(site, keyId), route });

const KEYS: readonly Case[] = [
  proofCase('key_unknown', 'a key that the bundle does not hold', (site) =>
    signedRequest(site, { caller: { ...derivedKeyCaller(site), keyId: 'dk_removed' }, route }),
  ),
  proofCase('key_revoked', 'a revoked derived key', byDerivedKey('dk_revoked')),
  proofCase('key_expired', 'an expired derived key', byDerivedKey('dk_expired')),
  proofCase('key_expired', "a broker's key of the past", byBrokerKey('broker-last')),
  proofCase('key_not_yet_valid', "a broker's key of the future", byBrokerKey('broker-next')),
];

const from = (caller: (site: Site) => Caller, passport?: (site: Site) => Partial<PassportToSign>) => {
  return (site: Site) =>
    signedRequest(site, { caller: caller(site), route, ...(passport && { passport: passport(site) }) });
};
const forged = (site: Site): Caller => ({ ...attestedCaller(site), passportKey: newHolder(site.secrets) });
const p256ForEd25519 = (site: Site): Caller => ({
  ...attestedCaller(site),
  passportKey: site.issuerKeys['broker-p256'],
});
const buildsAsBroker = (site: Site): Caller => ({
  ...buildCaller(site),
  issuer: BROKER_ISSUER,
  subject: `${WORKLOAD_PREFIX}sa/checkout`,
  keyBinding: 'attested_workload',
});
const derived = (site: Site) => derivedKeyCaller(site);
const attested = (site: Site) => attestedCaller(site);
const aroundNow = (issuedInSeconds: number, expiresInSeconds: number) => () => ({
  issuedAtSeconds: nowSeconds() + issuedInSeconds,
  expiresAtSeconds: nowSeconds() + expiresInSeconds,
});

const PASSPORTS: readonly Case[] = [
  proofCase('passport_signature', 'signed by a stranger', from(forged)),
  proofCase('passport_signature', 'signed with another algorithm than the key has', from(p256ForEd25519)),
  mistreated('passport_signature', 'a claim changed afterwards', ({ request, passport }) =>
    authorization(
      request,
      `Passport ${reworded(passport, (claims) => claims.replace('client:billing', 'client:billinG'))}`,
    ),
  ),
  proofCase('claims_not_allowed', 'an issuer with the key of another', from(buildsAsBroker)),
  proofCase(
    'claims_not_allowed',
    'a derived key that claims another client',
    from(derived, () => ({ subject: 'client:reporting' })),
  ),
  proofCase(
    'claims_not_allowed',
    'a derived key that claims to be attested',
    from(derived, () => ({ keyBinding: 'attested_workload' })),
  ),
  proofCase(
    'claims_not_allowed',
    'a derived key that claims another provenance',
    from(derived, () => ({ provenance: { verified_issuer: OIDC_ISSUER, admin: 'yes' } })),
  ),
  proofCase(
    'claims_not_allowed',
    'a derived key that vouches for another holder',
    from(derived, (site) => ({ holderJwk: newHolder(site.secrets).publicKey.jwk })),
  ),
  proofCase('passport_ttl', 'a derived key, for too long', from(derived, aroundNow(0, 301))),
  proofCase('passport_ttl', 'a broker, for too long', from(attested, aroundNow(0, 601))),
  proofCase('passport_ttl', 'the end before the start', from(attested, aroundNow(0, -1))),
  proofCase('passport_not_yet_valid', 'issued later', from(attested, aroundNow(60, 120))),
  proofCase(
    'passport_not_yet_valid',
    'not before later',
    from(attested, () => ({ notBeforeSeconds: nowSeconds() + 60 })),
  ),
  proofCase('passport_expired', 'expired', from(attested, aroundNow(-400, -100))),
  proofCase(
    'audience',
    "another route's audience",
    from(attested, () => ({ audience: ROUTES.admin.audience })),
  ),
];

const timed = (times: () => Partial<Transcript>) => (site: Site) =>
  signedRequest(site, { caller: derivedKeyCaller(site), route, transcript: times() });

const PROOFS: readonly Case[] = [
  proofCase(
    'proof_signature',
    'by another key than the passport names',
    from(attested, (site) => ({ holderJwk: newHolder(site.secrets).publicKey.jwk })),
  ),
  mistreated('proof_signature', 'a transcript changed afterwards', ({ request, transcript, proof }) => {
    const text = Buffer.from(proof.transcript, 'base64url').toString('latin1');
    const changed = text.replace(`target=${transcript.target}`, 'target=/v1/orders/4712');
    const header = Buffer.from(changed, 'latin1').toString('base64url');
    return { ...withHeader(request, 'x-proofgate-transcript', header), target: '/v1/orders/4712' };
  }),
  proofCase('proof_ttl', 'good for more than five minutes', timed(aroundNow(0, 301))),
  proofCase('proof_not_yet_valid', 'issued later', timed(aroundNow(60, 120))),
  proofCase('proof_expired', 'expired', timed(aroundNow(-120, -60))),
];

/** A caller who knows only a passport's issuer, subject and trust domain. */
const stranger = (site: Site): Caller => ({
  ...forged(site),
  keyId: 'broker-of-mine',
  trustDomain: TRUST_DOMAIN,
});

export const PROOF_DENIALS: DenialCases<'invalid_request_proof'> = {
  invalid_request_proof: [
    ...MALFORMED,
    ...KEYS,
    ...PASSPORTS,
    ...PROOFS,
    proofCase('key_unknown', "a passport with everything but a known issuer's key", from(stranger)),
  ],
};
