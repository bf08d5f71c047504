/** What passes without identity on observed routes and unmatched paths, and what is denied even then. */
import { mkdtemp } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, it } from '@jest/globals';
import type { Snapshot } from '../../../src/bundle/compile/snapshot.ts';
import type { CallContext } from '../../../src/process/connections/call-context.ts';
import { deny } from '../../../src/protocol/reasons.ts';
import { formatTime } from '../../../src/protocol/rfc3339.ts';
import { type AllowedObservations, Observations } from '../../../src/verifier/observation/observations.ts';
import type { Fault } from '../../support/cases/fault.ts';
import { applyToContent, requestWith, storeWith, TABLE_CALLERS } from '../../support/cases/faulty-site.ts';
import { FAULTS, faultsOf } from '../../support/cases/one-fault.ts';
import { AUTH_SITE, NOW_SECONDS, ORIGIN } from '../../support/fixtures/bundle-content.ts';
import {
  factsOfWire,
  signRequest,
  withHeader,
  withoutHeader,
} from '../../support/fixtures/signed-request.ts';
import {
  compileSite,
  newSiteKeys,
  routeContentOf,
  type SiteContent,
  siteContent,
} from '../../support/fixtures/snapshot.ts';
import { checkNow, createTestVerifier, outcomeOf } from '../../support/fixtures/test-verifier.ts';

const keys = newSiteKeys();
const UNTIL_SECONDS = NOW_SECONDS + 3600;
const ALL: AllowedObservations = {
  routes: new Map([['everything', UNTIL_SECONDS]]),
  unmatchedUntil: UNTIL_SECONDS,
};

function observe(content: SiteContent): SiteContent {
  Object.assign(routeContentOf(content, 'everything'), {
    enforcement: 'observe',
    observe_until: formatTime(UNTIL_SECONDS),
  });
  return content;
}

async function verifierWith(snapshot: Snapshot | undefined, faults: readonly Fault[] = [], allowed = ALL) {
  const observations = await Observations.open({
    allowed,
    authSite: AUTH_SITE,
    stateDirectory: await mkdtemp(join(tmpdir(), 'proofgate-observe-')),
    nowSeconds: () => NOW_SECONDS,
    onLatchFailed: (error) => {
      throw error;
    },
  });
  if (snapshot !== undefined) observations.follow(snapshot);
  await observations.settled();
  const store = storeWith(faults);
  return { ...createTestVerifier({ snapshot, store, observations }), store };
}

const DENIED_EVEN_THEN: ReadonlySet<string> = new Set([
  'bundle_policy_missing 503',
  'bundle_route_missing/path_not_canonical 403',
  'bundle_route_missing/origin 403',
  'bundle_route_missing/no_match 403',
  'bundle_freshness_unknown 503',
  'stale_bundle_fail_closed/clock 503',
  'stale_bundle_fail_closed/expired 503',
  'stale_bundle_fail_closed/stale 503',
  'invalid_request_proof/key_revoked 401',
  'invalid_request_proof/subject_blocked 401',
  'invalid_request_proof/holder_blocked 401',
]);
const STALE = FAULTS.filter(({ outcome }) => outcome === 'stale_bundle_fail_closed/stale 503');

const GONE: CallContext = {
  waitedTooLong: false,
  trace: undefined,
  traceparent: () => undefined,
  isGone: () => true,
};

async function answerTo(
  caller: (typeof TABLE_CALLERS)[number],
  faults: readonly Fault[],
  allowed = ALL,
  call?: CallContext,
) {
  const hasBundle = !faults.some(({ noBundle }) => noBundle === true);
  const snapshot = hasBundle
    ? await compileSite(observe(applyToContent(siteContent(keys), faults)))
    : undefined;
  const { events, internalErrors, store, verifier } = await verifierWith(snapshot, faults, allowed);
  const decision = checkNow(verifier, requestWith(keys, caller, faults).facts, call);
  expect(internalErrors).toEqual([]);
  return { decision, event: events[0], claimsOnReplayStore: store.claims.length };
}

