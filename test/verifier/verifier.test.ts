/** What stands around the pipeline: replay, overload, the record, the one origin behind a proxy. */
import { runInNewContext } from 'node:vm';
import { describe, expect, it } from '@jest/globals';
import { LiveKeyTable } from '../../src/bundle/compile/key-table.ts';
import type { Decision } from '../../src/verifier/decision/decide.ts';
import { required } from '../../src/verifier/decision/facts/evaluation.ts';
import { replayIdentifier, subjectHash } from '../../src/verifier/replay/identifier.ts';
import { CONSUMED, REPLAYED, type ReplayOutcome, UNAVAILABLE } from '../../src/verifier/replay/store.ts';
import { type RecordingReplayStore, scriptedReplayStore } from '../support/fakes/replay-store.ts';
import {
  AUTH_SITE,
  BROKER_ISSUER,
  NOW_SECONDS,
  newSigningKey,
  TRUST_DOMAIN,
} from '../support/fixtures/bundle-content.ts';
import { type RequestEdits, type RequestPlan, signRequest } from '../support/fixtures/signed-request.ts';
import { compileSite, newSiteKeys, SKEW_SECONDS, siteContent } from '../support/fixtures/snapshot.ts';
import {
  checkNow,
  createTestVerifier,
  outcomeOf,
  type TestVerifierOptions,
} from '../support/fixtures/test-verifier.ts';

const keys = newSiteKeys();
const site = await compileSite(siteContent(keys));
const read: RequestPlan = { caller: 'billing', route: 'orders-read' };

const create = (options: TestVerifierOptions) => createTestVerifier({ snapshot: site, ...options });
const signed = (plan: RequestPlan = read, edits?: RequestEdits) => signRequest(keys, plan, edits);

/** A store that answers when the test says so. */
function pendingStore(): { store: RecordingReplayStore; answer: (outcome: ReplayOutcome) => void } {
  const waiting: ((outcome: ReplayOutcome) => void)[] = [];
  const store = scriptedReplayStore(() => new Promise((resolve) => waiting.push(resolve)));
  return { store, answer: (outcome) => waiting.shift()?.(outcome) };
}

describe('replay', () => {
  const OUTCOMES: readonly [ReplayOutcome, string][] = [
    [CONSUMED, 'allowed'],
    [REPLAYED, 'jti_replay 403'],
    [UNAVAILABLE.store, 'replay_store_unavailable/store 503'],
    [UNAVAILABLE.fenced, 'replay_store_unavailable/fenced 503'],
    [UNAVAILABLE.quota, 'replay_store_unavailable/quota 503'],
  ];

  it.each(OUTCOMES)('%o, at once and later: %s', async (outcome, expected) => {
    const now = create({ store: scriptedReplayStore(() => outcome) });
    expect(outcomeOf(checkNow(now.verifier, signed().facts))).toBe(expected);
    const later = create({ store: scriptedReplayStore(async () => outcome) });
    const decision = later.verifier.check(signed().facts);
    expect(decision).toBeInstanceOf(Promise);
    expect(outcomeOf(await decision)).toBe(expected);
    expect(later.internalErrors).toEqual([]);
  });

  it('is asked about the holder, the proof and the site', () => {
    const { store, verifier } = create({});
    const request = signed({ caller: 'broker', route: 'orders-read', holder: newSigningKey() });
    checkNow(verifier, request.facts);
    const { thumbprint } = request.holder.publicKey;
    expect(store.claims).toEqual([
      {
        identifier: replayIdentifier(AUTH_SITE, thumbprint, request.jti),
        holderThumbprint: thumbprint,
        subjectHash: subjectHash(BROKER_ISSUER, `spiffe://${TRUST_DOMAIN}/ns/prod/sa/billing`),
        issuedAtSeconds: NOW_SECONDS,
        expiresAtSeconds: NOW_SECONDS + 60,
        skewSeconds: SKEW_SECONDS,
        nowSeconds: NOW_SECONDS,
      },
    ]);
  });

  it('takes one jti once from each holder, whatever passport and route it comes with', () => {
    const { verifier } = create({});
    const jti = 'A'.repeat(22);
    const withJti = { transcript: (draft: { jti: string }) => void Object.assign(draft, { jti }) };
    const outcome = (plan: RequestPlan) => outcomeOf(checkNow(verifier, signed(plan, withJti).facts));
    expect(outcome(read)).toBe('allowed');
    expect(outcome({ ...read, caller: 'reporting' })).toBe('allowed');
    expect(outcome({ caller: 'billing', route: 'orders-write' })).toBe('jti_replay 403');
    // The same key, held under a broker's passport.
    expect(outcome({ ...read, caller: 'broker', holder: keys.billing })).toBe('jti_replay 403');
  });
});

