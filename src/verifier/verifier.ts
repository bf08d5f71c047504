/**
 * One verifier, whatever the door: the pipeline, then replay, then the record of both.
 * Whatever fails on the way denies (specification "Request evaluation order", docs/protocol.md "Replay").
 */
import { randomUUID } from 'node:crypto';
import type { Snapshot } from '../bundle/compile/snapshot.ts';
import { detailLabel } from '../protocol/detail-codes.ts';
import { type Denial, deny } from '../protocol/reasons.ts';
import type { Origin } from '../protocol/request-target.ts';
import type { VerifierMetrics } from '../telemetry/metrics.ts';
import type { Asker } from './asker.ts';
import { describeDecision } from './audit/describe.ts';
import type { AuditMode, AuditSink } from './audit/sink.ts';
import { decide, type Verified } from './decision/decide.ts';
import type { Decision } from './decision/decision.ts';
import type { Evidence } from './decision/evaluation.ts';
import { createPassportCache } from './decision/passport-cache.ts';
import type { RequestFacts } from './decision/request-facts.ts';
import type { StepName } from './decision/steps.ts';
import { replayIdentifier } from './replay/identifier.ts';
import type { ReplayOutcome, ReplayStore } from './replay/store.ts';

export interface VerifierOptions {
  /** The snapshot of this moment; a request keeps the one that it began with. */
  readonly currentSnapshot: () => Snapshot | undefined;
  readonly replayStore: ReplayStore;
  readonly auditSink: AuditSink;
  readonly auditMode: AuditMode;
  readonly metrics: VerifierMetrics;
  /** Wall clock, milliseconds since the epoch. */
  readonly nowMs: () => number;
  /** Most age of the bundle for `realtime` routes, seconds. */
  readonly realtimeStalenessSeconds: number;
  /** Behind a proxy that rewrites host or scheme: the one origin that this verifier serves. */
  readonly externalOrigin: Origin | undefined;
  /** More requests waiting for the replay store than this are refused. */
  readonly maxInFlight: number;
  /** A fault of ours; the request has been denied. */
  readonly onInternalError: (error: unknown) => void;
}

export interface Verifier {
  /**
   * Never throws and never rejects. Synchronous where the replay store is.
   * @param asker where the door knows who waits: whoever no longer does has nothing evaluated and consumes nothing
   */
  check(facts: RequestFacts, asker?: Asker): Decision | Promise<Decision>;
}

/** One request on its way. */
interface Pass {
  readonly facts: RequestFacts;
  readonly asker: Asker | undefined;
  readonly snapshot: Snapshot | undefined;
  readonly nowMs: number;
  readonly startedMs: number;
  readonly evidence: Evidence;
}

