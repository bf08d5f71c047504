/**
 * Explains an audit event without its request: the content of the event, and the bundle's route and key.
 * Source: docs/operate/explain.md "An audit event alone".
 */
import type { Route, Snapshot } from '../../bundle/compile/snapshot.ts';
import { isKeyBinding } from '../../protocol/identifiers.ts';
import { isNamingReason, STATUS_OF_REASON } from '../../protocol/reasons.ts';
import { formatTime } from '../../protocol/rfc3339.ts';
import {
  type ExplainedRule,
  explainFreshness,
  explainRules,
  type StepNumber,
  type Verdict,
} from '../decision/explain/explain.ts';
import { hintFor } from '../decision/explain/hints.ts';
import { knownTextsOf, Redaction } from '../decision/explain/redaction.ts';
import {
  bundleMembers,
  type ExplainedBundle,
  type ExplainReport,
  freshnessMembers,
  type MomentSource,
  routeMembers,
  ruleMembers,
  STEP_NAMES,
  shownDetail,
} from '../decision/explain/report.ts';
import { stepOfDenial } from '../decision/explain/step-of-denial.ts';
import { requestInvalid } from './json-fields.ts';
import type { RecordedEvent } from './recorded-event.ts';

export interface EventInputs {
  readonly recorded: RecordedEvent;
  /** Undefined without `--bundle` and `--state-dir`. */
  readonly bundle: ExplainedBundle | undefined;
  readonly moment: { readonly source: MomentSource; readonly seconds: number };
  readonly realtimeStalenessSeconds: number;
  readonly showValues: boolean;
}

/** @throws ExplainInputError `request_invalid` for a reason that this version does not know */
export function reportOfEvent(inputs: EventInputs): ExplainReport {
  const { bundle, moment, recorded } = inputs;
  const { detail, reason } = recorded;
  // An observed request passed in place of its denial.
  const outcome = recorded.outcome === 'allowed' ? 'allowed' : 'denied';
  if (outcome === 'denied' && reason === undefined) {
    throw requestInvalid('/reason', 'is none that this version knows');
  }
  const snapshot = bundle?.snapshot;
  const { routeId } = recorded;
  const route = routeId === undefined ? undefined : snapshot?.routes.find(routeId);
  const show = redactionFor(inputs, route);
  const isDenied = outcome === 'denied' && reason !== undefined;
  const denial = isDenied ? { reason, detail: shownDetail(detail, show) } : undefined;
  return {
    decision: {
      outcome,
      reason: denial?.reason ?? null,
      detail: denial?.detail ?? null,
      status: denial === undefined ? null : (recorded.status ?? STATUS_OF_REASON[denial.reason]),
    },
    hint: isDenied ? hintFor({ reason, detail }) : null,
    at: formatTime(moment.seconds),
    at_source: moment.source,
    bundle: bundle === undefined ? null : bundleMembers(bundle),
    recorded: recordedMembers(recorded, snapshot, show),
    request: null,
    steps: stepMembers(recorded, denial),
    route: route === undefined ? bareRoute(recorded, show) : routeMembers(route),
    credentials: null,
    caller: callerMembers(recorded, snapshot, show),
    rules: ruleMembers(route === undefined ? [] : rulesOf(route, recorded, snapshot)),
    freshness:
      route === undefined || snapshot === undefined
        ? null
        : freshnessMembers(
            route,
            explainFreshness(route, snapshot, {
              nowSeconds: moment.seconds,
              realtimeStalenessSeconds: inputs.realtimeStalenessSeconds,
            }),
          ),
    attributes: [],
    proof_checks: [],
    clock: null,
    transcript: [],
    upstream_headers: [],
    when_made: null,
    needs: needsOf(inputs),
    values: show.values,
  };
}

/**
 * The verifier took site and route from its bundle, and also the caller if it was verified or names a client, so they
 * are not secrets of a request.
 */
function redactionFor({ bundle, recorded, showValues }: EventInputs, route: Route | undefined): Redaction {
  const { clientId, isCallerVerified, keyId, reason } = recorded;
  const bundleKey = keyId === undefined ? undefined : bundle?.snapshot.keys.get(keyId);
  const { issuer, keyBinding, subject, trustDomain } = recorded;
  const isKnownCaller = isCallerVerified || clientId !== undefined;
  const texts = [
    recorded.authSite,
    recorded.routeId,
    ...(isKnownCaller ? [issuer, keyBinding, subject, trustDomain, keyId, clientId] : []),
    ...(reason !== undefined && isNamingReason(reason) ? [recorded.detail] : []),
  ].filter((text) => text !== undefined);
  const known = knownTextsOf({ route, snapshot: bundle?.snapshot, bundleKey, texts });
  return new Redaction({ known, showValues, credentials: [] });
}

