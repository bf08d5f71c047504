/**
 * The verifier behind every enforcement point: runs steps 1 to 5, then the replay check, then records the audit event.
 * Every failure denies (specification "Request evaluation order", docs/design/protocol.md "Replay").
 */
import { randomUUID } from 'node:crypto';
import type { Route, Snapshot } from '../bundle/compile/snapshot.ts';
import type { CountedDecision, SummaryOutcome } from '../bundle/format/decision-summary.ts';
import type { UnknownKey } from '../bundle/format/unknown-keys.ts';
import type { CallContext } from '../process/connections/call-context.ts';
import { UNVERIFIED } from '../process/request-body/body-space.ts';
import type { DecisionEvent } from '../process/telemetry/decision-event.ts';
import { type AcceptedCredentials, proofTermsOf, tokenOf } from '../protocol/accepted-credentials.ts';
import { holdsPassport } from '../protocol/credentials.ts';
import type { DpopNonces } from '../protocol/dpop-nonce.ts';
import { type PublicJwk, thumbprintOf } from '../protocol/public-key.ts';
import { type Denial, deny, detailLabel } from '../protocol/reasons.ts';
import type { Origin } from '../protocol/request-target.ts';
import { AUTHORIZATION_HEADER, hasDpopScheme, PROOF_FIELDS } from '../protocol/wire-names.ts';
import { describeDecision, textOfAllowed } from './audit/describe.ts';
import type { AuditMode, AuditSink } from './audit/sink.ts';
import type { DeniedRequest } from './capture/capture-document.ts';
import { challengesOf } from './decision/challenges.ts';
import {
  type AllowedDecision,
  type Decision,
  type DeniedDecision,
  decide,
  type ObservedDecision,
  type Verified,
} from './decision/decide.ts';
import type { Caller } from './decision/facts/caller.ts';
import { type Evidence, required } from './decision/facts/evaluation.ts';
import { createPassportCache } from './decision/facts/passport-cache.ts';
import type { RequestFacts, RequestHead } from './decision/facts/request-facts.ts';
import { createTokenCache } from './decision/facts/token-cache.ts';
import { isBlocked } from './decision/steps/blocked.ts';
import { keyDenial } from './decision/steps/proof.ts';
import { matchRoute } from './decision/steps/route.ts';
import type { StepName } from './decision/steps.ts';
import type { CurrentObservations } from './observation/observations.ts';
import { passesObserved, unusedProofs } from './observation/passes-observed.ts';
import { replayIdentifier, subjectHashOf } from './replay/identifier.ts';
import type { ReplayOutcome, ReplayStore } from './replay/store.ts';
import type { VerifierMetrics } from './verifier-metrics.ts';

export interface VerifierOptions {
  /** The current snapshot; a request keeps the one that it began with. */
  readonly currentSnapshot: () => Snapshot | undefined;
  readonly replayStore: ReplayStore;
  readonly auditSink: AuditSink;
  readonly auditMode: AuditMode;
  readonly metrics: VerifierMetrics;
  /** Wall clock, milliseconds since the epoch. */
  readonly nowMs: () => number;
  /** Maximum age of the bundle for `realtime` routes, seconds. */
  readonly realtimeStalenessSeconds: number;
  /** The only origin that this verifier serves, if a proxy before it rewrites host or scheme. */
  readonly externalOrigin: Origin | undefined;
  /** Nonces for DPoP. Default: none are accepted. */
  readonly dpopNonces?: DpopNonces | undefined;
  /** Which routes are observed. Default: none. */
  readonly observations?: CurrentObservations | undefined;
  /** Maximum number of requests that wait for the replay store; further ones are denied. */
  readonly maxInFlight: number;
  /** Reports an internal error; the request has been denied. */
  readonly onInternalError: (error: unknown) => void;
  /** Receives every denied request after its decision. Must not throw. */
  readonly onDenied?: ((denied: DeniedRequest) => void) | undefined;
  /** Counts every decision. Must not throw. */
  readonly onDecided?: ((decision: CountedDecision) => void) | undefined;
  /** Receives every request with a canonical target of a known origin that no route matches. Must not throw. */
  readonly onUnmatched?: ((method: string, target: string, nowMs: number) => void) | undefined;
}