describe.each(TABLE_CALLERS)('on an observed route, a request of %s', (caller) => {
  it('without a fault is allowed, as when enforced', async () => {
    expect((await answerTo(caller, [])).decision).toMatchObject({ kind: 'allowed' });
  });

  it.each(faultsOf(caller))('step $step: $outcome', async (fault) => {
    const { claimsOnReplayStore, decision, event } = await answerTo(caller, [fault]);
    const kind = DENIED_EVEN_THEN.has(fault.outcome) ? 'denied' : 'observed';
    expect(decision.kind).toBe(kind);
    const denial = decision.kind === 'allowed' ? undefined : decision.denial;
    expect(
      outcomeOf({ kind: 'denied', decisionId: '', denial: denial ?? deny('jti_replay'), routeId: '' }),
    ).toBe(fault.outcome);
    expect(event).toMatchObject({ outcome: kind, reason: denial?.reason, status: denial?.status });
    expect(claimsOnReplayStore).toBe(fault.step === 6 ? 1 : 0);
  });

  it.each(faultsOf(caller))('with a stale bundle is denied: $outcome', async (fault) => {
    expect((await answerTo(caller, [fault, ...STALE])).decision.kind).toBe('denied');
  });

  it.each(faultsOf(caller))(
    'is denied once its caller is gone, and consumes nothing: $outcome',
    async (fault) => {
      const { claimsOnReplayStore, decision } = await answerTo(caller, [fault], ALL, GONE);
      expect([decision.kind, claimsOnReplayStore]).toEqual(['denied', 0]);
    },
  );

  const { unmatchedUntil } = ALL;
  it.each(faultsOf(caller))('is denied where the verifier does not allow it: $outcome', async (fault) => {
    const allowed = { routes: new Map([['orders-read', UNTIL_SECONDS]]), unmatchedUntil };
    expect((await answerTo(caller, [fault], allowed)).decision.kind).toBe('denied');
  });
});

it('with a stale bundle under a break-glass statement, only verified requests pass', async () => {
  const site = await compileSite(observe(applyToContent(siteContent(keys), STALE)));
  const { head, revision } = site;
  const fromSeconds = site.freshAsOfSeconds;
  const breakGlass = { revision, head, fromSeconds, untilSeconds: NOW_SECONDS + 60 };
  const { events, verifier } = await verifierWith({ ...site, breakGlass });
  const { facts, wire } = signRequest(keys, { caller: 'billing', route: 'everything' });
  expect(checkNow(verifier, facts).kind).toBe('allowed');
  const anonymous = factsOfWire(withoutHeader(wire, 'authorization'));
  expect(checkNow(verifier, anonymous).kind).toBe('denied');
  expect(events.map((event) => event.break_glass)).toEqual([true, undefined]);
});

const unsigned = { method: 'GET', scheme: 'https', authority: 'api.shop.example', headers: [] };
const unmatched = async (allowed = ALL) => {
  const content = observe(siteContent(keys));
  Object.assign(content, { unmatched: 'observe', unmatched_until: formatTime(UNTIL_SECONDS) });
  return verifierWith(await compileSite(content), [], allowed);
};

describe('unmatched requests', () => {
  it.each([
    '/v2/reports',
    '/',
    '/v1/report',
    '/health?full=1',
    '/v1/everything-else',
    '/v1/everything/17/parts',
  ])('pass: %s', async (target) => {
    const { events, verifier } = await unmatched();
    const decision = checkNow(verifier, factsOfWire({ ...unsigned, target, body: { kind: 'none' } }));
    expect(decision).toMatchObject({ kind: 'observed', route: undefined });
    expect(events).toMatchObject([
      { outcome: 'observed', reason: 'bundle_route_missing', detail: 'no_match' },
    ]);
  });

  it('are denied where the verifier does not allow it', async () => {
    const { verifier } = await unmatched({ ...ALL, unmatchedUntil: undefined });
    const facts = factsOfWire({ ...unsigned, target: '/v2/reports', body: { kind: 'none' } });
    expect(outcomeOf(checkNow(verifier, facts))).toBe('bundle_route_missing/no_match 403');
  });
});

