/**
 * Builds the report of an explanation: the members of the JSON result, with all values redacted as required. Text output
 * uses the same report.
 * Source: docs/operate/explain.md "As JSON".
 */

import { hash } from 'node:crypto';
import { findShadowedRoute } from '../../../bundle/compile/shadowed-route.ts';
import type { Route, Snapshot } from '../../../bundle/compile/snapshot.ts';
import { type Denial, isDenial, isKnownDetail, type Reason } from '../../../protocol/reasons.ts';
import { pathOf } from '../../../protocol/request-target.ts';
import { formatTime } from '../../../protocol/rfc3339.ts';
import type { Verified } from '../decide.ts';
import type { RequestFacts } from '../facts/request-facts.ts';
import { identityHeadersOf } from '../identity-headers.ts';
import {
  type ComparedLine,
  type ExplainedFreshness,
  type ExplainedRule,
  type Explanation,
  HEADER_LINE,
  type StepNumber,
} from './explain.ts';
import { hintFor } from './hints.ts';
import { quoted, type Redaction } from './redaction.ts';
import {
  callerMembers,
  clockMembers,
  componentName,
  credentialMembers,
  differenceOf,
  shownTime,
} from './report-members.ts';

export type MomentSource = 'flag' | 'event' | 'check_request' | 'now';

/** A bundle with its members of the report. */
export interface ExplainedBundle {
  readonly snapshot: Snapshot;
  readonly signatures: 'valid' | 'not_checked';
  /** Warnings, one line each: what blocks newer content, what was not checked, and which rules match nothing. */
  readonly warnings: readonly string[];
}

/** The decision in an audit event. */
export interface RecordedDecision {
  readonly timeSeconds: number;
  readonly decisionId: string | undefined;
  readonly outcome: 'allowed' | 'denied' | 'observed';
  /** Undefined also for a reason that this version does not know. */
  readonly reason: Reason | undefined;
  readonly detail: string | undefined;
  readonly bundleRevision: number | undefined;
  readonly bundleHead: string | undefined;
  readonly transcriptSha256: string | undefined;
}

export interface Explained {
  readonly explanation: Explanation;
  readonly facts: RequestFacts;
  readonly bundle: ExplainedBundle | undefined;
  readonly momentSource: MomentSource;
  readonly recorded: RecordedDecision | undefined;
  /** Whether the request is the signed one, because none was captured. */
  readonly isAsSigned: boolean;
  readonly show: Redaction;
}

/** Step names from the specification's "Request evaluation order (adapter)"; the first step also reads the credentials. */
export const STEP_NAMES: { readonly [S in StepNumber]: string } = {
  1: 'Route matches a policy in the loaded bundle, and the credentials can be read',
  2: 'Source rule matches issuer, trust domain, subject and key binding',
  3: 'Bundle is fresh enough for the route',
  4: 'Provenance and context policy satisfied',
  5: 'Passport signature, audience, expiry and transcript-v1 binding valid',
  6: 'jti unused; consumed atomically',
  7: 'Forwarded upstream with context headers',
};

type RequestReport = ReturnType<typeof reportOfRequest>;
type Recorded = NonNullable<RequestReport['recorded']>;
type Changed = 'bundle' | 'caller' | 'credentials' | 'decision' | 'recorded' | 'request' | 'route';

/** An audit event alone has no request, and needs no bundle. */
export type ExplainReport = Omit<RequestReport, Changed> & {
  readonly [N in 'bundle' | 'credentials' | 'request']: RequestReport[N] | null;
} & {
  readonly decision: Omit<RequestReport['decision'], 'status'> & { readonly status: number | null };
  readonly recorded:
    | (Omit<Recorded, 'comparison' | 'same_bundle'> & {
        readonly comparison: Recorded['comparison'] | null;
        readonly same_bundle: boolean | null;
      })
    | null;
  readonly caller:
    | (Omit<NonNullable<RequestReport['caller']>, 'known_from'> & {
        readonly known_from: 'bundle' | 'verified' | 'claimed';
      })
    | null;
  readonly route: ReturnType<typeof routeMembers> | { readonly route_id: string } | null;
};

export function reportOf(explained: Explained): ExplainReport {
  return reportOfRequest(explained);
}