export interface Verifier {
  /**
   * Never throws and never rejects. Synchronous if the replay store is.
   * @param call if the enforcement point has one. A request whose call is gone is not evaluated and consumes nothing.
   */
  check(facts: RequestFacts, call?: CallContext): Decision | Promise<Decision>;
  /** Whether the request's route binds the body: the enforcement point must then read all of it before {@link check}. */
  bindsBody(head: RequestHead): boolean;
  /** Whether the request's route lets it become a WebSocket. */
  allowsWebSocket(head: RequestHead): boolean;
  /**
   * Whether the key of an allowed request is still valid and its caller not blocked, for connections that outlive the
   * request.
   */
  hasValidKey(decision: AllowedDecision): boolean;
  /** Whether the route of a request that passed without identity is still observed, for what outlives the request. */
  isStillObserved(decision: ObservedDecision): boolean;
  /**
   * Verifies a request without its body. Returns a denial that no body could change, recorded like any other, or
   * permission to receive the body. An enforcement point calls it before it receives a costly body. Consumes nothing,
   * but denies a second request with the proof until the first body has ended. On an observed route, the body of a denied
   * request is received too, as that of an unverified caller.
   */
  awaitBody(head: RequestHead, call?: CallContext): AwaitedBody | DeniedDecision;
  /** Lower-case names of headers that may hold a proof, passport or token for the site: any of such a name while no bundle is loaded. */
  credentialsIn(head: Pick<RequestHead, 'headers'>): readonly string[];
  /** Records a denial that the enforcement point decided, without evaluating the request. Never throws. */
  refuse(facts: RequestFacts, denial: Denial, call?: CallContext): Decision;
}

/** Permission to receive the body of a request whose passport and proof are valid, or that is observed. */
export interface AwaitedBody {
  readonly kind: 'awaited';
  /** Names the verified caller, by issuer and subject; `UNVERIFIED` on an observed route. */
  readonly caller: string;
  /** Call it after {@link Verifier.check}, or when the body is no longer received. */
  readonly end: () => void;
}

/** State of one request during its evaluation. */
interface RequestContext {
  readonly facts: RequestFacts;
  readonly call: CallContext | undefined;
  readonly snapshot: Snapshot | undefined;
  readonly nowMs: number;
  readonly startedMs: number;
  readonly evidence: Evidence;
  /** Whether the enforcement point itself has refused the request. */
  isRefused: boolean;
}

