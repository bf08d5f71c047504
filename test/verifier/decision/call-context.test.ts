/** Tests cancelled and expired calls: what the verifier does not evaluate, consume or record as allowed once no caller waits. */
import { describe, expect, it } from '@jest/globals';
import type { CallContext } from '../../../src/process/connections/call-context.ts';
import type { TracedDecision, TracedStep } from '../../../src/process/telemetry/decision-trace.ts';
import { CONSUMED, REPLAYED, type ReplayOutcome } from '../../../src/verifier/replay/store.ts';
import { scriptedReplayStore } from '../../support/fakes/replay-store.ts';
import { signRequest } from '../../support/fixtures/signed-request.ts';
import { compileSite, newSiteKeys, siteContent } from '../../support/fixtures/snapshot.ts';
import { checkNow, createTestVerifier, outcomeOf } from '../../support/fixtures/test-verifier.ts';

const keys = newSiteKeys();
const snapshot = await compileSite(siteContent(keys));
const facts = () => signRequest(keys, { caller: 'billing', route: 'everything' }).facts;

const patient: CallContext = {
  waitedTooLong: false,
  trace: undefined,
  traceparent: () => undefined,
  isGone: () => false,
};
const gone: CallContext = { ...patient, isGone: () => true };
const OVERLOADED = 'verifier_unavailable/overloaded 503';

describe('a request that waited too long to be looked at', () => {
  it('is refused without being evaluated', () => {
    const { events, store, verifier } = createTestVerifier({ snapshot });
    const decision = checkNow(verifier, facts(), { ...patient, waitedTooLong: true });
    expect([outcomeOf(decision), store.claims]).toEqual([OVERLOADED, []]);
    // No step of the pipeline ran: not even its route is known.
    expect(events).toMatchObject([{ outcome: 'denied', caller_verified: false }]);
    expect(events[0]?.route_id).toBeUndefined();
  });
});

describe('an asker that is gone', () => {
  it('consumes nothing', () => {
    const { events, store, verifier } = createTestVerifier({ snapshot });
    const wanted = facts();
    expect([outcomeOf(checkNow(verifier, wanted, gone)), store.claims]).toEqual([OVERLOADED, []]);
    expect(events).toMatchObject([{ outcome: 'denied', reason: 'verifier_unavailable' }]);
    // The proof can still be used, once.
    expect(outcomeOf(checkNow(verifier, wanted, patient))).toBe('allowed');
    expect(outcomeOf(checkNow(verifier, wanted, patient))).toBe('jti_replay 403');
  });

  it('gets a fault that was found all the same', () => {
    const { verifier } = createTestVerifier({ snapshot });
    const decision = checkNow(verifier, { ...facts(), target: '/' }, gone);
    expect(outcomeOf(decision)).toBe('bundle_route_missing/no_match 403');
  });

  it.each([
    ['consumed', CONSUMED, OVERLOADED],
    ['replayed', REPLAYED, 'jti_replay 403'],
  ])('while the store was asked is not recorded as let through: %s', async (_what, answer, outcome) => {
    let resolve: (outcome: ReplayOutcome) => void = () => undefined;
    const store = scriptedReplayStore(
      () =>
        new Promise((settle) => {
          resolve = settle;
        }),
    );
    const { events, verifier } = createTestVerifier({ snapshot, store });
    let isGone = false;
    const deciding = verifier.check(facts(), { ...patient, isGone: () => isGone });
    isGone = true;
    resolve(answer);
    expect(outcomeOf(await deciding)).toBe(outcome);
    expect(events).toMatchObject([{ outcome: 'denied' }]);
  });
});

describe('a trace', () => {
  function recordingTrace() {
    const steps: { step: TracedStep; isForward: boolean }[] = [];
    const decisions: TracedDecision[] = [];
    const trace: CallContext['trace'] = {
      stepTook: (step, startedMs, endedMs) => steps.push({ step, isForward: endedMs >= startedMs }),
      decided: (decision) => decisions.push(decision),
    };
    return { call: { ...patient, trace }, steps, decisions };
  }

  it('has the steps of an allowed request and its decision', () => {
    const { verifier } = createTestVerifier({ snapshot });
    const { call, decisions, steps } = recordingTrace();
    const decision = checkNow(verifier, facts(), call);
    expect(steps).toEqual([
      { step: 'pipeline', isForward: true },
      { step: 'replay', isForward: true },
    ]);
    expect(decisions).toEqual([
      {
        decisionId: decision.decisionId,
        outcome: 'allowed',
        routeId: 'everything',
        bundleRevision: snapshot.revision,
      },
    ]);
  });

  it('has the reason and detail of a denied one', () => {
    const { verifier } = createTestVerifier({ snapshot });
    const { call, decisions, steps } = recordingTrace();
    checkNow(verifier, { ...facts(), target: '/' }, call);
    expect(steps.map(({ step }) => step)).toEqual(['pipeline']);
    expect(decisions).toMatchObject([
      { outcome: 'denied', reason: 'bundle_route_missing', detail: 'no_match' },
    ]);
  });
});