export function createVerifier(options: VerifierOptions): Verifier {
  const passports = createPassportCache();
  const steps = createStepClock(options.metrics);
  let inFlight = 0;

  function begin(received: RequestFacts, asker: Asker | undefined): Pass {
    const { currentSnapshot, externalOrigin, nowMs } = options;
    const facts = externalOrigin === undefined ? received : { ...received, ...externalOrigin };
    const snapshot = currentSnapshot();
    return { facts, asker, snapshot, nowMs: nowMs(), startedMs: performance.now(), evidence: {} };
  }

  function check(received: RequestFacts, asker?: Asker): Decision | Promise<Decision> {
    const { metrics, realtimeStalenessSeconds } = options;
    let pass: Pass | undefined;
    try {
      pass = begin(received, asker);
      if (inFlight >= options.maxInFlight || asker?.waitedTooLong) return finish(pass, OVERLOADED);
      const nowSeconds = Math.floor(pass.nowMs / 1000);
      const inputs = { nowSeconds, realtimeStalenessSeconds, passports, onStep: steps.begin };
      const verdict = decide(pass.facts, pass.snapshot, inputs, pass.evidence);
      const endedMs = steps.end();
      metrics.stepTook('pipeline', (endedMs - pass.startedMs) / 1000);
      asker?.trace?.stepTook('pipeline', pass.startedMs, endedMs);
      if (verdict.kind === 'denied') return finish(pass, verdict);
      return asker?.isGone() ? finish(pass, OVERLOADED, verdict) : consume(pass, verdict, nowSeconds);
    } catch (error) {
      steps.end();
      return fail(pass, error);
    }
  }

  function consume(pass: Pass, verified: Verified, nowSeconds: number): Decision | Promise<Decision> {
    const { holder, snapshot } = verified;
    const { transcript } = verified.credentials.proof;
    const startedMs = performance.now();
    const outcome = options.replayStore.consume({
      identifier: replayIdentifier(snapshot.authSite, holder.thumbprint, transcript.jti),
      holderThumbprint: holder.thumbprint,
      issuedAtSeconds: transcript.issuedAtSeconds,
      expiresAtSeconds: transcript.expiresAtSeconds,
      skewSeconds: snapshot.skewSeconds,
      nowSeconds,
    });
    const conclude = (answer: ReplayOutcome) => {
      const endedMs = performance.now();
      options.metrics.stepTook('replay', (endedMs - startedMs) / 1000);
      pass.asker?.trace?.stepTook('replay', startedMs, endedMs);
      // The answer reaches nobody: the record must not say that somebody was let through.
      const late = pass.asker?.isGone() ? OVERLOADED : undefined;
      return finish(pass, denialOf(answer, options.metrics) ?? late, verified);
    };
    if ('kind' in outcome) return conclude(outcome);
    inFlight += 1;
    return Promise.resolve(outcome).then(
      (answer) => {
        inFlight -= 1;
        return guarded(pass, () => conclude(answer));
      },
      (error: unknown) => {
        inFlight -= 1;
        return fail(pass, error);
      },
    );
  }

  function guarded(pass: Pass, conclude: () => Decision): Decision {
    try {
      return conclude();
    } catch (error) {
      return fail(pass, error);
    }
  }

  function fail(pass: Pass | undefined, error: unknown): Decision {
    const denial = deny('verifier_unavailable', 'internal');
    try {
      options.onInternalError(error);
      if (pass !== undefined) return finish(pass, denial);
    } catch {
      // The record failed too: the answer is the same.
    }
    return { kind: 'denied', decisionId: randomUUID(), denial, routeId: undefined };
  }

  function finish(pass: Pass, denial: Denial | undefined, verified?: Verified): Decision {
    const decisionId = randomUUID();
    const decidedMs = performance.now();
    const recorded = options.auditSink.record(
      describeDecision(pass, {
        decisionId,
        durationUs: Math.round((decidedMs - pass.startedMs) * 1000),
        callerVerified: verified !== undefined,
        denial,
      }),
    );
    options.metrics.stepTook('audit', (performance.now() - decidedMs) / 1000);
    const refused =
      recorded || options.auditMode !== 'required' ? denial : deny('verifier_unavailable', 'audit');
    const routeId = pass.evidence.route?.routeId;
    if (refused === undefined && verified !== undefined) {
      options.metrics.decided('allowed', '', '', routeId ?? '');
      const { caller, credentials, route, snapshot } = verified;
      const passportSha256 = credentials.passport.sha256;
      return traced(pass, { kind: 'allowed', decisionId, snapshot, route, caller, passportSha256 });
    }
    const final = refused ?? deny('verifier_unavailable', 'internal');
    options.metrics.decided('denied', final.reason, detailLabel(final), routeId ?? '');
    return traced(pass, { kind: 'denied', decisionId, denial: final, routeId });
  }

  return { check };
}

/** Refused before anything was evaluated, or for an asker that is gone. */
const OVERLOADED = deny('verifier_unavailable', 'overloaded');

function traced({ asker, evidence, snapshot }: Pass, decision: Decision): Decision {
  if (asker?.trace === undefined) return decision;
  const { decisionId, kind: outcome } = decision;
  const { detail, reason } = decision.kind === 'denied' ? decision.denial : ALLOWED;
  const routeId = evidence.route?.routeId;
  const bundleRevision = snapshot?.revision;
  asker.trace.decided({ decisionId, outcome, reason, detail, routeId, bundleRevision });
  return decision;
}

const ALLOWED = { reason: undefined, detail: undefined };

interface StepClock {
  begin(step: StepName): void;
  /** Ends the step that was begun last; the moment, on the clock of `performance.now()`. */
  end(): number;
}

/** Steps 1 to 5 run without a pause, so one clock serves all requests. */
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

/** undefined: consumed, so allowed. Whatever else a store may say is a refusal. */
function denialOf(outcome: ReplayOutcome, metrics: VerifierMetrics): Denial | undefined {
  if (outcome.kind === 'consumed') return undefined;
  if (outcome.kind === 'replayed') return deny('jti_replay');
  metrics.replayUnavailable(outcome.why);
  return deny('replay_store_unavailable', outcome.why);
}
