/** What an explanation must say of a request that was decided, whatever became of it. */
import { expect } from '@jest/globals';
import type { Snapshot } from '../../../../src/bundle/compile/snapshot.ts';
import { type Denial, isDenial } from '../../../../src/protocol/reasons.ts';
import { decide, type Verified } from '../../../../src/verifier/decision/decide.ts';
import { type Explanation, explainRequest } from '../../../../src/verifier/decision/explain/explain.ts';
import { stepOfDenial } from '../../../../src/verifier/decision/explain/step-of-denial.ts';
import { createPassportCache } from '../../../../src/verifier/decision/facts/passport-cache.ts';
import type { RequestFacts } from '../../../../src/verifier/decision/facts/request-facts.ts';
import { NOW_SECONDS } from '../../../support/fixtures/bundle-content.ts';
import { REALTIME_STALENESS_SECONDS } from '../../../support/fixtures/test-verifier.ts';

export function explainNow(facts: RequestFacts, snapshot: Snapshot | undefined): Explanation {
  const inputs = { nowSeconds: NOW_SECONDS, realtimeStalenessSeconds: REALTIME_STALENESS_SECONDS };
  return explainRequest(facts, snapshot, inputs);
}

/** Explains the request, and compares every part of the explanation with the result of `decide`. */
export function expectAgreement(facts: RequestFacts, snapshot: Snapshot | undefined): Explanation {
  const explanation = explainNow(facts, snapshot);
  const inputs = {
    nowSeconds: NOW_SECONDS,
    realtimeStalenessSeconds: REALTIME_STALENESS_SECONDS,
    passports: createPassportCache(),
  };
  const decided = decide(facts, snapshot, inputs, {});
  expect(verdictOf(explanation.decision)).toBe(verdictOf(decided));
  expectSteps(explanation);
  expectParts(explanation);
  return explanation;
}

export function verdictOf(decision: Verified | Denial): string {
  if (!isDenial(decision)) return 'verified';
  const { detail, reason, status } = decision;
  return `${reason}${detail === undefined ? '' : `/${detail}`} ${status}`;
}

/** One step failed, at the place of its reason; all earlier steps passed, and no later step is reported as passed. */
function expectSteps({ decision, steps }: Explanation): void {
  expect(steps.map(({ step }) => step)).toEqual([1, 2, 3, 4, 5, 6, 7]);
  const failed = steps.filter(({ verdict }) => verdict === 'failed');
  if (!isDenial(decision)) {
    const verdicts = steps.map(({ verdict }) => verdict);
    expect(verdicts).toEqual([...Array(5).fill('passed'), 'not_checked', 'would_pass']);
    return;
  }
  const at = stepOfDenial(decision.reason, decision.detail);
  expect(failed).toMatchObject([{ step: at, verdict: 'failed', denial: decision }]);
  for (const { step, verdict } of steps) {
    if (step < Number(at)) expect(verdict).toBe('passed');
    if (step > Number(at)) expect(['would_pass', 'would_fail', 'not_reached']).toContain(verdict);
  }
}

/** The parts of a step fail exactly where the step does, for the same reason. */
function expectParts({ attributes, freshness, rules, steps, transcript }: Explanation): void {
  const denials = new Map(steps.map(({ step, denial }) => [step, denial]));
  const source = denials.get(2);
  if (rules.length > 0) {
    expect(rules.some(({ denial }) => denial === undefined)).toBe(source === undefined);
    if (source !== undefined) expect(rules.map(({ denial }) => denial)).toContainEqual(source);
  }
  const stale = denials.get(3);
  if (freshness?.limitSeconds === undefined) {
    if (freshness !== undefined) expect(stale?.reason).toBe('bundle_freshness_unknown');
  } else if (stale === undefined || stale.detail === 'stale') {
    expect(freshness.ageSeconds > freshness.limitSeconds).toBe(stale !== undefined);
  }
  const wrong = attributes.filter(({ denial }) => denial !== undefined).map(({ denial }) => denial);
  if (attributes.length > 0) expect(wrong.length > 0).toBe(denials.get(4) !== undefined);
  if (wrong.length > 0) expect(wrong).toContainEqual(denials.get(4));
  const proofChecks = steps[4]?.checks.filter(({ check }) => check !== 'binding') ?? [];
  const bad = proofChecks.flatMap(({ denial }) => denial?.detail ?? []);
  const proof = denials.get(5)?.reason === 'invalid_request_proof' ? [denials.get(5)?.detail] : [];
  if (denials.get(1) === undefined) expect(bad).toEqual(proof);
  expectDifference(transcript, denials.get(5));
}

function expectDifference(transcript: Explanation['transcript'], denial: Denial | undefined): void {
  const first = transcript.find(({ isEqual }) => !isEqual);
  if (denial?.reason === 'request_binding_mismatch') {
    const isBody = first?.rebuilt.kind === 'unknown' && first.rebuilt.why === 'body_unavailable';
    expect(isBody ? 'body_unavailable' : first?.name).toBe(denial.detail);
  } else if (denial === undefined) {
    expect(first).toBeUndefined();
  }
}
