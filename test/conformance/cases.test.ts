/** Each case's pinned expectation is what the verification core decides about the request as it is sent. */
import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { REASONS } from '../../src/protocol/reasons.ts';
import { ALLOWED, type Expected, isWireRequest } from '../../src/tools/conformance/wire/conformance-case.ts';
import type { ConformanceCase } from '../support/points/conformance-case.ts';
import { coreDecision } from '../support/points/oracle.ts';
import { PROTOCOLS } from '../support/site/gateway.ts';
import { createSite, type Site } from '../support/site/site.ts';
import { CASES } from './cases.ts';
import { readCoreResults, WRITES_RESULTS, writeCoreResults } from './results.ts';
import { type CoreStates, coreStates } from './states.ts';
import { messagesOf } from './suite.ts';

let site: Site;
let snapshots: CoreStates;
beforeAll(async () => {
  site = await createSite();
  snapshots = coreStates(site);
});
afterAll(async () => {
  await snapshots.stop();
  await site.remove();
});

/** Step 6 and the record follow the core's decision. */
const AFTER_THE_CORE = new Set(['jti_replay', 'replay_store_unavailable', 'verifier_unavailable']);

function expectedOfCore({ expected }: ConformanceCase): Expected {
  return expected.kind === 'denied' && AFTER_THE_CORE.has(expected.reason) ? { kind: 'allowed' } : expected;
}

describe.each(PROTOCOLS)('%s', (protocol) => {
  const cases = CASES.filter(({ protocols }) => protocols?.includes(protocol) ?? true);

  it.each(cases)('$name', async (one) => {
    const snapshot = await snapshots.of(one.state ?? 'usual');
    const message = messagesOf(one, site).at(-1);
    if (message === undefined) throw new Error('the case sends nothing');
    if (isWireRequest(message))
      expect(coreDecision(protocol, message, snapshot)).toEqual(expectedOfCore(one));
    else {
      expect(one.expected.kind).toBe('malformed');
      expect(coreDecision(protocol, message.request, snapshot)).toEqual(ALLOWED);
    }
  });
});

it('provokes every reason', () => {
  const reasons = CASES.flatMap(({ expected }) => (expected.kind === 'denied' ? [expected.reason] : []));
  expect(new Set(reasons)).toEqual(new Set(REASONS));
});

it('has every case once', () => {
  expect(new Set(CASES.map(({ name }) => name)).size).toBe(CASES.length);
});

it('has the recorded expectations; `make conformance` writes them again', () => {
  const expectations = Object.fromEntries(CASES.map(({ name, expected }) => [name, textOf(expected)]));
  if (WRITES_RESULTS) writeCoreResults(expectations);
  expect(expectations).toEqual(readCoreResults());
});

function textOf(expected: Expected): string {
  if (expected.kind !== 'denied') return expected.kind;
  const { detail, reason } = expected;
  return detail === undefined ? reason : `${reason}/${detail}`;
}