function recordedMembers(
  recorded: RecordedEvent,
  snapshot: Snapshot | undefined,
  show: Redaction,
): NonNullable<ExplainReport['recorded']> {
  const { bundleHead, bundleRevision, decisionId, detail, outcome, reason } = recorded;
  return {
    time: formatTime(recorded.timeSeconds),
    decision_id: decisionId === undefined ? null : show.decisionId(decisionId),
    outcome,
    reason: reason ?? null,
    detail: shownDetail(detail, show),
    comparison: null,
    same_bundle:
      snapshot === undefined ? null : bundleHead === snapshot.head && bundleRevision === snapshot.revision,
    bundle_revision: bundleRevision ?? null,
    same_transcript: null,
    hint: reason === undefined ? null : hintFor({ reason, detail }),
  };
}

type EventDenial = Pick<NonNullable<ExplainReport['recorded']>, 'detail'> & {
  readonly reason: NonNullable<RecordedEvent['reason']>;
};

function stepMembers({ detail }: RecordedEvent, denial: EventDenial | undefined): ExplainReport['steps'] {
  const deciding = denial && stepOfDenial(denial.reason, detail);
  const verdictOf = (step: StepNumber): Verdict => {
    if (denial === undefined || (deciding !== undefined && step < deciding)) return 'passed';
    if (deciding === undefined) return 'not_checked';
    return step === deciding ? 'failed' : 'not_reached';
  };
  return ([1, 2, 3, 4, 5, 6, 7] as const).map((step) => ({
    step,
    name: STEP_NAMES[step],
    verdict: verdictOf(step),
    ...(denial !== undefined && step === deciding ? { reason: denial.reason, detail: denial.detail } : {}),
  }));
}

/** The route's name in the event, if no bundle with the route is given. */
function bareRoute({ routeId }: RecordedEvent, show: Redaction): ExplainReport['route'] {
  return routeId === undefined ? null : { route_id: show.text(routeId) };
}

function callerMembers(
  recorded: RecordedEvent,
  snapshot: Snapshot | undefined,
  show: Redaction,
): ExplainReport['caller'] {
  const { clientId, isCallerVerified, issuer, keyBinding, keyId, subject, trustDomain } = recorded;
  if (issuer === undefined || subject === undefined || trustDomain === undefined) return null;
  if (keyId === undefined || keyBinding === undefined || !isKeyBinding(keyBinding)) return null;
  const key = snapshot?.keys.get(keyId);
  const derived = key?.kind === 'derived_key' ? key : undefined;
  return {
    issuer: show.text(issuer),
    trust_domain: show.text(trustDomain),
    subject: show.text(subject),
    key_id: show.text(keyId),
    key_binding: keyBinding,
    known_from: clientId !== undefined ? 'bundle' : isCallerVerified ? 'verified' : 'claimed',
    key: key?.kind ?? null,
    key_thumbprint: key?.key.thumbprint ?? null,
    key_status: derived?.status ?? null,
    key_expires_at: derived === undefined ? null : formatTime(derived.expiresAtSeconds),
    client_id: clientId === undefined ? null : show.text(clientId),
    grants: derived === undefined ? null : Object.fromEntries(derived.client.grants),
  };
}

function rulesOf(
  route: Route,
  { issuer, keyBinding, keyId, subject, trustDomain }: RecordedEvent,
  snapshot: Snapshot | undefined,
): readonly ExplainedRule[] {
  if (issuer === undefined || subject === undefined || trustDomain === undefined) return [];
  if (keyBinding === undefined || !isKeyBinding(keyBinding)) return [];
  const key = keyId === undefined ? undefined : snapshot?.keys.get(keyId);
  const derivedKey = key?.kind === 'derived_key' ? key : undefined;
  return explainRules(route, { issuer, subject, trustDomain, keyBinding, derivedKey });
}

function needsOf({ bundle, recorded }: EventInputs): readonly string[] {
  const { outcome, reason } = recorded;
  const isOfBundle = reason !== 'replay_store_unavailable' && reason !== 'verifier_unavailable';
  const isOfRequest = isOfBundle && reason !== 'bundle_policy_missing' && reason !== 'jti_replay';
  return [
    ...(bundle === undefined && isOfBundle
      ? ["--bundle or --state-dir, with --bundle-key: the route, its rules and the caller's key"]
      : []),
    ...(outcome === 'denied' && isOfRequest
      ? [
          'the request beside the event, or a file of the verifier’s --capture-denied: each step, and the lines that differ',
        ]
      : []),
  ];
}