export function createVerifier(options: VerifierOptions): Verifier {
  const passports = createPassportCache();
  const tokens = createTokenCache();
  const steps = createStepClock(options.metrics);
  let inFlight = 0;
  /** Replay identifiers of the proofs whose bodies are being received. */
  const awaited = new Set<string>();

  function withOrigin<Head extends RequestHead>(received: Head): Head {
    return options.externalOrigin === undefined ? received : { ...received, ...options.externalOrigin };
  }

  function begin(received: RequestFacts, call: CallContext | undefined): RequestContext {
    const snapshot = options.currentSnapshot();
    const { nowMs } = options;
    const facts = withOrigin(received);
    return {
      facts,
      call,
      snapshot,
      nowMs: nowMs(),
      startedMs: performance.now(),
      evidence: {},
      isRefused: false,
    };
  }

  function check(received: RequestFacts, call?: CallContext): Decision | Promise<Decision> {
    const { metrics, realtimeStalenessSeconds } = options;
    let context: RequestContext | undefined;
    try {
      context = begin(received, call);
      if (inFlight >= options.maxInFlight || call?.waitedTooLong) return finish(context, OVERLOADED);
      const nowSeconds = Math.floor(context.nowMs / 1000);
      const { dpopNonces } = options;
      const inputs = {
        nowSeconds,
        realtimeStalenessSeconds,
        passports,
        tokens,
        dpopNonces,
        onStep: steps.begin,
      };
      const verdict = decide(context.facts, context.snapshot, inputs, context.evidence);
      const endedMs = steps.end();
      metrics.stepTook('pipeline', (endedMs - context.startedMs) / 1000);
      call?.trace?.stepTook('pipeline', context.startedMs, endedMs);
      if (verdict.kind === 'denied') return finish(context, verdict);
      return call?.isGone() ? finish(context, OVERLOADED, verdict) : consume(context, verdict, nowSeconds);
    } catch (error) {
      steps.end();
      return fail(context, error);
    }
  }

  function routeOf(head: RequestHead): Route | undefined {
    const snapshot = options.currentSnapshot();
    const match = snapshot && matchRoute(withOrigin(head), snapshot);
    return match !== undefined && 'route' in match ? match.route : undefined;
  }

  function bindsBody(head: RequestHead): boolean {
    const route = routeOf(head);
    return route !== undefined && route.body !== 'unbound';
  }

  function hasValidKey({ caller, holderThumbprint, snapshot: before }: AllowedDecision): boolean {
    const snapshot = options.currentSnapshot();
    if (snapshot === undefined || isBlocked(snapshot, caller, holderThumbprint)) return false;
    // Such an issuer has no other callers.
    if (before.oauthIssuers.has(caller.issuer)) return hasSameTokenKey(caller, before, snapshot);
    const key = snapshot.keys.get(caller.keyId);
    if (key?.key.thumbprint !== caller.bundleKey?.key.thumbprint) return false;
    return keyDenial(key, Math.floor(options.nowMs() / 1000), snapshot.skewSeconds) === undefined;
  }

  function awaitBody(head: RequestHead, call?: CallContext): AwaitedBody | DeniedDecision {
    let context: RequestContext | undefined;
    try {
      context = begin({ ...head, body: { kind: 'unknown' } }, call);
      const { dpopNonces, realtimeStalenessSeconds } = options;
      const nowSeconds = Math.floor(context.nowMs / 1000);
      const inputs = { nowSeconds, realtimeStalenessSeconds, passports, tokens, dpopNonces };
      const verdict = decide(context.facts, context.snapshot, inputs, context.evidence);
      if (verdict.kind === 'denied' && !dependsOnBody(verdict)) {
        return isObserved(context, verdict) ? UNVERIFIED_BODY : denied(finish(context, verdict));
      }
      const credentials = required(context.evidence.credentials);
      const caller = required(context.evidence.caller);
      const identifier = replayIdentifier(
        required(context.snapshot).authSite,
        thumbprintOf(holderJwkOf(credentials, caller)),
        proofTermsOf(credentials).jti,
      );
      if (awaited.has(identifier)) {
        const replay = deny('jti_replay');
        return isObserved(context, replay) ? UNVERIFIED_BODY : denied(finish(context, replay));
      }
      awaited.add(identifier);
      let isOver = false;
      const end = () => {
        if (!isOver) awaited.delete(identifier);
        isOver = true;
      };
      return { kind: 'awaited', caller: subjectHashOf(caller), end };
    } catch (error) {
      return denied(fail(context, error));
    }
  }

  function refuse(received: RequestFacts, denial: Denial, call?: CallContext): Decision {
    let context: RequestContext | undefined;
    try {
      context = begin(received, call);
      context.isRefused = true;
      return finish(context, denial);
    } catch (error) {
      return fail(context, error);
    }
  }

  function consume(
    context: RequestContext,
    verified: Verified,
    nowSeconds: number,
  ): Decision | Promise<Decision> {
    const { caller, holder, snapshot } = verified;
    const terms = proofTermsOf(verified.credentials);
    const startedMs = performance.now();
    const outcome = options.replayStore.consume({
      identifier: replayIdentifier(snapshot.authSite, holder.thumbprint, terms.jti),
      holderThumbprint: holder.thumbprint,
      subjectHash: subjectHashOf(caller),
      issuedAtSeconds: terms.issuedAtSeconds,
      expiresAtSeconds: terms.expiresAtSeconds,
      skewSeconds: snapshot.skewSeconds,
      nowSeconds,
    });
    const conclude = (answer: ReplayOutcome) => {
      const endedMs = performance.now();
      options.metrics.stepTook('replay', (endedMs - startedMs) / 1000);
      context.call?.trace?.stepTook('replay', startedMs, endedMs);
      // The answer can no longer reach the caller, so the audit event must not say that the request was allowed.
      const late = context.call?.isGone() ? OVERLOADED : undefined;
      return finish(context, denialOf(answer, options.metrics) ?? late, verified);
    };
    if ('kind' in outcome) return conclude(outcome);
    inFlight += 1;
    return Promise.resolve(outcome).then(
      (answer) => {
        inFlight -= 1;
        return guarded(context, () => conclude(answer));
      },
      (error: unknown) => {
        inFlight -= 1;
        return fail(context, error);
      },
    );
  }

  function guarded(context: RequestContext, conclude: () => Decision): Decision {
    try {
      return conclude();
    } catch (error) {
      return fail(context, error);
    }
  }

  function fail(context: RequestContext | undefined, error: unknown): Decision {
    const denial = deny('verifier_unavailable', 'internal');
    try {
      options.onInternalError(error);
      if (context !== undefined) return finish(context, denial);
    } catch {
      // Recording the failure failed too; the decision stays the same.
    }
    return { kind: 'denied', decisionId: randomUUID(), denial, routeId: undefined };
  }

  function isObserved(context: RequestContext, denial: Denial): boolean {
    const { observations, realtimeStalenessSeconds } = options;
    if (observations === undefined || context.isRefused) return false;
    // Its caller would not hear of what the handler or the upstream did.
    if (context.call?.isGone() === true) return false;
    const { evidence, facts, nowMs, snapshot } = context;
    const nowSeconds = Math.floor(nowMs / 1000);
    const request = { facts, denial, snapshot, route: evidence.route, nowSeconds, realtimeStalenessSeconds };
    return passesObserved(observations, request);
  }

  function noteUnmatched({ facts, isRefused, nowMs }: RequestContext, denial: Denial | undefined): void {
    if (options.onUnmatched === undefined || isRefused) return;
    if (denial?.reason === 'bundle_route_missing' && denial.detail === 'no_match')
      options.onUnmatched(facts.method, facts.target, nowMs);
  }

  function count(
    { evidence, facts, snapshot, startedMs }: RequestContext,
    outcome: SummaryOutcome,
    denial: Denial | undefined,
    decidedMs: number,
    derivedKeyId?: string,
  ): void {
    const routeId = evidence.route?.routeId;
    const reason = denial?.reason;
    const detail = denial === undefined ? '' : detailLabel(denial);
    options.metrics.decided(outcome, reason ?? '', detail, routeId ?? '');
    const { method } = facts;
    const durationMs = decidedMs - startedMs;
    const unknownKey = denial && unknownTokenKey(denial, evidence, snapshot);
    options.onDecided?.({ outcome, reason, detail, routeId, method, durationMs, derivedKeyId, unknownKey });
  }

  function finish(context: RequestContext, denial: Denial | undefined, verified?: Verified): Decision {
    const decisionId = randomUUID();
    const decidedMs = performance.now();
    noteUnmatched(context, denial);
    const outcome = denial === undefined ? 'allowed' : isObserved(context, denial) ? 'observed' : 'denied';
    const decided = {
      decisionId,
      durationUs: Math.round((decidedMs - context.startedMs) * 1000),
      callerVerified: verified !== undefined,
      outcome,
      denial,
    } as const;
    const recorded = options.auditSink.record(
      outcome === 'allowed' ? textOfAllowed(context, decided) : describeDecision(context, decided),
    );
    options.metrics.stepTook('audit', (performance.now() - decidedMs) / 1000);
    const refused =
      recorded || options.auditMode !== 'required' ? denial : deny('verifier_unavailable', 'audit');
    const routeId = context.evidence.route?.routeId;
    if (refused === undefined && verified !== undefined) {
      count(context, 'allowed', undefined, decidedMs, verified.caller.derivedKey?.keyId);
      if (context.evidence.isBreakGlass) options.metrics.allowedByBreakGlass();
      if (verified.route.acceptedProofs !== undefined) options.metrics.acceptedProof(verified.proofFormat);
      return traced(context, allowedDecision(decisionId, verified));
    }
    const final = refused ?? deny('verifier_unavailable', 'internal');
    if (outcome === 'observed' && refused === denial) {
      count(context, 'observed', final, decidedMs);
      const { evidence, facts } = context;
      const snapshot = required(context.snapshot);
      const removals = {
        removesAuthorization: mayHoldPassport(facts, snapshot),
        unusedProofs: unusedProofs(facts, snapshot),
      };
      return traced(context, {
        kind: 'observed',
        decisionId,
        denial: final,
        route: evidence.route,
        ...removals,
      });
    }
    count(context, 'denied', final, decidedMs);
    const { evidence, facts, nowMs, snapshot } = context;
    if (options.onDenied !== undefined) {
      const event = deniedEvent(describeDecision(context, decided), final);
      options.onDenied({ facts, nowMs, snapshot, event });
    }
    const newNonce = () => options.dpopNonces?.issue(Math.floor(nowMs / 1000));
    const challenges = challengesOf(final, { facts, route: evidence.route, snapshot, newNonce });
    return traced(context, { kind: 'denied', decisionId, denial: final, routeId, ...challenges });
  }

  return {
    check,
    refuse,
    bindsBody,
    allowsWebSocket: (head) => routeOf(head)?.upgrade === 'websocket',
    hasValidKey,
    isStillObserved: ({ route }) =>
      route !== undefined &&
      options.observations?.observes(route, Math.floor(options.nowMs() / 1000)) === true,
    awaitBody,
    credentialsIn: (head) => {
      const snapshot = options.currentSnapshot();
      const proofs = snapshot === undefined ? PROOF_FIELDS : unusedProofs(head, snapshot);
      const acceptsDpop = snapshot?.acceptsDpop ?? true;
      const isToken = (value: string) => holdsPassport(value) || (acceptsDpop && hasDpopScheme(value));
      const hasToken = head.headers.values(AUTHORIZATION_HEADER).some(isToken);
      return hasToken ? [...proofs, AUTHORIZATION_HEADER] : proofs;
    },
  };
}