function reportOfRequest(explained: Explained) {
  const { bundle, explanation, facts, isAsSigned, momentSource, show } = explained;
  const { decision, nowSeconds } = explanation;
  return {
    decision: decisionMembers(decision, show),
    hint: isDenial(decision)
      ? (shadowHint(decision, explained) ?? hintFor(decision, explanation.transcript))
      : null,
    at: formatTime(nowSeconds),
    at_source: momentSource,
    bundle: bundle === undefined ? null : bundleMembers(bundle),
    recorded: recordedMembers(explained),
    request: {
      as_signed: isAsSigned,
      method: show.method(facts.method),
      scheme: show.scheme(facts.scheme),
      authority: show.authority(facts.authority),
      target: show.target(facts.target),
      body: facts.body.kind === 'exact' ? `${facts.body.bytes.byteLength} bytes` : facts.body.kind,
    },
    steps: explanation.steps.map(({ step, verdict, denial }) => ({
      step,
      name: STEP_NAMES[step],
      verdict,
      ...(denial === undefined ? {} : { reason: denial.reason, detail: shownDetail(denial.detail, show) }),
    })),
    route: explanation.route === undefined ? null : routeMembers(explanation.route),
    credentials: credentialMembers(explanation, facts.headers, show),
    caller: callerMembers(explanation, show),
    rules: ruleMembers(explanation.rules),
    freshness:
      explanation.freshness === undefined || explanation.route === undefined
        ? null
        : freshnessMembers(explanation.route, explanation.freshness),
    attributes: explanation.attributes.map(({ kind, name, allowed, actual, denial }) => ({
      kind,
      name,
      allowed: [...allowed],
      actual: actual === undefined ? null : show.text(actual),
      fault: denial?.reason ?? null,
    })),
    proof_checks: proofCheckMembers(explanation),
    clock: clockMembers(explanation),
    transcript: transcriptMembers(explanation, show),
    upstream_headers: upstreamHeaders(explained),
    when_made: whenMadeMembers(explanation, show),
    needs: NONE,
    values: show.values,
  };
}

/** Names both routes where one takes precedence over the other, and has no route for the method. */
function shadowHint({ detail }: Denial, { bundle, facts }: Explained): string | undefined {
  const { authority, method, scheme, target } = facts;
  const request = { method, origin: `${scheme}://${authority}`, path: pathOf(target) };
  const found =
    detail === 'no_match' && bundle !== undefined
      ? findShadowedRoute(bundle.snapshot.routes, request)
      : undefined;
  if (found === undefined) return undefined;
  const [shadowed, by] = [found.shadowed, found.by].map(
    (route) => `${route.routeId} (${route.method} ${route.pathTemplate})`,
  );
  return `the path fits route ${shadowed}, but a literal of route ${by} takes precedence: add a route for this method beside that one`;
}

const NONE: readonly string[] = [];

export function ruleMembers(rules: readonly ExplainedRule[]) {
  return rules.map(({ rule, denial }) => ({
    rule: rule.index,
    matches: denial === undefined || denial.detail === 'not_granted',
    fault: denial?.reason ?? null,
    issuer: rule.issuer,
    trust_domain: rule.trustDomain,
    [rule.subject.kind === 'exact' ? 'subject_exact' : 'subject_prefix']: rule.subject.value,
    canonical: rule.subject.isCanonical,
    required_key_binding: rule.requiredKeyBinding,
  }));
}

function decisionMembers(decision: Verified | Denial, show: Redaction) {
  return isDenial(decision)
    ? {
        outcome: 'denied',
        reason: decision.reason,
        detail: shownDetail(decision.detail, show),
        status: decision.status,
      }
    : { outcome: 'allowed', reason: null, detail: null, status: null };
}

/** `header.<name>`, an attribute name, or a name of the format. */
export function shownDetail(detail: string | undefined, show: Redaction): string | null {
  if (detail === undefined) return null;
  if (isKnownDetail(detail)) return detail;
  if (detail.startsWith('component.')) {
    const name = detail.slice('component.'.length);
    return `component.${componentName(name, show)}`;
  }
  return detail.startsWith(HEADER_LINE) ? show.lineName(detail) : show.text(detail);
}

export function bundleMembers({ snapshot, signatures, warnings }: ExplainedBundle) {
  return {
    auth_site: snapshot.authSite,
    revision: snapshot.revision,
    head: snapshot.head,
    issued_at: formatTime(snapshot.issuedAtSeconds),
    fresh_as_of: formatTime(snapshot.freshAsOfSeconds),
    expires_at: formatTime(snapshot.expiresAtSeconds),
    signatures,
    warnings,
  };
}

/**
 * `agrees`: the same decision. `beyond`: the recorded decision was made after the explained steps, in step 6 or by the
 * verifier's own state, such as its nonces. `differs`: the bundle, freshness, clock or captured data were different then.
 */