describe('whatever goes wrong denies', () => {
  const internal = 'verifier_unavailable/internal 503';
  const boom = () => {
    throw new Error('boom');
  };
  /** Not an instance of this program's Promise. */
  const foreignPromise: unknown = runInNewContext("Promise.resolve({ kind: 'replayed' })");
  // An answer that only a faulty store gives.
  const answering = (answer: unknown) => scriptedReplayStore(() => answer as ReplayOutcome);
  const CASES: readonly [string, TestVerifierOptions, string][] = [
    ['the store throws', { store: scriptedReplayStore(boom) }, internal],
    ['the store rejects', { store: scriptedReplayStore(() => Promise.reject(new Error('boom'))) }, internal],
    ['the store says nothing', { store: answering(undefined) }, internal],
    ['the store promises nothing', { store: answering(Promise.resolve(undefined)) }, internal],
    ['the store answers with a foreign promise', { store: answering(foreignPromise) }, 'jti_replay 403'],
    ['no bundle can be read', { currentSnapshot: boom }, internal],
    ['there is no clock', { nowMs: boom }, internal],
    ['the record throws', { auditSink: { record: boom, close: async () => undefined } }, internal],
    ['the log throws too', { store: scriptedReplayStore(boom), onInternalError: boom }, internal],
  ];

  it.each(CASES)('%s', async (_, options, expected) => {
    const { verifier } = create(options);
    expect(outcomeOf(await verifier.check(signed().facts))).toBe(expected);
  });

  it('the store answers something unknown', async () => {
    const { verifier } = create({ store: answering({ kind: 'perhaps' }) });
    expect((await verifier.check(signed().facts)).kind).toBe('denied');
  });

  it('the headers cannot be read', () => {
    const { internalErrors, verifier } = create({});
    const facts = { ...signed().facts, headers: { lookup: boom, names: boom, values: boom, lines: boom } };
    expect(outcomeOf(checkNow(verifier, facts))).toBe(internal);
    expect(internalErrors).toEqual([new Error('boom')]);
  });

  it('and is reported to the operator', async () => {
    const { events, internalErrors, verifier } = create({
      store: scriptedReplayStore(() => Promise.reject(new Error('boom'))),
    });
    await verifier.check(signed().facts);
    expect(internalErrors).toEqual([new Error('boom')]);
    expect(events).toMatchObject([{ reason: 'verifier_unavailable', detail: 'internal', status: 503 }]);
  });
});

describe('overload', () => {
  it('refuses while too many wait for the store, and no longer', async () => {
    const { answer, store } = pendingStore();
    const { verifier } = create({ store, maxInFlight: 2 });
    const waiting = [verifier.check(signed().facts), verifier.check(signed().facts)];
    expect(outcomeOf(await verifier.check(signed().facts))).toBe('verifier_unavailable/overloaded 503');
    expect(store.claims).toHaveLength(2);
    answer(CONSUMED);
    expect(outcomeOf(await Promise.race(waiting))).toBe('allowed');
    const next = verifier.check(signed().facts);
    expect(store.claims).toHaveLength(3);
    answer(REPLAYED);
    answer(CONSUMED);
    expect(outcomeOf(await next)).toBe('allowed');
  });

  it('counts a store that rejects as done', async () => {
    const { verifier } = create({
      store: scriptedReplayStore(() => Promise.reject(new Error('boom'))),
      maxInFlight: 1,
    });
    for (let time = 0; time < 3; time += 1) {
      expect(outcomeOf(await verifier.check(signed().facts))).toBe('verifier_unavailable/internal 503');
    }
  });

  it('knows no limit where the store answers at once', () => {
    const { verifier } = create({ maxInFlight: 1 });
    for (let time = 0; time < 5; time += 1) {
      expect(outcomeOf(checkNow(verifier, signed().facts))).toBe('allowed');
    }
  });
});

