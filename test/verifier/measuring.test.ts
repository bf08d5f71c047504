/** What a decision tells metrics, audit and traces: which steps, how long, of which route, verified or not. */
import { describe, expect, it } from '@jest/globals';
import type { TracedDecision } from '../../src/process/telemetry/decision-trace.ts';
import { CONSUMED, REPLAYED, UNAVAILABLE } from '../../src/verifier/replay/store.ts';
import { createVerifierMetrics, type VerifierMetrics } from '../../src/verifier/verifier-metrics.ts';
import { scriptedReplayStore } from '../support/fakes/replay-store.ts';
import { type RequestEdits, type RequestPlan, signRequest } from '../support/fixtures/signed-request.ts';
import { compileSite, newSiteKeys, siteContent } from '../support/fixtures/snapshot.ts';
import { checkNow, createTestVerifier, type TestVerifierOptions } from '../support/fixtures/test-verifier.ts';

const keys = newSiteKeys();
const snapshot = await compileSite(siteContent(keys));
const read: RequestPlan = { caller: 'billing', route: 'orders-read' };
const real = createVerifierMetrics(() => undefined);
const ALL_STEPS = ['route', 'source', 'freshness', 'attributes', 'proof', 'pipeline', 'replay', 'audit'];

/** Makes one request. @returns what the verifier reported about it, and its maximum duration */
function checkOnce(options: TestVerifierOptions = {}, edits: RequestEdits = {}) {
  const decided: (readonly string[])[] = [];
  const steps: { readonly step: string; readonly seconds: number }[] = [];
  const unavailable: string[] = [];
  const traced: TracedDecision[] = [];
  const metrics: VerifierMetrics = {
    ...real,
    decided: (...labels) => decided.push(labels),
    stepTook: (step, seconds) => steps.push({ step, seconds }),
    replayUnavailable: (why) => unavailable.push(why),
  };
  const trace = { stepTook: () => undefined, decided: (one: TracedDecision) => traced.push(one) };
  const call = { waitedTooLong: false, trace, traceparent: () => undefined, isGone: () => false };
  const made = createTestVerifier({ snapshot, metrics, ...options });
  const { facts } = signRequest(keys, read, edits);
  const startedMs = performance.now();
  const decision = checkNow(made.verifier, facts, call);
  const mostSeconds = (performance.now() - startedMs) / 1000;
  return { ...made, decision, decided, steps, unavailable, traced, mostSeconds };
}

const elsewhere: RequestEdits = { received: (request) => ({ ...request, target: '/nowhere' }) };

describe('steps', () => {
  it('of an allowed request are timed in their order, none longer than all of it', () => {
    const { mostSeconds, steps } = checkOnce();
    expect(steps.map(({ step }) => step)).toEqual(ALL_STEPS);
    for (const { seconds } of steps) {
      expect(seconds).toBeGreaterThanOrEqual(0);
      expect(seconds).toBeLessThanOrEqual(mostSeconds);
    }
    const [proof, pipeline] = ['proof', 'pipeline'].map((name) => steps.find(({ step }) => step === name));
    expect(proof?.seconds).toBeGreaterThan(0);
    expect(pipeline?.seconds).toBeGreaterThanOrEqual(proof?.seconds ?? 0);
  });

  it('of a denied one are those that were taken', () => {
    expect(checkOnce({}, elsewhere).steps.map(({ step }) => step)).toEqual(['route', 'pipeline', 'audit']);
    const replayed = checkOnce({ store: scriptedReplayStore(() => REPLAYED) });
    expect(replayed.steps.map(({ step }) => step)).toEqual(ALL_STEPS);
  });
});

describe('a decision', () => {
  it.each<[string, TestVerifierOptions, RequestEdits, readonly string[]]>([
    ['allowed', {}, {}, ['allowed', '', '', 'orders-read']],
    ['denied without a route', {}, elsewhere, ['denied', 'bundle_route_missing', 'no_match', '']],
    [
      'denied on a route',
      { store: scriptedReplayStore(() => REPLAYED) },
      {},
      ['denied', 'jti_replay', '', 'orders-read'],
    ],
    ['denied without a bundle', { snapshot: undefined }, {}, ['denied', 'bundle_policy_missing', '', '']],
  ])('%s is counted with reason, detail and route', (_what, options, edits, counted) => {
    expect(checkOnce(options, edits).decided).toEqual([counted]);
  });

  it('tells why the store could not say', () => {
    expect(checkOnce({ store: scriptedReplayStore(() => UNAVAILABLE.quota) }).unavailable).toEqual(['quota']);
    expect(checkOnce({ store: scriptedReplayStore(() => REPLAYED) }).unavailable).toEqual([]);
  });

  it('is recorded with how long it took', () => {
    const { events, mostSeconds } = checkOnce();
    expect(events[0]?.duration_us).toBeGreaterThan(0);
    expect(events[0]?.duration_us).toBeLessThanOrEqual(Math.ceil(mostSeconds * 1e6));
  });

  it.each<[string, TestVerifierOptions, RequestEdits, boolean]>([
    ['allowed', { store: scriptedReplayStore(() => CONSUMED) }, {}, true],
    ['a replay', { store: scriptedReplayStore(() => REPLAYED) }, {}, true],
    ['without a route', {}, elsewhere, false],
  ])('says whether the caller was verified: %s', (_what, options, edits, verified) => {
    expect(checkOnce(options, edits).events).toMatchObject([{ caller_verified: verified }]);
  });

  it('without a bundle is traced without a revision, and is no fault of ours', () => {
    const { internalErrors, traced } = checkOnce({ snapshot: undefined });
    expect(internalErrors).toEqual([]);
    expect(traced).toMatchObject([{ outcome: 'denied', reason: 'bundle_policy_missing' }]);
    expect(traced[0]?.bundleRevision).toBeUndefined();
  });

  it('is a denial also when nothing could begin', () => {
    const { decision } = checkOnce({
      nowMs: () => {
        throw new Error('no clock');
      },
    });
    expect(decision).toMatchObject({ kind: 'denied', routeId: undefined, denial: { detail: 'internal' } });
  });
});