function recordedMembers({ explanation, recorded, bundle, show }: Explained) {
  if (recorded === undefined) return null;
  const { decision, credentials } = explanation;
  const reason = recorded.reason ?? null;
  const transcriptSha256 =
    credentials?.format === 'transcript-v1'
      ? hash('sha256', credentials.proof.transcriptBytes, 'base64url')
      : undefined;
  return {
    time: formatTime(recorded.timeSeconds),
    decision_id: recorded.decisionId === undefined ? null : show.decisionId(recorded.decisionId),
    outcome: recorded.outcome,
    reason,
    detail: shownDetail(recorded.detail, show),
    comparison: comparisonOf(decision, recorded),
    same_bundle:
      recorded.bundleHead === bundle?.snapshot.head && recorded.bundleRevision === bundle?.snapshot.revision,
    bundle_revision: recorded.bundleRevision ?? null,
    same_transcript:
      transcriptSha256 === undefined || recorded.transcriptSha256 === undefined
        ? null
        : transcriptSha256 === recorded.transcriptSha256,
    hint: reason === null ? null : hintFor({ reason, detail: recorded.detail }),
  };
}

const BEYOND: ReadonlySet<string | undefined> = new Set([
  'jti_replay',
  'replay_store_unavailable',
  'verifier_unavailable',
]);

function comparisonOf(
  decision: Verified | Denial,
  recorded: RecordedDecision,
): 'agrees' | 'beyond' | 'differs' {
  const denial = isDenial(decision) ? decision : undefined;
  const isBeyond = BEYOND.has(recorded.reason) || recorded.detail === 'dpop_nonce';
  if (denial === undefined && isBeyond) return 'beyond';
  const isSameOutcome = (recorded.outcome !== 'allowed') === (denial !== undefined);
  const isSame = isSameOutcome && recorded.reason === denial?.reason && recorded.detail === denial?.detail;
  return isSame ? 'agrees' : 'differs';
}

export function routeMembers(route: Route) {
  return {
    route_id: route.routeId,
    method: route.method,
    path_template: route.pathTemplate,
    audience: route.audience,
    resource: route.resource,
    access: route.access,
    body: route.body,
    signed_headers: route.signedHeaders,
    passport_header: route.passportHeader,
  };
}

export function freshnessMembers({ freshness: rule }: Route, freshness: ExplainedFreshness) {
  return {
    class: rule.kind === 'unknown' ? quoted(rule.freshnessClass) : rule.kind,
    age_seconds: freshness.ageSeconds,
    limit_seconds: freshness.limitSeconds ?? null,
  };
}

/** The checks of step 5 except the binding, which has a result for each transcript line. */
function proofCheckMembers({ steps }: Explanation) {
  const checks = steps.flatMap((step) => (step.step === 5 ? step.checks : []));
  return checks
    .filter(({ check }) => check !== 'binding')
    .map(({ check, verdict, denial }) => ({ check, verdict, detail: denial?.detail ?? null }));
}

function transcriptMembers({ transcript, credentials }: Explanation, show: Redaction) {
  const headers = credentials?.format === 'transcript-v1' ? credentials.proof.transcript.headers : [];
  const names = new Set(headers.map(({ name }) => name));
  return transcript.map((line) => {
    const { isEqual, name, rebuilt, signed } = line;
    const again = rebuilt.kind === 'value' ? rebuilt.value : undefined;
    return {
      line: show.lineName(name),
      equal: isEqual,
      signed: signed === undefined ? null : show.line(name, signed, names),
      rebuilt: again === undefined ? null : show.line(name, again, names),
      why: whyOf(line),
      difference: signed === undefined || again === undefined ? null : differenceOf(name, signed, again),
    };
  });
}

function whyOf({ rebuilt, signed }: ComparedLine): string | null {
  if (rebuilt.kind === 'unknown') return rebuilt.why;
  return signed === undefined ? 'not_signed' : null;
}

/** The identity headers of an allowed request, without the decision ID. */
function upstreamHeaders({ explanation, show }: Explained) {
  const { decision } = explanation;
  if (isDenial(decision)) return [];
  return identityHeadersOf(decision).map(([name, value]) => ({ name, value: show.text(value) }));
}

function whenMadeMembers({ whenMade }: Explanation, show: Redaction) {
  if (whenMade === undefined) return null;
  return { at: shownTime(whenMade.nowSeconds), decision: decisionMembers(whenMade.decision, show) };
}