describe('a record that fails', () => {
  const auditSink = { record: () => false, close: async () => undefined };

  it('refuses where records are required, whatever was decided', () => {
    const { verifier } = create({ auditSink, auditMode: 'required' });
    expect(outcomeOf(checkNow(verifier, signed().facts))).toBe('verifier_unavailable/audit 503');
    const forbidden = signed({ caller: 'reporting', route: 'orders-write' });
    expect(outcomeOf(checkNow(verifier, forbidden.facts))).toBe('verifier_unavailable/audit 503');
  });

  it('changes nothing where they are not', () => {
    const { verifier } = create({ auditSink, auditMode: 'best_effort' });
    expect(outcomeOf(checkNow(verifier, signed().facts))).toBe('allowed');
  });
});

describe('behind a proxy that rewrites host and scheme', () => {
  const externalOrigin = { scheme: 'https', authority: 'api.shop.example' } as const;
  const rewritten: RequestEdits = {
    received: (request) => ({ ...request, scheme: 'http', authority: '10.0.0.7:8080' }),
  };

  it('the one origin stands for what came in', () => {
    const { verifier } = create({ externalOrigin });
    expect(outcomeOf(checkNow(verifier, signed(read, rewritten).facts))).toBe('allowed');
    expect(outcomeOf(checkNow(create({}).verifier, signed(read, rewritten).facts))).toBe(
      'bundle_route_missing/origin 403',
    );
  });

  it('a request signed for another origin is refused', () => {
    const { verifier } = create({ externalOrigin });
    expect(outcomeOf(checkNow(verifier, signed({ caller: 'billing', route: 'partners' }).facts))).toBe(
      'bundle_route_missing/origin 403',
    );
  });
});

describe('a bundle that is swapped while the store is asked', () => {
  it('does not touch the request that began before', async () => {
    const content = siteContent(keys);
    content.revision = 8;
    for (const key of content.derived_keys ?? []) key.status = 'revoked';
    const next = await compileSite(content);
    const { answer, store } = pendingStore();
    let snapshot = site;
    const { events, verifier } = create({ currentSnapshot: () => snapshot, store });
    const waiting = verifier.check(signed().facts);
    snapshot = next;
    expect(outcomeOf(checkNow(verifier, signed().facts))).toBe('invalid_request_proof/key_revoked 401');
    answer(CONSUMED);
    const decision: Decision = await waiting;
    expect(decision).toMatchObject({ kind: 'allowed', snapshot: { revision: 7, head: site.head } });
    expect(events.map(({ bundle_revision }) => bundle_revision)).toEqual([8, 7]);
  });
});

describe('a delta that changes the client while the store is asked', () => {
  it('does not take its name from the event', async () => {
    const snapshot = await compileSite(siteContent(keys));
    const table = snapshot.keys;
    if (!(table instanceof LiveKeyTable)) throw new Error('a table that deltas do not change');
    const { answer, store } = pendingStore();
    const { events, verifier } = create({ snapshot, store });
    const waiting = verifier.check(signed().facts);
    table.putClient({ ...required(table.client('billing')), grants: new Map() });
    answer(CONSUMED);
    expect(outcomeOf(await waiting)).toBe('allowed');
    expect(events).toMatchObject([{ outcome: 'allowed', client_id: 'billing' }]);
  });
});

describe('the key of an allowed request', () => {
  const plan: RequestPlan = { caller: 'broker', route: 'orders-read', holder: newSigningKey() };
  const blocking = async (selector: { subject?: string; holder_thumbprint?: string }) =>
    compileSite({ ...siteContent(keys), blocked: [{ issuer: BROKER_ISSUER, ...selector }] });
  const thumbprint = plan.holder?.publicKey.thumbprint ?? '';

  it.each<[string, { subject?: string; holder_thumbprint?: string }, boolean]>([
    ['its subject', { subject: `spiffe://${TRUST_DOMAIN}/ns/prod/sa/billing` }, false],
    ['its holder key', { holder_thumbprint: thumbprint }, false],
    ['another holder key', { holder_thumbprint: newSigningKey().publicKey.thumbprint }, true],
  ])('is valid no longer once the bundle blocks it, by %s', async (_, selector, isValid) => {
    let snapshot = site;
    const { verifier } = create({ currentSnapshot: () => snapshot });
    const decision = checkNow(verifier, signed(plan).facts);
    if (decision.kind !== 'allowed') throw new Error(outcomeOf(decision));
    expect(verifier.hasValidKey(decision)).toBe(true);
    snapshot = await blocking(selector);
    expect(verifier.hasValidKey(decision)).toBe(isValid);
  });
});

