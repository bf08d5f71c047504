/** Denials for missing or malformed credentials, and in the first half of step 5: invalid passports and proofs. */

import type { PassportToSign } from '../../../src/protocol/signing.ts';
import { PROOF_FAULTS } from '../../../src/tools/conformance/cases/proof-faults.ts';
import type { WireRequest } from '../../../src/tools/conformance/wire/exchange.ts';
import { attestedCaller, buildCaller, type Caller, derivedKeyCaller } from '../site/callers.ts';
import { ROUTES } from '../site/routes.ts';
import { signedRequest } from '../site/signed-request.ts';
import {
  BROKER_ISSUER,
  newHolder,
  nowSeconds,
  type Site,
  TRUST_DOMAIN,
  WORKLOAD_PREFIX,
} from '../site/site.ts';
import { denialCases } from '../site/subject.ts';
import type { DenialCase, DenialCases } from './denial-case.ts';

type Case = DenialCase<'invalid_request_proof'>;
type Detail = Case['detail'];

const route = ROUTES.readOrder;

function proofCase(detail: Detail, what: string, provoke: (site: Site) => WireRequest): Case {
  return { detail, what, routeId: route.route_id, provoke };
}

const byDerivedKey = (keyId: 'dk_revoked' | 'dk_expired') => (site: Site) =>
  signedRequest(site, { caller: derivedKeyCaller(site, keyId), route });
const byBrokerKey = (keyId: 'broker-next' | 'broker-last') => (site: Site) =>
  signedRequest(site, { caller: attestedCaller(site, keyId), route });

const KEYS: readonly Case[] = [
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
  proofCase('claims_not_allowed', 'an issuer with the key of another', from(buildsAsBroker)),
  proofCase(
    'claims_not_allowed',
    'a derived key that claims another client',
    from(derived, () => ({ subject: 'client:reporting' })),
  ),
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

const PROOFS: readonly Case[] = [
  proofCase(
    'proof_signature',
    'by another key than the passport names',
    from(attested, (site) => ({ holderJwk: newHolder(site.secrets).publicKey.jwk })),
  ),
];

/** A caller who knows only a passport's issuer, subject and trust domain. */
const stranger = (site: Site): Caller => ({
  ...forged(site),
  keyId: 'broker-of-mine',
  trustDomain: TRUST_DOMAIN,
});

export const PROOF_DENIALS: DenialCases<'invalid_request_proof'> = {
  invalid_request_proof: [
    ...denialCases(PROOF_FAULTS),
    ...KEYS,
    ...PASSPORTS,
    ...PROOFS,
    proofCase('key_unknown', "a passport with everything but a known issuer's key", from(stranger)),
  ],
};
