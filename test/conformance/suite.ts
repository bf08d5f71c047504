/**
 * The conformance suite at one enforcement point. A point may deny more than the verification core; a request that it allows,
 * and the core denies, fails the run.
 */
import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { REASON_HEADER } from '../../src/protocol/wire-names.ts';
import { isWireRequest, type WireMessage } from '../../src/tools/conformance/wire/conformance-case.ts';
import { headerValues } from '../../src/tools/conformance/wire/exchange.ts';
import type { ConformanceCase } from '../support/points/conformance-case.ts';
import type { EnforcementPointDriver } from '../support/points/enforcement-point.ts';
import { exchange } from '../support/points/exchange.ts';
import { coreDecision } from '../support/points/oracle.ts';
import { skipUnavailable } from '../support/points/skip-unavailable.ts';
import type { Protocol } from '../support/site/gateway.ts';
import { createSite, type Site } from '../support/site/site.ts';
import { CASES } from './cases.ts';
import { expectForwarded } from './forwarded.ts';
import { forwardedHeaders } from './forwarded-headers.ts';
import {
  forwardedResultsOf,
  type Result,
  readResults,
  resultOf,
  WRITES_RESULTS,
  writeResults,
} from './results.ts';
import { type PointStates, pointStates, type StartedState } from './states.ts';

/** @param isOlder of a point whose newest version runs all: only cases in the usual state, for the others differ by the verifier alone */
export function conformanceSuite(driver: EnforcementPointDriver, isOlder = false): void {
  if (skipUnavailable(driver)) return;
  const all = casesAt(driver);
  const isWhole = !isOlder || WRITES_RESULTS;
  const cases = isWhole ? all : all.filter(({ state = 'usual' }) => state === 'usual');
  describe(driver.name, () => runCases(driver, cases));
}

function runCases(driver: EnforcementPointDriver, cases: readonly ConformanceCase[]): void {
  const results = new Map<string, Result>();
  let site: Site;
  let states: PointStates;
  beforeAll(async () => {
    site = await createSite();
    states = pointStates(driver, site);
  });
  afterAll(async () => {
    await states.stop();
    await site.remove();
  });

  it.each(cases)('$name', async (one) => {
    const state = await states.of(one.state ?? 'usual');
    const outcomes = new Map<Protocol, string>();
    for (const protocol of protocolsAt(driver, one)) {
      outcomes.set(protocol, await outcomeOf(one, { state, protocol, site }));
    }
    results.set(one.name, resultOf(outcomes));
  });

  it('treats headers of other proxies as docs/reference/conformance.md says', async () => {
    const { point } = await states.of('usual');
    const found = await forwardedHeaders(point, driver.protocols, site);
    const file = forwardedResultsOf(driver.name);
    if (WRITES_RESULTS) writeResults(file, found);
    expect(found).toEqual(readResults(file));
  });

  it('gives the recorded results; `make conformance` writes them again', () => {
    const found = Object.fromEntries(results);
    if (WRITES_RESULTS) writeResults(driver.name, found);
    const recorded = Object.entries(readResults(driver.name) ?? {});
    const leftOut = casesAt(driver).filter((one) => !cases.includes(one));
    const expected = recorded.filter(([recordedName]) => !leftOut.some(({ name }) => name === recordedName));
    expect(found).toEqual(Object.fromEntries(expected));
  });
}

/** Those of its protocols that the point speaks. */
export function casesAt(driver: EnforcementPointDriver): readonly ConformanceCase[] {
  return CASES.filter((one) => protocolsAt(driver, one).length > 0);
}

export function protocolsAt(
  { protocols }: EnforcementPointDriver,
  one: ConformanceCase,
): readonly Protocol[] {
  return protocols.filter((protocol) => one.protocols?.includes(protocol) ?? true);
}

export interface CaseRun {
  readonly state: StartedState;
  readonly protocol: Protocol;
  readonly site: Site;
}

/** @throws when the point allows what the core denies, or forwards more than it may */
export async function outcomeOf(one: ConformanceCase, { state, protocol, site }: CaseRun): Promise<string> {
  const { point, snapshot } = state;
  const messages = messagesOf(one, site);
  const last = messages.at(-1);
  if (last === undefined) throw new Error('the case sends nothing');
  for (const message of messages.slice(0, -1)) {
    expect((await exchange(point, protocol, message)).outcome).toBe('allowed');
  }
  const { answered, outcome, arrived } = await exchange(point, protocol, last);
  if (outcome !== 'allowed') {
    // Of a denial by the verifier; a server's own answer says nothing of the route.
    const isDenied = headerValues(answered, REASON_HEADER).length > 0;
    const lost = (one.challenges ?? []).filter((name) => headerValues(answered, name).length === 0);
    expect([outcome, isDenied ? lost : []]).toEqual([outcome, []]);
    return outcome;
  }
  // The pinned expectation, then the core itself.
  expect(['allowed', 'malformed']).toContain(one.expected.kind);
  if (isWireRequest(last)) expect(coreDecision(protocol, last, snapshot)).toEqual(one.expected);
  expectForwarded(arrived, isWireRequest(last) ? last : last.request, snapshot);
  return outcome;
}

export function messagesOf(one: ConformanceCase, site: Site): readonly WireMessage[] {
  const made = one.make(site);
  return isSequence(made) ? made : [made];
}

function isSequence(made: WireMessage | readonly WireMessage[]): made is readonly WireMessage[] {
  return Array.isArray(made);
}
