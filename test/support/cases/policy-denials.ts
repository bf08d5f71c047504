/** Denials in steps 1 to 4: route, source, freshness, provenance and context. */
import type { Reason } from '../../../src/protocol/reasons.ts';
import { attestedCaller, buildCaller, derivedKeyCaller } from '../site/callers.ts';
import { ROUTES, type SiteRoute } from '../site/routes.ts';
import { signedRequest } from '../site/signed-request.ts';
import { BROKER_ISSUER, type DerivedKeyId, OIDC_ISSUER, type Site, TRUST_DOMAIN } from '../site/site.ts';
import type { DenialCase, DenialCases } from './denial-case.ts';

type PolicyReason = Exclude<
  Reason,
  | 'invalid_request_proof'
  | 'request_binding_mismatch'
  | 'jti_replay'
  | 'replay_store_unavailable'
  | 'verifier_unavailable'
>;

const { createOrder, forecast, ledger, livePrices, payroll, readOrder, recentPrices, releases, vault } =
  ROUTES;

const read = (site: Site, target = '/v1/orders/4711') =>
  signedRequest(site, { caller: derivedKeyCaller(site), route: readOrder, target });

/** Signed as it should be, by a derived key. */
const byDerivedKey =
  (keyId: DerivedKeyId, route: SiteRoute): DenialCase<PolicyReason>['provoke'] =>
  (site) =>
    signedRequest(site, { caller: derivedKeyCaller(site, keyId), route });

const notCanonical = (what: string, target: string) =>
  ({ what, detail: 'path_not_canonical', provoke: (site: Site) => read(site, target) }) as const;

const noMatch = (what: string, target: string) =>
  ({ what, detail: 'no_match', provoke: (site: Site) => read(site, target) }) as const;

const otherOrigin = (what: string, authority: string) =>
  ({ what, detail: 'origin', provoke: (site: Site) => ({ ...read(site), authority }) }) as const;

/** A properly signed passport with this claim: route sources are checked before the signature. */
const claiming = (claims: { issuer?: string; trustDomain?: string; subject?: string }) => (site: Site) =>
  signedRequest(site, { caller: { ...attestedCaller(site), ...claims }, route: readOrder });

const atOrders = { detail: undefined, routeId: readOrder.route_id };
const byName = <Detail extends string>(detail: Detail, { route_id }: SiteRoute) => ({
  detail,
  routeId: route_id,
});

export const POLICY_DENIALS: DenialCases<PolicyReason> = {
  bundle_policy_missing: [
    {
      what: 'no bundle was ever loaded',
      detail: undefined,
      state: 'no_bundle',
      provoke: (site) => read(site),
    },
  ],
  bundle_route_missing: [
    notCanonical('an empty segment in front', '//v1/orders/4711'),
    notCanonical('an empty segment within', '/v1//orders/4711'),
    notCanonical('a path parameter', '/v1/orders/4711;v=2'),
    notCanonical('an escape that is not UTF-8', '/v1/orders/%80'),
    notCanonical('an escaped percent sign', '/v1/orders/%2541'),
    otherOrigin('another host', 'api.other.example'),
    otherOrigin('another port', 'api.shop.example:8443'),
    otherOrigin('a trailing dot', 'api.shop.example.'),
    noMatch('another path', '/v2/orders/4711'),
    noMatch('a trailing slash', '/v1/orders/4711/'),
    noMatch('a literal in other capitals', '/v1/Orders/4711'),
    {
      what: 'another method',
      detail: 'no_match',
      provoke: (site) => ({ ...read(site), method: 'DELETE' }),
    },
  ],
  source_issuer_mismatch: [
    {
      what: 'an issuer without a rule',
      ...atOrders,
      provoke: claiming({ issuer: 'https://issuer.other.example' }),
    },
  ],
  source_trust_domain_mismatch: [
    {
      what: 'another trust domain',
      ...atOrders,
      provoke: claiming({
        trustDomain: 'other.example',
        subject: 'spiffe://other.example/ns/prod/sa/checkout',
      }),
    },
  ],
  source_subject_mismatch: [
    {
      what: 'a subject outside every selector',
      ...atOrders,
      provoke: claiming({ subject: `spiffe://${TRUST_DOMAIN}/ns/dev/sa/checkout` }),
    },
    {
      what: 'a resource that the client is not granted',
      detail: 'not_granted',
      routeId: payroll.route_id,
      provoke: byDerivedKey('dk_billing', payroll),
    },
    {
      what: 'a write by a client that may only read',
      detail: 'not_granted',
      routeId: createOrder.route_id,
      provoke: byDerivedKey('dk_reporting', createOrder),
    },
  ],
  insufficient_key_binding: [
    {
      what: 'a derived key where attestation is required',
      detail: undefined,
      routeId: vault.route_id,
      provoke: byDerivedKey('dk_billing', vault),
    },
    {
      what: 'a software passport where attestation is required',
      detail: undefined,
      routeId: vault.route_id,
      provoke: (site) => signedRequest(site, { caller: buildCaller(site), route: vault }),
    },
  ],
  bundle_freshness_unknown: [
    {
      what: 'an unknown freshness class',
      detail: undefined,
      routeId: forecast.route_id,
      provoke: byDerivedKey('dk_billing', forecast),
    },
  ],
  stale_bundle_fail_closed: [
    {
      what: 'a realtime route, nothing said lately',
      ...byName('stale', livePrices),
      provoke: byDerivedKey('dk_billing', livePrices),
    },
    {
      what: 'a bounded route, its bound passed',
      ...byName('stale', recentPrices),
      provoke: byDerivedKey('dk_billing', recentPrices),
    },
    {
      what: 'a bundle that has expired',
      ...byName('expired', readOrder),
      state: 'expired_bundle',
      provoke: (site) => read(site),
    },
    {
      what: 'a bundle from the future',
      ...byName('clock', readOrder),
      state: 'future_bundle',
      provoke: (site) => read(site),
    },
  ],
  missing_provenance: [
    {
      what: 'a derived key of unknown provenance',
      ...byName('verified_issuer', releases),
      provoke: byDerivedKey('dk_reporting', releases),
    },
    {
      what: 'a passport that states none',
      ...byName('verified_issuer', releases),
      provoke: (site) => signedRequest(site, { caller: attestedCaller(site), route: releases }),
    },
  ],
  provenance_mismatch: [
    {
      what: 'a derived key from elsewhere',
      ...byName('verified_issuer', releases),
      provoke: byDerivedKey('dk_elsewhere', releases),
    },
    {
      what: 'a passport from elsewhere',
      ...byName('verified_issuer', releases),
      provoke: (site) => {
        const provenance = { verified_issuer: `${OIDC_ISSUER}.` };
        return signedRequest(site, { caller: { ...attestedCaller(site), provenance }, route: releases });
      },
    },
  ],
  missing_context: [
    {
      what: 'a client without context',
      ...byName('environment', ledger),
      provoke: byDerivedKey('dk_plain', ledger),
    },
  ],
  context_mismatch: [
    {
      what: 'a client in another environment',
      ...byName('environment', ledger),
      provoke: byDerivedKey('dk_reporting', ledger),
    },
    {
      what: 'a passport for another environment',
      ...byName('environment', ledger),
      provoke: (site) => {
        const context = { environment: 'Production', issuer: BROKER_ISSUER };
        return signedRequest(site, { caller: { ...attestedCaller(site), context }, route: ledger });
      },
    },
  ],
};
