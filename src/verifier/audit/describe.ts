/** Builds the audit event of a request from the evidence that the steps collected. */
import { hash } from 'node:crypto';
import type { Snapshot } from '../../bundle/compile/snapshot.ts';
import type { CallContext } from '../../process/connections/call-context.ts';
import { DECISION_EVENT_NAME, type DecisionEvent } from '../../process/telemetry/decision-event.ts';
import { parseTraceparent } from '../../process/telemetry/decision-trace.ts';
import type { AcceptedCredentials } from '../../protocol/accepted-credentials.ts';
import { type Denial, isNamingReason } from '../../protocol/reasons.ts';
import type { Evidence } from '../decision/facts/evaluation.ts';
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
  const { evidence, facts, snapshot } = seen;
  const { denial } = decided;
  const { caller, credentials, matchedRule, route } = evidence;
  return {
    event: DECISION_EVENT_NAME,
    time: textOfTime(seen.nowMs),
    decision_id: decided.decisionId,
    outcome: decided.outcome,
    reason: denial?.reason,
    detail: denial?.detail,
    status: denial?.status,
    auth_site: snapshot?.authSite,
    route_id: route?.routeId,
    // Empty only when the Check could not be decoded.
    method: facts.method.slice(0, MAX_METHOD_CHARACTERS) || undefined,
    issuer: caller?.issuer,
    subject: caller?.subject,
    trust_domain: caller?.trustDomain,
    key_id: caller?.keyId,
    key_binding: caller?.keyBinding,
    // Omitted for a passport that claims another identity.
    client_id:
      caller?.identity === caller?.derivedKey?.client ? caller?.derivedKey?.client.clientId : undefined,
    passport_id: credentials?.passport?.claims.passportId ?? tokenIdOf(credentials),
    caller_verified: decided.callerVerified,
    proof_format: route?.acceptedProofs === undefined ? undefined : credentials?.format,
    transcript_sha256:
      credentials?.format === 'transcript-v1' ? sha256(credentials.proof.transcriptBytes) : undefined,
    signature_params_sha256:
      credentials?.format === 'http-message-signatures' ? sha256(credentials.signature.params) : undefined,
    dpop_proof_sha256: credentials?.format === 'dpop' ? sha256(credentials.proof.signingInput) : undefined,
    bundle_revision: snapshot?.revision,
    bundle_head: snapshot?.head,
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

/** The `jti` of an access token, which may have none. */
function tokenIdOf(credentials: AcceptedCredentials | undefined): string | undefined {
  return credentials?.format === 'dpop' && credentials.passport === undefined
    ? credentials.token.tokenId
    : undefined;
}

const sha256 = (bytes: Buffer | string): string => hash('sha256', bytes, 'base64url');

let lastTime = { ms: 0, text: new Date(0).toISOString() };

/** Under load several decisions share one millisecond, and formatting a date is slow. */
function textOfTime(ms: number): string {
  if (ms !== lastTime.ms) lastTime = { ms, text: new Date(ms).toISOString() };
  return lastTime.text;
}

/** A proxy that starts traces itself sends the trace context only with its call. */
function traceIdOf({ call, facts }: SeenRequest): string | undefined {
  const header = facts.headers.lookup('traceparent');
  const own = header.kind === 'single' ? parseTraceparent(header.value) : undefined;
  return (own ?? parseTraceparent(call?.traceparent()))?.traceId;
}
