/** Denials that need what only the site of the end-to-end tests has: its routes, keys and states. */
import type { WireChanges } from '../../../src/tools/conformance/wire/sign-wire-request.ts';
import { attestedCaller, type Caller, derivedKeyCaller } from '../site/callers.ts';
import { ROUTES, type SiteRoute } from '../site/routes.ts';
import { signedRequest } from '../site/signed-request.ts';
import { BROKER_ISSUER, type DerivedKeyId, type IssuerKeyId, OIDC_ISSUER, type Site } from '../site/site.ts';
import type { AtSite, OnWire, Outcome } from './denial-case.ts';

/** A case for the wire alone. */
export interface SiteCase extends OnWire {
  readonly outcome: Outcome;
}

type MakeCaller = (site: Site) => Caller;

const derived =
  (keyId: DerivedKeyId): MakeCaller =>
  (site) =>
    derivedKeyCaller(site, keyId);
const attested =
  (keyId?: IssuerKeyId, changes?: Partial<Caller>): MakeCaller =>
  (site) => ({ ...attestedCaller(site, keyId), ...changes });

/** A correctly signed request. */
const by = (caller: MakeCaller, route: SiteRoute, changes: WireChanges = {}): AtSite => ({
  routeId: route.route_id,
  provoke: (site) => signedRequest(site, { caller: caller(site), route, ...changes }),
});
const billing = derived('dk_billing');

const { createOrder, createUnseen, ledger, payroll, readOrder, recentPrices, releases, replaceOrder } =
  ROUTES;
const order = Buffer.from('{"item":1,"count":2}');
const MISSING_PROVENANCE = 'missing_provenance/verified_issuer 403';
const OTHER_PROVENANCE = 'provenance_mismatch/verified_issuer 403';
const OTHER_CONTEXT = 'context_mismatch/environment 403';

const POLICY: readonly SiteCase[] = [
  {
    what: 'another method',
    outcome: 'bundle_route_missing/no_match 403',
    atSite: {
      routeId: undefined,
      provoke: (site) => ({
        ...signedRequest(site, { caller: billing(site), route: readOrder }),
        method: 'DELETE',
      }),
    },
  },
  {
    what: 'a resource that the client is not granted',
    outcome: 'source_subject_mismatch/not_granted 403',
    atSite: by(billing, payroll),
  },
  {
    what: 'a bounded route, its bound passed',
    outcome: 'stale_bundle_fail_closed/stale 503',
    atSite: by(billing, recentPrices),
  },
  {
    what: 'a derived key of unknown provenance',
    outcome: MISSING_PROVENANCE,
    atSite: by(derived('dk_reporting'), releases),
  },
  { what: 'a passport that states none', outcome: MISSING_PROVENANCE, atSite: by(attested(), releases) },
  {
    what: 'a derived key from elsewhere',
    outcome: OTHER_PROVENANCE,
    atSite: by(derived('dk_elsewhere'), releases),
  },
  {
    what: 'a passport from elsewhere',
    outcome: OTHER_PROVENANCE,
    atSite: by(attested('broker-1', { provenance: { verified_issuer: `${OIDC_ISSUER}.` } }), releases),
  },
  {
    what: 'a client without context',
    outcome: 'missing_context/environment 403',
    atSite: by(derived('dk_plain'), ledger),
  },
  {
    what: 'a client in another environment',
    outcome: OTHER_CONTEXT,
    atSite: by(derived('dk_reporting'), ledger),
  },
  {
    what: 'a passport for another environment',
    outcome: OTHER_CONTEXT,
    atSite: by(
      attested('broker-1', { context: { environment: 'Production', issuer: BROKER_ISSUER } }),
      ledger,
    ),
  },
];

const KEYS: readonly SiteCase[] = [
  {
    what: 'an expired derived key',
    outcome: 'invalid_request_proof/key_expired 401',
    atSite: by(derived('dk_expired'), readOrder),
  },
  {
    what: "a broker's key of the past",
    outcome: 'invalid_request_proof/key_expired 401',
    atSite: by(attested('broker-last'), readOrder),
  },
  {
    what: "a broker's key of the future",
    outcome: 'invalid_request_proof/key_not_yet_valid 401',
    atSite: by(attested('broker-next'), readOrder),
  },
  {
    what: 'signed with another algorithm than the key has',
    outcome: 'invalid_request_proof/passport_signature 401',
    atSite: by(
      (site) => ({ ...attestedCaller(site), passportKey: site.issuerKeys['broker-p256'] }),
      readOrder,
    ),
  },
];

/** Requests that are signed correctly for one route and sent to another. */
const BINDING: readonly SiteCase[] = [
  {
    what: 'for another method',
    outcome: 'request_binding_mismatch/route-id 403',
    atSite: {
      routeId: replaceOrder.route_id,
      provoke: (site) => ({
        ...signedRequest(site, { caller: billing(site), route: readOrder }),
        method: 'PUT',
      }),
    },
  },
  {
    what: 'for another path',
    outcome: 'request_binding_mismatch/route-id 403',
    atSite: {
      routeId: createUnseen.route_id,
      provoke: (site) => ({
        ...signedRequest(site, { caller: billing(site), route: createOrder, body: order }),
        target: '/v1/unseen',
      }),
    },
  },
];

/** Denials because of Envoy's own changes; the core would decide differently on the request as sent. */
export const ENVOY_CASES: readonly SiteCase[] = [
  {
    what: 'a path that Envoy normalises',
    outcome: 'request_binding_mismatch/target 403',
    atSite: {
      routeId: readOrder.route_id,
      provoke: (site) =>
        signedRequest(site, { caller: billing(site), route: readOrder, target: '/v1/orders/./4711' }),
    },
  },
  {
    what: 'a body that Envoy does not send',
    outcome: 'request_binding_mismatch/body_unavailable 403',
    atSite: by(billing, createUnseen, { body: order, framing: 'length' }),
  },
];

const VERIFIER: readonly SiteCase[] = [
  {
    what: 'more from one holder than the quota',
    outcome: 'replay_store_unavailable/quota 503',
    state: 'small_quota',
    atSite: {
      routeId: readOrder.route_id,
      provoke: (site) => {
        const plan = { caller: attestedCaller(site), route: readOrder };
        return [signedRequest(site, plan), signedRequest(site, plan)];
      },
    },
  },
  {
    what: 'the audit file cannot be written',
    outcome: 'verifier_unavailable/audit 503',
    state: 'full_disk',
    isRecorded: false,
    atSite: by(billing, readOrder),
  },
];

export const SITE_CASES: readonly SiteCase[] = [...POLICY, ...KEYS, ...BINDING, ...VERIFIER];