const UNVERIFIED_BODY: AwaitedBody = { kind: 'awaited', caller: UNVERIFIED, end: () => undefined };

function allowedDecision(
  decisionId: string,
  { caller, credentials, holder, proofFormat, route, snapshot }: Verified,
): AllowedDecision {
  return {
    kind: 'allowed',
    decisionId,
    snapshot,
    route,
    caller,
    holderThumbprint: holder.thumbprint,
    proofFormat,
    passportSha256: tokenOf(credentials)?.sha256,
    otherSignatures:
      credentials.format === 'http-message-signatures' ? credentials.signature.otherSignatures : undefined,
  };
}

/** The key that a denied access token of an issuer of the bundle names, if the bundle does not have it. The name is not verified. */
function unknownTokenKey(
  { detail, reason }: Denial,
  { credentials }: Evidence,
  snapshot: Snapshot | undefined,
): UnknownKey | undefined {
  if (reason !== 'invalid_request_proof' || detail !== 'key_unknown') return undefined;
  if (credentials?.format !== 'dpop' || credentials.passport !== undefined) return undefined;
  const { issuer, keyId: kid } = credentials.token;
  return snapshot?.oauthIssuers.has(issuer) ? { issuer, kid } : undefined;
}

/** The key that signed the proof; known although the decision awaits the body. */
function holderJwkOf(credentials: AcceptedCredentials, { bundleKey }: Caller): PublicJwk {
  if (credentials.format === 'dpop') return credentials.proof.jwk;
  return credentials.passport?.claims.holderJwk ?? required(bundleKey).key.jwk;
}

