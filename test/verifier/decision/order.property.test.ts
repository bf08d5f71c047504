/**
 * Two properties of the order of evaluation: nothing that steps 1 to 5 deny touches the replay store, and no change
 * of one thing in a valid request is allowed. The seed of a run is in its failure; PROOFGATE_TEST_SEED runs it again.
 */
import { describe, expect, it } from '@jest/globals';
import fc from 'fast-check';
import type { RequestFacts } from '../../../src/verifier/decision/facts/request-facts.ts';
import { factsOfCheckRequest } from '../../../src/verifier/envoy-request/check-request.ts';
import { CONSUMED } from '../../../src/verifier/replay/store.ts';
import { canMeet, requestWith, snapshotWith, TABLE_CALLERS } from '../../support/cases/faulty-site.ts';
import { MUTATIONS, type Mutation, type Victim } from '../../support/cases/mutations.ts';
import { faultsOf } from '../../support/cases/one-fault.ts';
import { recordingReplayStore, scriptedReplayStore } from '../../support/fakes/replay-store.ts';
import { NOW_SECONDS, newSigningKey } from '../../support/fixtures/bundle-content.ts';
import { mergedCheckRequest, rawCheckRequest } from '../../support/fixtures/check-request.ts';
import { withOtherS } from '../../support/fixtures/signature-spellings.ts';
import {
  factsOfWire,
  type RequestPlan,
  signRequest,
  type WireRequest,
} from '../../support/fixtures/signed-request.ts';
import { compileSite, newSiteKeys, siteContent } from '../../support/fixtures/snapshot.ts';
import { checkNow, createTestVerifier, outcomeOf } from '../../support/fixtures/test-verifier.ts';
import { Random } from '../../support/random.ts';

/** `make soak` makes 100,000. */
const RUNS = Number(process.env.PROOFGATE_TEST_MUTATIONS ?? 10_000);
const keys = newSiteKeys();
const site = await compileSite(siteContent(keys));

const CREDENTIALS = ['authorization', 'x-proofgate-transcript', 'x-proofgate-signature'];

const PLANS: readonly RequestPlan[] = (
  [
    { caller: 'billing', route: 'orders-read' },
    { caller: 'billing', route: 'orders-write' },
    { caller: 'billing', route: 'orders-cancel' },
    { caller: 'billing', route: 'uploads' },
    { caller: 'billing', route: 'tenants' },
    { caller: 'billing', route: 'everything' },
    { caller: 'billing', route: 'partners' },
    { caller: 'billing', route: 'internal' },
    { caller: 'reporting', route: 'orders-read' },
    { caller: 'reporting', route: 'forward' },
    { caller: 'broker', route: 'attested' },
    { caller: 'broker', route: 'everything', holder: newSigningKey() },
    { caller: 'broker', route: 'tenants', holder: newSigningKey('ES256') },
    { caller: 'brokerEc', route: 'orders-write', holder: newSigningKey() },
    { caller: 'brokerEc', route: 'orders-read' },
    { caller: 'automation', route: 'prices' },
  ] as const
).map((plan, index) => ({ ...plan, item: `item-${index}`, ...bodyOf(plan.route, index) }));

/** A unique body for every request, so that no request equals another. */
function bodyOf(route: RequestPlan['route'], index: number): { readonly body?: Uint8Array } {
  return ['orders-write', 'everything', 'uploads'].includes(route)
    ? { body: Buffer.from(`{"amount":${index + 1}}`) }
    : {};
}

function newVictims(): readonly Victim[] {
  return PLANS.map((plan) => {
    const request = signRequest(keys, plan);
    const names = request.wire.headers.map(({ name }) => name);
    return { plan, request, signedNames: names.filter((name) => !CREDENTIALS.includes(name)) };
  });
}

const DOORS: readonly ((request: WireRequest) => RequestFacts)[] = [
  (request) => factsOfCheckRequest(rawCheckRequest(request), 'buffered'),
  (request) => factsOfCheckRequest(mergedCheckRequest(request), 'buffered'),
  factsOfWire,
];

/**
 * The meaning of a request to the protocol, independent of spelling: the authority in lower case without the default port,
 * header values without surrounding white space, the scheme's name in lower case, and an empty body like no body.
 */
function meaningOf(request: WireRequest, { plan, signedNames }: Victim): string {
  const { body, headers, method, scheme, target } = request;
  const authority = request.authority.replace(/[A-Z]/g, (letter) => letter.toLowerCase());
  const bytes = body.kind === 'exact' ? Buffer.from(body.bytes).toString('hex') : '';
  return JSON.stringify({
    method,
    scheme,
    target,
    authority: authority.replace(scheme === 'https' ? /:443$/ : /:80$/, ''),
    body: plan.route === 'uploads' ? 'unbound' : body.kind === 'unknown' ? 'unknown' : bytes,
    headers: [...CREDENTIALS, ...signedNames].map((wanted) =>
      headers
        .filter(({ name }) => name === wanted)
        .map(({ value }) => value.replace(/^[ \t]+|[ \t]+$/g, ''))
        .map((value) => value.replace(/^passport /i, 'Passport ')),
    ),
  });
}

