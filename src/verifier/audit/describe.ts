/** Builds the audit event of a request from the evidence that the steps collected. */
import { hash } from 'node:crypto';
import type { Route, Snapshot } from '../../bundle/compile/snapshot.ts';
import type { CallContext } from '../../process/connections/call-context.ts';
import { DECISION_EVENT_NAME, type DecisionEvent } from '../../process/telemetry/decision-event.ts';
import { parseTraceparent } from '../../process/telemetry/decision-trace.ts';
import type { AcceptedCredentials } from '../../protocol/accepted-credentials.ts';
import type { Passport } from '../../protocol/passport.ts';
import { type Denial, isNamingReason } from '../../protocol/reasons.ts';
import type { Caller } from '../decision/facts/caller.ts';
import { type Evidence, required } from '../decision/facts/evaluation.ts';
import type { RequestFacts } from '../decision/facts/request-facts.ts';
import { unmetAttributes } from '../decision/steps.ts';

/** A request and the evidence collected so far. */
export interface SeenRequest {
  readonly nowMs: number;
  readonly facts: RequestFacts;
  readonly call: CallContext | undefined;
  readonly snapshot: Snapshot | undefined;
  readonly evidence: Evidence;
}

export interface DecisionOnRequest {
  readonly decisionId: string;
  readonly durationUs: number;
  readonly callerVerified: boolean;
  readonly outcome: DecisionEvent['outcome'];
  /** undefined: allowed */
  readonly denial: Denial | undefined;
}

const MAX_METHOD_CHARACTERS = 32;

/** Takes two arguments rather than one merged object: copying the request's state would dominate the cost. */
export function describeDecision(seen: SeenRequest, decided: DecisionOnRequest): DecisionEvent {
  const { evidence, facts, nowMs, snapshot } = seen;
  const { denial } = decided;
  const { caller, credentials, matchedRule, route } = evidence;
  return {
    event: DECISION_EVENT_NAME,
    time: textOfTime(nowMs),
    decision_id: decided.decisionId,
    outcome: decided.outcome,
    reason: denial?.reason,
    detail: denial?.detail,
    status: denial?.status,
    auth_site: snapshot?.authSite,
    route_id: route?.routeId,
    // Empty only when the Check could not be decoded.
    method: facts.method.slice(0, MAX_METHOD_CHARACTERS) || undefined,
    ...describeCaller(caller, credentials),
    caller_verified: decided.callerVerified,
    proof_format: route?.acceptedProofs === undefined ? undefined : credentials?.format,
    ...(credentials === undefined ? {} : describeProof(credentials)),
    ...(snapshot === undefined ? {} : describeBundle(snapshot)),
    break_glass: decided.outcome === 'allowed' ? evidence.isBreakGlass : undefined,
    matched_rule: matchedRule?.index,
    unmet_attributes:
      denial !== undefined && isNamingReason(denial.reason) && route !== undefined && caller !== undefined
        ? unmetAttributes(route, caller)
        : undefined,
    trace_id: traceIdOf(seen),
    duration_us: decided.durationUs,
  };
}

/** The JSON text of {@link describeDecision} for an allowed request. What route, passport and bundle fix is serialized once. */
export function textOfAllowed(
  seen: SeenRequest,
  { decisionId, durationUs }: Pick<DecisionOnRequest, 'decisionId' | 'durationUs'>,
): string {
  const { evidence, nowMs } = seen;
  const [route, snapshot] = [required(evidence.route), required(seen.snapshot)];
  const credentials = required(evidence.credentials);
  const { name, value } = proofHashOf(credentials);
  const format = route.acceptedProofs === undefined ? '' : `"proof_format":"${credentials.format}",`;
  const breakGlass = evidence.isBreakGlass ? '"break_glass":true,' : '';
  const traceId = traceIdOf(seen);
  const trace = traceId === undefined ? '' : `"trace_id":"${traceId}",`;
  return (
    `{"event":"${DECISION_EVENT_NAME}","time":"${textOfTime(nowMs)}","decision_id":"${decisionId}",` +
    `"outcome":"allowed",${textOfRoute(route, snapshot.authSite)},${textOfCaller(evidence)},` +
    `"caller_verified":true,${format}"${name}":"${value}",${textOfBundle(snapshot, snapshot.head)},` +
    `${breakGlass}"matched_rule":${required(evidence.matchedRule).index},${trace}"duration_us":${durationUs}}`
  );
}

