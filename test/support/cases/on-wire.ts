/** The table of denials as real enforcement points see it: end-to-end tests and the conformance suite are made of it. */
import type { Reason } from '../../../src/protocol/reasons.ts';
import { AUTHORIZATION_HEADER } from '../../../src/protocol/wire-names.ts';
import { BINDING_FAULTS } from '../../../src/tools/conformance/cases/binding-faults.ts';
import { PROOF_FAULTS } from '../../../src/tools/conformance/cases/proof-faults.ts';
import type { PublicFault } from '../../../src/tools/conformance/wire/conformance-case.ts';
import { caseRequest, siteRouteOf } from '../site/case-request.ts';
import { ROUTES } from '../site/routes.ts';
import type { Site } from '../site/site.ts';
import { READ_ROUTES, subjectOf } from '../site/subject.ts';
import type { VerifierState } from '../site/verifier-states.ts';
import { type AtSite, type OnWire, type Provocation, partsOf } from './denial-case.ts';
import { FAULTS } from './one-fault.ts';
import { type Case, read } from './request-cases.ts';
import { ENVOY_CASES, SITE_CASES } from './site-cases.ts';
import { TABLE } from './table.ts';
import { WIRE_CASES } from './wire-cases.ts';

export interface WireDenial {
  /** `reason/detail: what` */
  readonly name: string;
  readonly reason: Reason;
  readonly detail: string | undefined;
  readonly state: VerifierState;
  /** Absent where the request leads to no route. */
  readonly routeId: string | undefined;
  readonly callerVerified: boolean;
  readonly isRecorded: boolean;
  /** Signs anew at each call. */
  readonly provoke: (site: Site) => Provocation;
}

type Asked = Pick<Case, 'plan' | 'edits'>;

function wireDenial(outcome: string, onWire: OnWire, asked: Asked = { plan: read }): WireDenial {
  const { detail, reason } = partsOf(outcome);
  const { isRecorded = true, state = 'usual', what } = onWire;
  return {
    name: `${outcome.replace(/ \d+$/, '')}: ${what}`,
    reason,
    detail,
    state,
    ...(onWire.atSite ?? atSite(reason, onWire, asked)),
    callerVerified: AFTER_STEP_5.has(reason),
    isRecorded,
  };
}

const WITHOUT_ROUTE: ReadonlySet<Reason> = new Set<Reason>(['bundle_policy_missing', 'bundle_route_missing']);
const AFTER_STEP_5: ReadonlySet<Reason> = new Set<Reason>([
  'jti_replay',
  'replay_store_unavailable',
  'verifier_unavailable',
]);

function atSite(reason: Reason, { edits, isReplay, plan }: OnWire, asked: Asked): AtSite {
  const sent = plan ?? asked.plan;
  return {
    routeId: WITHOUT_ROUTE.has(reason) ? undefined : siteRouteOf(sent).route_id,
    provoke: (site) => {
      const request = caseRequest(site, sent, edits ?? asked.edits);
      return isReplay === true ? [request, request] : request;
    },
  };
}

export const CORE_DENIALS: readonly WireDenial[] = [
  ...FAULTS.flatMap(({ onWire = [], outcome, request }) =>
    onWire.map((each) => wireDenial(outcome, each, { plan: read, ...(request && { edits: request }) })),
  ),
  ...[...TABLE, ...WIRE_CASES.flatMap(({ cases }) => cases)].flatMap(({ onWire, outcome, ...asked }) =>
    onWire === undefined ? [] : [wireDenial(outcome, onWire, asked)],
  ),
  ...SITE_CASES.map((one) => wireDenial(one.outcome, one)),
];

/** Envoy itself refuses header names with `_`. */
const REFUSED_BY_ENVOY = / with _$/;

/** The faults of `proofgate conformance`, which runs against any deployment. */
function publicDenials<R extends Reason>(
  reason: R,
  faults: readonly PublicFault<R>[],
): readonly WireDenial[] {
  return faults
    .filter(({ what }) => !REFUSED_BY_ENVOY.test(what))
    .map(({ detail, make, needs, passportIn = AUTHORIZATION_HEADER, what }) => ({
      name: `${reason}/${detail}: ${what}`,
      reason,
      detail,
      state: 'usual',
      routeId: (needs === 'write_route' ? ROUTES.createOrder : READ_ROUTES[passportIn].route).route_id,
      callerVerified: false,
      isRecorded: true,
      provoke: (site) => make(subjectOf(site, passportIn)),
    }));
}

/** Behind Envoy. */
export const ENVOY_DENIALS: readonly WireDenial[] = [
  ...CORE_DENIALS,
  ...ENVOY_CASES.map((one) => wireDenial(one.outcome, one)),
  ...publicDenials('invalid_request_proof', PROOF_FAULTS),
  ...publicDenials('request_binding_mismatch', BINDING_FAULTS),
];
