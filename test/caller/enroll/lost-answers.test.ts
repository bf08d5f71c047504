/**
 * Loses answers to a client: every fault at every position ends in one correct key or a clear error, never in a different
 * second submission.
 */
import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import type { EnrollRequest } from '../../../src/caller/enroll/enroll-run.ts';
import { FakeControl, type FakeControlOptions } from '../../support/fakes/control-enrollment.ts';
import {
  type Exchange,
  FAULTS,
  type Fault,
  type LossyProxy,
  startLossyProxy,
} from '../../support/harness/lossy-proxy.ts';
import { newWorkload, outcomeOf, runEnroll, startEnroll, type Workload } from './enroll-fixture.ts';

/** Long enough for an answer on loopback, short enough to wait for a lost one. */
const REQUEST_TIMEOUT_MS = 400;

let control: FakeControl;
let proxy: LossyProxy;
let workload: Workload;
let faultOf: (exchange: Exchange) => Fault | Promise<Fault>;

async function start(options: FakeControlOptions = {}): Promise<void> {
  control = await FakeControl.start({ publicUrls: () => [proxy.url], ...options });
  proxy = await startLossyProxy(
    () => control.url,
    (exchange) => faultOf(exchange),
  );
  workload = newWorkload(await control.token());
}

beforeEach(() => {
  faultOf = () => 'pass';
});
afterEach(async () => {
  await proxy.close();
  await control.close();
});

function enrollThroughProxy(members: Partial<EnrollRequest> = {}) {
  const request = { requestTimeoutMs: REQUEST_TIMEOUT_MS, ...members };
  return startEnroll(workload, { controlUrl: proxy.url, request });
}

/** Expects one key pair, one enrollment and one key ID, all in the state. */
function expectOneKey({ submissions } = { submissions: 1 }): void {
  expect(control.distinctSubmissions).toBe(submissions);
  expect(control.enrollments.size).toBe(1);
  expect(control.keyIds).toHaveLength(1);
  const state = JSON.parse(workload.states.text ?? '{}');
  expect(state.enrolled.derived_key.key_id).toBe(control.keyIds[0]);
  expect(state.enrolled.derived_key.fingerprint).toBe(workload.key.publicKey.thumbprint);
  expect(state.attempt).toBeUndefined();
}

/** Expects that no submission follows one that Control may have accepted. */
function expectNoBlindSubmission(): void {
  expect(control.distinctSubmissions).toBeLessThanOrEqual(1);
  expect(control.enrollments.size).toBeLessThanOrEqual(1);
}

describe.each(FAULTS)('%s', (fault) => {
  it.each([0, 1, 2])('once, at request %d: one key', async (position) => {
    await start({ approval: 'manual' });
    faultOf = (exchange) => {
      // The third and later requests poll.
      if (exchange.index >= 3) control.approveAll();
      return exchange.index === position ? fault : 'pass';
    };
    expect(await outcomeOf(enrollThroughProxy().ended)).toBe('done');
    await proxy.settled();
    expectOneKey();
  });

  it('at each submission of a run: a clear error, and the next run gets the one key', async () => {
    await start();
    faultOf = ({ method, path }) => (method === 'POST' && path === '/v1/enrollments' ? fault : 'pass');
    const outcome = await outcomeOf(enrollThroughProxy().ended);
    expectNoBlindSubmission();
    faultOf = () => 'pass';
    if (fault !== 'pass' && fault !== 'duplicate') {
      expect(outcome).toMatch(/^(submission_unconfirmed|rate_limited|unavailable)$/);
      expect(await outcomeOf(enrollThroughProxy().ended)).toBe('done');
    }
    await proxy.settled();
    // A second submission is allowed only when nothing of the throttled requests reached Control.
    if (fault === 'throttle') expect(control.submissions).toHaveLength(1);
    expectOneKey();
  });

  it('at every request: a clear error or the one key', async () => {
    await start();
    faultOf = () => fault;
    const outcome = await outcomeOf(enrollThroughProxy().ended);
    expect(outcome).toMatch(/^(done|timed_out|unreachable|rate_limited|unavailable|control_answer_invalid)$/);
    await proxy.settled();
    expectNoBlindSubmission();
    if (outcome === 'done') expectOneKey();
  });
});

describe('an answer that is lost', () => {
  it('is asked for again by any number of runs with the very same submission', async () => {
    await start();
    faultOf = ({ path, method }) =>
      method === 'POST' && path === '/v1/enrollments' ? 'drop_answer' : 'pass';
    for (let run = 0; run < 3; run++) {
      expect(await outcomeOf(enrollThroughProxy({ submitRetries: 1 }).ended)).toBe('submission_unconfirmed');
    }
    expect(control.submissions).toHaveLength(6);
    expect(control.submissions.map(({ status }) => status)).toEqual([201, 200, 200, 200, 200, 200]);
    faultOf = () => 'pass';
    await runEnroll(workload, { controlUrl: proxy.url });
    expectOneKey();
  });

  it('leads to a new challenge only when Control says that nothing can come of the first', async () => {
    let nowMs = Date.now();
    await start({ nowMs: () => nowMs });
    faultOf = ({ path, method }) =>
      method === 'POST' && path === '/v1/enrollments' ? 'reset_before' : 'pass';
    expect(await outcomeOf(enrollThroughProxy().ended)).toBe('submission_unconfirmed');
    expect(control.submissions).toHaveLength(0);
    nowMs += 121_000;
    faultOf = () => 'pass';
    expect(await outcomeOf(enrollThroughProxy().ended)).toBe('done');
    expect(control.submissions.map(({ status }) => status)).toEqual([410, 201]);
    expect(control.enrollments.size).toBe(1);
  });

  it('whose token was replaced meanwhile gets the enrollment of the first token', async () => {
    await start();
    faultOf = ({ path, method }) =>
      method === 'POST' && path === '/v1/enrollments' ? 'drop_answer' : 'pass';
    expect(await outcomeOf(enrollThroughProxy().ended)).toBe('submission_unconfirmed');
    faultOf = () => 'pass';
    workload.token = await control.token();
    expect(await outcomeOf(enrollThroughProxy().ended)).toBe('done');
    expectOneKey({ submissions: 2 });
  });

  it('to a poll changes nothing: Control is asked again', async () => {
    await start({ approval: 'manual' });
    const faults: readonly Fault[] = FAULTS.filter(
      (fault) => fault !== 'hold_answer' && fault !== 'arrive_late',
    );
    faultOf = ({ index }) => {
      if (index === 2 + faults.length) control.approveAll();
      return index < 2 ? 'pass' : (faults[index - 2] ?? 'pass');
    };
    expect(await outcomeOf(enrollThroughProxy().ended)).toBe('done');
    expect(proxy.exchanges.length).toBe(3 + faults.length);
    expectOneKey();
  });
});