describe('no change of one thing in a valid request is allowed', () => {
  const seed = Number(process.env.PROOFGATE_TEST_SEED ?? Math.floor(Math.random() * 2 ** 32));
  const random = new Random(seed);
  const counts = new Map<string, number>(MUTATIONS.map(({ kind }) => [kind, 0]));
  const victims = newVictims();
  const meanings = new Map(victims.map((victim) => [victim, meaningOf(victim.request.wire, victim)]));
  const { internalErrors, store, verifier } = createTestVerifier({ snapshot: site });
  const unchanged: { readonly kind: string; readonly facts: RequestFacts }[] = [];

  function mutateOnce(run: number): void {
    const victim = random.pick(victims);
    const other = random.pick(victims.filter((candidate) => candidate !== victim));
    const mutation: Mutation = random.pick(MUTATIONS.filter(({ applies }) => applies?.(victim) ?? true));
    const wire = mutation.apply({ keys, victim, other, random });
    const facts = random.pick(DOORS)(wire);
    if (meaningOf(wire, victim) === meanings.get(victim)) {
      unchanged.push({ kind: mutation.kind, facts });
      return;
    }
    counts.set(mutation.kind, (counts.get(mutation.kind) ?? 0) + 1);
    const decision = checkNow(verifier, facts);
    if (decision.kind === 'denied' && store.claims.length === 0) return;
    const { kind } = mutation;
    const request = { ...wire, plan: victim.plan };
    throw new Error(`seed ${seed}, run ${run}, ${kind}: ${outcomeOf(decision)} ${JSON.stringify(request)}`);
  }

  it(`${RUNS} changes`, () => {
    for (let run = 0; total(counts) < RUNS; run += 1) mutateOnce(run);
    expect(total(counts)).toBe(RUNS);
    expect(internalErrors).toEqual([]);
  });

  it('of every kind', () => {
    expect(counts.size).toBe(MUTATIONS.length);
    const rare = [...counts].filter(([, count]) => count < RUNS / MUTATIONS.length / 20);
    expect({ seed, rare }).toEqual({ seed, rare: [] });
  });

  it('of which some changed nothing, and those are allowed', () => {
    const lenient = createTestVerifier({
      snapshot: site,
      store: scriptedReplayStore(() => CONSUMED),
    }).verifier;
    const denied = unchanged.filter(({ facts }) => checkNow(lenient, facts).kind === 'denied');
    expect({ seed, denied: denied.map(({ kind }) => kind) }).toEqual({ seed, denied: [] });
    expect(unchanged.length).toBeGreaterThan(0);
    expect(unchanged.length).toBeLessThan(RUNS / 20);
  });

  it('and each request that was tampered with passes afterwards, once', () => {
    for (const [index, { request }] of victims.entries()) {
      expect(outcomeOf(checkNow(verifier, factsOfWire(request.wire)))).toBe('allowed');
      expect(store.claims).toHaveLength(2 * index + 1);
      expect(
        outcomeOf(checkNow(verifier, factsOfCheckRequest(mergedCheckRequest(request.wire), 'buffered'))),
      ).toBe('jti_replay 403');
    }
  });

  it('the other ES256 signature of a proof is the same proof', () => {
    const { request } = victimOf('reporting');
    const other = withOtherS(request.signature.toString('base64url'));
    const headers = request.wire.headers.map((line) =>
      line.name === 'x-proofgate-signature' ? { ...line, value: other } : line,
    );
    expect(outcomeOf(checkNow(verifier, factsOfWire({ ...request.wire, headers })))).toBe('jti_replay 403');
  });

  function victimOf(caller: RequestPlan['caller']): Victim {
    const found = victims.find(({ plan }) => plan.caller === caller);
    if (found === undefined) throw new Error(`no caller ${caller}`);
    return found;
  }
});

function total(counts: ReadonlyMap<string, number>): number {
  let sum = 0;
  for (const count of counts.values()) sum += count;
  return sum;
}

describe('no denial of steps 1 to 5 consumes a jti', () => {
  it('whatever faults come together', async () => {
    const junk = fc.constantFrom(...TABLE_CALLERS).chain((caller) => {
      const faults = faultsOf(caller).filter(({ step }) => step <= 5);
      return fc.record({
        caller: fc.constant(caller),
        faults: fc.subarray([...faults], { minLength: 1, maxLength: 3 }),
      });
    });
    await fc.assert(
      fc.asyncProperty(junk, async ({ caller, faults }) => {
        fc.pre(faults.every((fault, at) => faults.slice(at + 1).every((next) => canMeet(fault, next))));
        const victim = requestWith(keys, caller, []);
        const burn = {
          transcript: (draft: { jti: string }) => void Object.assign(draft, { jti: victim.jti }),
        };
        let snapshot = await snapshotWith(keys, faults);
        const store = recordingReplayStore(NOW_SECONDS);
        const { verifier } = createTestVerifier({ currentSnapshot: () => snapshot, store });
        const first = checkNow(verifier, requestWith(keys, caller, faults, burn).facts);
        expect(outcomeOf(first)).toBe(faults[0]?.outcome);
        expect(store.claims).toEqual([]);
        snapshot = site;
        expect(outcomeOf(checkNow(verifier, victim.facts))).toBe('allowed');
        expect(outcomeOf(checkNow(verifier, victim.facts))).toBe('jti_replay 403');
      }),
      { numRuns: 400 },
    );
  });
});