/** Whether the issuer still has the key that signed a caller's token, and accepts tokens as old as then. */
function hasSameTokenKey({ issuer, keyId }: Caller, before: Snapshot, now: Snapshot): boolean {
  const [was, is] = [before, now].map(({ oauthIssuers }) => oauthIssuers.get(issuer));
  const key = is?.keys.get(keyId);
  const isSame = key !== undefined && key.thumbprint === was?.keys.get(keyId)?.thumbprint;
  return isSame && (is?.notBeforeSeconds ?? 0) <= (was?.notBeforeSeconds ?? 0);
}

/** Repeated lines, or joined ones, may hold one beside something else. */
function mayHoldPassport({ headers }: RequestFacts, { acceptsDpop }: Snapshot): boolean {
  const found = headers.lookup(AUTHORIZATION_HEADER);
  if (found.kind !== 'single') return found.kind === 'ambiguous';
  return holdsPassport(found.value) || (acceptsDpop && hasDpopScheme(found.value));
}

/** The event of the final decision: one that was allowed is denied when its event could not be recorded. */
function deniedEvent(event: DecisionEvent, { detail, reason, status }: Denial): DecisionEvent {
  return { ...event, outcome: 'denied', reason, detail, status };
}

/** Detail codes of other reasons are names from the bundle, so the reason counts too. */
function dependsOnBody({ detail, reason }: Denial): boolean {
  return reason === 'request_binding_mismatch' && detail === 'body_unavailable';
}