const textOfRoute = rememberedMembers(({ method, routeId }: Route, authSite: string) => ({
  auth_site: authSite,
  route_id: routeId,
  method,
}));
const textOfBundle = rememberedMembers(describeBundle);
const textOfPassport = rememberedMembers(({ claims, keyId }: Passport, clientId: string | undefined) => ({
  issuer: claims.issuer,
  subject: claims.subject,
  trust_domain: claims.trustDomain,
  key_id: keyId,
  key_binding: claims.keyBinding,
  client_id: clientId,
  passport_id: claims.passportId,
}));

function textOfCaller({ caller, credentials }: Evidence): string {
  const passport = credentials?.passport;
  return passport === undefined
    ? textOfMembers(describeCaller(caller, credentials))
    : textOfPassport(passport, clientIdOf(caller));
}

/**
 * The JSON text of an object's members, kept as long as the object is in memory.
 * @param describe a function of the object and of one more value, with which the text is kept
 */
function rememberedMembers<K extends object, V>(
  describe: (key: K, value: V) => object,
): (key: K, value: V) => string {
  const kept = new WeakMap<K, { readonly value: V; readonly text: string }>();
  return (key, value) => {
    const known = kept.get(key);
    if (known !== undefined && known.value === value) return known.text;
    const text = textOfMembers(describe(key, value));
    kept.set(key, { value, text });
    return text;
  };
}

function textOfMembers(object: object): string {
  return JSON.stringify(object).slice(1, -1);
}

function describeCaller(caller: Caller | undefined, credentials: AcceptedCredentials | undefined) {
  return {
    issuer: caller?.issuer,
    subject: caller?.subject,
    trust_domain: caller?.trustDomain,
    key_id: caller?.keyId,
    key_binding: caller?.keyBinding,
    client_id: clientIdOf(caller),
    passport_id: credentials?.passport?.claims.passportId ?? tokenIdOf(credentials),
  };
}

/** Undefined for a passport that claims another identity. Of the identity that was judged: a delta may have changed the client since. */
function clientIdOf(caller: Caller | undefined): string | undefined {
  const identity = caller?.identity;
  return identity !== undefined && 'clientId' in identity ? identity.clientId : undefined;
}

function describeBundle({ head, revision }: Snapshot) {
  return { bundle_revision: revision, bundle_head: head };
}

function describeProof(credentials: AcceptedCredentials): Pick<DecisionEvent, ProofHashName> {
  const { name, value } = proofHashOf(credentials);
  return { [name]: value };
}

type ProofHashName = 'transcript_sha256' | 'signature_params_sha256' | 'dpop_proof_sha256';

function proofHashOf(credentials: AcceptedCredentials): {
  readonly name: ProofHashName;
  readonly value: string;
} {
  switch (credentials.format) {
    case 'transcript-v1':
      return { name: 'transcript_sha256', value: sha256(credentials.proof.transcriptBytes) };
    case 'http-message-signatures':
      return { name: 'signature_params_sha256', value: sha256(credentials.signature.params) };
    case 'dpop':
      return { name: 'dpop_proof_sha256', value: sha256(credentials.proof.signingInput) };
  }
}

/** The `jti` of an access token, which may have none. */
function tokenIdOf(credentials: AcceptedCredentials | undefined): string | undefined {
  return credentials?.format === 'dpop' && credentials.passport === undefined
    ? credentials.token.tokenId
    : undefined;
}

const sha256 = (bytes: Buffer | string): string => hash('sha256', bytes, 'base64url');

let lastSecond = { number: -1, text: '' };

/** Decisions share a second, and formatting a date is slow. */
function textOfTime(ms: number): string {
  const number = Math.floor(ms / 1000);
  if (number !== lastSecond.number) {
    lastSecond = { number, text: new Date(number * 1000).toISOString().slice(0, -'000Z'.length) };
  }
  return `${lastSecond.text}${String(Math.floor(ms) % 1000).padStart(3, '0')}Z`;
}

/** A proxy that starts traces itself sends the trace context only with its call. */
function traceIdOf({ call, facts }: SeenRequest): string | undefined {
  const header = facts.headers.lookup('traceparent');
  const own = header.kind === 'single' ? parseTraceparent(header.value) : undefined;
  return (own ?? parseTraceparent(call?.traceparent()))?.traceId;
}