describe('the answer', () => {
  it('names caller, route, bundle and decision of an allowed request', () => {
    const request = signed();
    expect(checkNow(create({}).verifier, request.facts)).toMatchObject({
      kind: 'allowed',
      snapshot: site,
      route: { routeId: 'orders-read' },
      caller: { subject: 'client:billing', derivedKey: { client: { clientId: 'billing' } } },
    });
  });

  it('names the route of a denied one as far as it is known', () => {
    const { verifier } = create({});
    const unknownPath = signed(read, { received: (request) => ({ ...request, target: '/v2' }) });
    expect(checkNow(verifier, unknownPath.facts)).toMatchObject({ kind: 'denied', routeId: undefined });
    const noProof = signed(read, { received: (request) => ({ ...request, headers: [] }) });
    expect(checkNow(verifier, noProof.facts)).toMatchObject({ kind: 'denied', routeId: 'orders-read' });
  });

  it('has another id each time', () => {
    const { verifier } = create({});
    const ids = [signed(), signed(), signed()].map(({ facts }) => checkNow(verifier, facts).decisionId);
    expect(new Set(ids).size).toBe(3);
  });
});

describe('before the body is received', () => {
  const { verifier } = create({});

  it.each<[string, RequestPlan, boolean]>([
    ['a route that binds it', read, true],
    ['an unbound route', { caller: 'billing', route: 'uploads' }, false],
  ])('says whether the route binds it: %s', (_, plan, binds) => {
    expect(verifier.bindsBody(signed(plan).facts)).toBe(binds);
  });

  it('binds nothing where there is no route or no bundle', () => {
    const { facts } = signed();
    expect(verifier.bindsBody({ ...facts, target: '/nowhere' })).toBe(false);
    expect(create({ snapshot: undefined }).verifier.bindsBody(facts)).toBe(false);
  });

  it('leaves a valid request to the check, and consumes nothing', () => {
    const { events, store, verifier } = create({});
    const awaited = verifier.awaitBody(signed().facts);
    expect(awaited.kind).toBe('awaited');
    expect(store.claims).toEqual([]);
    expect(events).toEqual([]);
  });

  it('denies and records what no body can mend', () => {
    const { events, verifier } = create({});
    const { facts } = signed();
    const decision = verifier.awaitBody({ ...facts, target: `${facts.target}?changed` });
    expect(outcomeOf(decision)).toBe('request_binding_mismatch/target 403');
    expect(events).toHaveLength(1);
  });

  it('denies a proof whose body is being received, until that has ended, and consumes nothing', () => {
    const { facts } = signed();
    const other = create({});
    const first = other.verifier.awaitBody(facts);
    expect(outcomeOf(other.verifier.awaitBody(facts))).toBe('jti_replay 403');
    expect(outcomeOf(other.verifier.awaitBody(signed().facts))).toBe('awaited');
    if (first.kind === 'awaited') first.end();
    const next = other.verifier.awaitBody(facts);
    expect(outcomeOf(next)).toBe('awaited');
    // An end that comes twice does not end the next one.
    if (first.kind === 'awaited') first.end();
    expect(outcomeOf(other.verifier.awaitBody(facts))).toBe('jti_replay 403');
    expect(other.store.claims).toEqual([]);
    expect(other.events.map(({ reason }) => reason)).toEqual(['jti_replay', 'jti_replay']);
  });

  it('names the caller alike for all of its proofs, and another caller otherwise', () => {
    const callerOf = (plan?: RequestPlan) => {
      const awaited = verifier.awaitBody(signed(plan).facts);
      return awaited.kind === 'awaited' ? awaited.caller : undefined;
    };
    expect(callerOf()).toBeDefined();
    expect(callerOf()).toBe(callerOf());
    expect(callerOf({ caller: 'billing', route: 'uploads' })).toBe(
      callerOf({ caller: 'billing', route: 'uploads' }),
    );
  });

  it('denies without a bundle', () => {
    const decision = create({ snapshot: undefined }).verifier.awaitBody(signed().facts);
    expect(outcomeOf(decision)).toBe('bundle_policy_missing 503');
  });
});