/** @throws TypeError for a decision that is no denial: a programming error */
function denied(decision: Decision): DeniedDecision {
  if (decision.kind === 'denied') return decision;
  throw new TypeError('allowed before the body');
}

/** For requests that are denied before evaluation, or whose caller is gone. */
const OVERLOADED = deny('verifier_unavailable', 'overloaded');

function traced({ call, evidence, snapshot }: RequestContext, decision: Decision): Decision {
  if (call?.trace === undefined) return decision;
  const { decisionId, kind: outcome } = decision;
  const { detail, reason } = decision.kind === 'allowed' ? ALLOWED : decision.denial;
  const routeId = evidence.route?.routeId;
  const bundleRevision = snapshot?.revision;
  call.trace.decided({ decisionId, outcome, reason, detail, routeId, bundleRevision });
  return decision;
}

const ALLOWED = { reason: undefined, detail: undefined };

interface StepClock {
  begin(step: StepName): void;
  /** Ends the current step and returns the time, in milliseconds of `performance.now()`. */
  end(): number;
}

/** Steps 1 to 5 run without awaiting, so all requests share one clock. */
function createStepClock(metrics: VerifierMetrics): StepClock {
  let current: StepName | undefined;
  let sinceMs = 0;
  const end = () => {
    const nowMs = performance.now();
    if (current !== undefined) metrics.stepTook(current, (nowMs - sinceMs) / 1000);
    current = undefined;
    return nowMs;
  };
  const begin = (step: StepName) => {
    sinceMs = end();
    current = step;
  };
  return { begin, end };
}

/** undefined when the proof was consumed, so the request is allowed. Every other outcome denies. */
function denialOf(outcome: ReplayOutcome, metrics: VerifierMetrics): Denial | undefined {
  if (outcome.kind === 'consumed') return undefined;
  if (outcome.kind === 'replayed') return deny('jti_replay');
  metrics.replayUnavailable(outcome.why);
  return deny('replay_store_unavailable', outcome.why);
}
