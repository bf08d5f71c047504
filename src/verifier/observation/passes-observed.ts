/**
 * Whether a denied request passes without identity. Everything that is not named here denies.
 * Source: docs/operate/observe.md "What passes, and what is denied".
 */
import type { Route, Snapshot } from '../../bundle/compile/snapshot.ts';
import { mayHaveSignature, SITE_PROFILE } from '../../protocol/http-signature.ts';
import type { Denial, Reason } from '../../protocol/reasons.ts';
import { DPOP_HEADER, HTTP_SIGNATURE_FIELDS } from '../../protocol/wire-names.ts';
import type { RequestFacts } from '../decision/facts/request-facts.ts';
import { checkFreshness } from '../decision/steps/freshness.ts';
import type { CurrentObservations } from './observations.ts';

/** Steps 1 (credentials), 2, 4 and 5, and replay. Not step 3: a stale bundle may miss what the site says by now. */
const PASSING: { readonly [R in Reason]: boolean } = {
  bundle_policy_missing: false,
  bundle_route_missing: false,
  source_issuer_mismatch: true,
  source_trust_domain_mismatch: true,
  source_subject_mismatch: true,
  insufficient_key_binding: true,
  bundle_freshness_unknown: false,
  stale_bundle_fail_closed: false,
  missing_provenance: true,
  provenance_mismatch: true,
  missing_context: true,
  context_mismatch: true,
  invalid_request_proof: true,
  request_binding_mismatch: true,
  jti_replay: true,
  replay_store_unavailable: true,
  verifier_unavailable: false,
};

/** Whom the site has shut out. */
const SHUT_OUT: ReadonlySet<string | undefined> = new Set([
  'key_revoked',
  'subject_blocked',
  'holder_blocked',
]);

export interface DeniedRequest {
  readonly facts: RequestFacts;
  readonly denial: Denial;
  readonly snapshot: Snapshot | undefined;
  /** Undefined when none matches. */
  readonly route: Route | undefined;
  readonly nowSeconds: number;
  readonly realtimeStalenessSeconds: number;
}

export function passesObserved(observations: CurrentObservations, request: DeniedRequest): boolean {
  const { denial, facts, nowSeconds, route, snapshot } = request;
  if (snapshot === undefined || !isUpgradeObservable(facts, route)) return false;
  if (facts.removesProofs !== true && unusedProofs(facts, snapshot).length > 0) return false;
  if (route === undefined) {
    return (
      denial.reason === 'bundle_route_missing' &&
      denial.detail === 'no_match' &&
      observations.observesUnmatched(snapshot, facts.target, nowSeconds) &&
      isFreshForAny(request, snapshot)
    );
  }
  const isShutOut = denial.reason === 'invalid_request_proof' && SHUT_OUT.has(denial.detail);
  return (
    PASSING[denial.reason] &&
    !isShutOut &&
    observations.observes(route, nowSeconds) &&
    // A denial of an earlier step says nothing about freshness.
    checkFreshness(route.freshness, snapshot, nowSeconds, request.realtimeStalenessSeconds) === undefined
  );
}

/**
 * Headers with a proof for the site that has not been consumed: anyone who sees it can use it where a route accepts it. A DPoP proof
 * does not name a site, so any may be for a site that accepts them.
 */
export function unusedProofs(
  { headers }: Pick<RequestFacts, 'headers'>,
  { acceptsDpop, authSite }: Snapshot,
): readonly string[] {
  return [
    ...(mayHaveSignature(headers, SITE_PROFILE, authSite) ? HTTP_SIGNATURE_FIELDS : []),
    ...(acceptsDpop && headers.lookup(DPOP_HEADER).kind !== 'absent' ? [DPOP_HEADER] : []),
  ];
}

/** Only a point that ends the tunnel itself can end it with the observation. */
function isUpgradeObservable({ headers, method, upgrade }: RequestFacts, route: Route | undefined): boolean {
  switch (upgrade) {
    case 'none':
      return true;
    case 'tunnel':
      return route?.upgrade === 'websocket';
    default:
      return method !== 'CONNECT' && headers.lookup('upgrade').kind === 'absent';
  }
}

/** Unmatched requests have no freshness rule: they pass while at least one route could be served. */
function isFreshForAny({ nowSeconds, realtimeStalenessSeconds }: DeniedRequest, snapshot: Snapshot): boolean {
  const rules = snapshot.routesByFreshness.map(({ rule }) => rule);
  const tried = rules.length > 0 ? rules : [{ kind: 'realtime', maxStalenessSeconds: undefined } as const];
  return tried.some(
    (rule) => checkFreshness(rule, snapshot, nowSeconds, realtimeStalenessSeconds) === undefined,
  );
}