/** Ways around the enforced routes `POST /v1/orders`, `GET /v1/orders/{order_id}`, `PUT /v1/uploads/{name*}` and others. */
const ATTEMPTS: readonly (readonly [target: string, method?: string, changes?: object])[] = [
  ...['/v1/Orders', '/V1/ORDERS', '/V1/orders/17', '/v1/ORDERS/17', '/v1/oRders/17/'].map(
    (target) => [target] as const,
  ),
  ...['/v1/orders/', '/v1/orders/17/', '/v1/prices/', '/v1/uploads/', '/v1/tenants/'].map(
    (target) => [target] as const,
  ),
  ...['PUT', 'PATCH', 'HEAD', 'OPTIONS', 'TRACE', 'get', 'QUERY', 'PROPFIND', ''].map(
    (method) => ['/v1/orders/17', method] as const,
  ),
  ['/v1/orders', 'GET'],
  ['/v1/orders', 'CONNECT'],
  ['/v2/reports', 'CONNECT'],
  ...['/v1/orders.json', '/v1/orders.', '/v1/orders%20', '/v1/orders/17/items', '/v1/orders%C2%A0'].map(
    (target) => [target] as const,
  ),
  ...['/v1./orders', '/v1%20/orders', '/v1/o%CC%81rders', '/v1/order%C5%BF', '/v1/%EF%BD%8Frders'].map(
    (target) => [target] as const,
  ),
  ...['/v1/or%E2%80%8Bders', '/v1/or%C2%ADders', '/v1/tena%E2%81%BFts', '/v1/prices/x', '/v1/prices?x=1'].map(
    (target) => [target, 'POST'] as const,
  ),
  ...['/v1%3Bx/orders', '/v1/orders%3Bx=1', '/v2/%E2%80%A5/v1/orders', '/v1/%E2%80%A4/orders'].map(
    (target) => [target] as const,
  ),
  // Not canonical: these never pass.
  ...['/v1//orders', '//v1/orders', '/v1/./orders', '/v2/../v1/orders', '/v1/%6Frders', '/v1%2Forders'].map(
    (target) => [target] as const,
  ),
  ...['/v1/orders;x=1', '/v1\\orders', '/v1/orders%00', '/v1/orders%2e', '/v1/%zz', 'v1/orders', '*'].map(
    (target) => [target] as const,
  ),
  ['/v2/reports#x'],
  ['/v2/reports', 'GET', { authority: 'evil.example' }],
  ['/v2/reports', 'GET', { authority: 'api.shop.example.' }],
  ['/v2/reports', 'GET', { scheme: 'http' }],
  ['/v1/partners', 'GET'],
  ['/v2/reports', 'GET', { headers: [{ name: 'upgrade', value: 'websocket' }] }],
  ['/v1/everything/17', 'POST', { headers: [{ name: 'upgrade', value: 'websocket' }] }],
  ['/v1/everything/17', 'POST', { headers: [{ name: 'upgrade', value: 'h2c' }] }],
];

describe('no way around an enforced route', () => {
  it('has fifty attempts', () => {
    expect(ATTEMPTS.length).toBeGreaterThanOrEqual(50);
  });

  it.each(ATTEMPTS)('%s %s %o', async (target, method = 'GET', changes = {}) => {
    const { verifier } = await unmatched();
    const request = { ...unsigned, method, target, body: { kind: 'none' } as const, ...changes };
    expect(checkNow(verifier, factsOfWire(request)).kind).toBe('denied');
  });
});

describe('what an observed decision says', () => {
  const plan = { caller: 'billing', route: 'everything' } as const;
  const decisionOn = async (value: string) => {
    const { verifier } = await unmatched();
    const { facts } = signRequest(keys, plan, {
      received: (request) =>
        withHeader(withoutHeader(request, 'x-proofgate-signature'), 'authorization', () => value),
    });
    return checkNow(verifier, facts);
  };

  it.each([
    ['Passport abc', true],
    ['passport abc', true],
    ['Bearer abc, Passport def', true],
    ['Bearer abc', false],
    ['Bearer Passport', false],
  ])('Authorization: %s is removed: %s', async (value, removesAuthorization) => {
    expect(await decisionOn(value)).toMatchObject({ kind: 'observed', removesAuthorization });
  });

  it('a refusal of the enforcement point is never one', async () => {
    const { verifier } = await unmatched();
    const { facts } = signRequest(keys, plan);
    const denial = deny('request_binding_mismatch', 'header.x_proofgate_subject');
    expect(verifier.refuse(facts, denial)).toMatchObject({ kind: 'denied', denial });
  });

  it('an upgrade passes only where the point ends the tunnel and the route allows it', async () => {
    const content = observe(siteContent(keys));
    const route = routeContentOf(content, 'everything');
    Object.assign(route, { method: 'GET', upgrade: 'websocket' });
    const { verifier } = await verifierWith(await compileSite(content));
    const facts = factsOfWire({
      ...unsigned,
      target: '/v1/everything/17',
      headers: [{ name: 'upgrade', value: 'websocket' }],
      body: { kind: 'none' },
    });
    const decision = checkNow(verifier, { ...facts, upgrade: 'tunnel' });
    expect(decision.kind).toBe('observed');
    expect(decision.kind === 'observed' && verifier.isStillObserved(decision)).toBe(true);
    expect(checkNow(verifier, facts).kind).toBe('denied');
    expect(checkNow(verifier, { ...facts, upgrade: 'none' }).kind).toBe('observed');
  });

  it('the body of a denied request is received, as that of an unverified caller', async () => {
    const { verifier } = await unmatched();
    const facts = factsOfWire({
      ...unsigned,
      method: 'POST',
      target: '/v1/everything/17',
      body: { kind: 'unknown' },
    });
    expect(verifier.awaitBody(facts)).toMatchObject({ kind: 'awaited', caller: '' });
    expect(ORIGIN).toContain(facts.authority);
  });
});
