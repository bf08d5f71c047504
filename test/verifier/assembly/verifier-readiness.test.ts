/** Compares `/readyz` with the decision steps: its report of bundle freshness matches the decisions on requests. */
import { afterEach, beforeEach, expect, it, jest } from '@jest/globals';
import { bundleError } from '../../../src/bundle/format/bundle-error.ts';
import type { ReadinessCheck } from '../../../src/process/admin/admin-server.ts';
import { formatTime } from '../../../src/protocol/rfc3339.ts';
import { readingOf } from '../../../src/verifier/assembly/open-verifier.ts';
import {
  type ReadinessInputs,
  verifierReadiness,
} from '../../../src/verifier/assembly/verifier-readiness.ts';
import { checkFreshness } from '../../../src/verifier/decision/steps/freshness.ts';
import { ControlFailure } from '../../../src/verifier/loading/refresh/control-failure.ts';
import type { RefreshStatus } from '../../../src/verifier/loading/refresh/refresher.ts';
import { NOW_SECONDS, ORIGIN } from '../../support/fixtures/bundle-content.ts';
import {
  BUNDLE_AGE_SECONDS,
  compileSite,
  MAX_STALENESS_SECONDS,
  newSiteKeys,
  SKEW_SECONDS,
  siteContent,
} from '../../support/fixtures/snapshot.ts';

const REALTIME_STALENESS_SECONDS = 10;
const FRESH_AS_OF_SECONDS = NOW_SECONDS - BUNDLE_AGE_SECONDS;

beforeEach(() => {
  jest.useFakeTimers({ now: NOW_SECONDS * 1000 });
});
afterEach(() => {
  jest.useRealTimers();
});

const compiled = await compileSite(siteContent(newSiteKeys()));
/** Issued long ago, with a recent freshness statement. */
const snapshot = { ...compiled, issuedAtSeconds: compiled.issuedAtSeconds - 1000 };

const IN_ORDER: ReadinessInputs = {
  bundle: {
    snapshot,
    loadedAtSeconds: NOW_SECONDS,
    problem: undefined,
    freshnessProblem: undefined,
    freshnessIgnored: undefined,
  },
  breakGlass: undefined,
  refresh: undefined,
  replay: { ready: true },
  audit: { mode: 'required', recorder: undefined, collector: undefined },
  observation: { observed: [], enforced: [] },
  realtimeStalenessSeconds: REALTIME_STALENESS_SECONDS,
  leaving: false,
};

function checkOf(name: string, changes: Partial<ReadinessInputs> = {}): ReadinessCheck | undefined {
  return verifierReadiness({ ...IN_ORDER, ...changes }).find((check) => check.name === name);
}

it.each([
  ['the clock is behind it by more than the skew', FRESH_AS_OF_SECONDS - SKEW_SECONDS - 1, false],
  ['the clock is behind it by the skew', FRESH_AS_OF_SECONDS - SKEW_SECONDS, true],
  ['it is young', FRESH_AS_OF_SECONDS, true],
  ['it is as old as the most patient route allows', FRESH_AS_OF_SECONDS + MAX_STALENESS_SECONDS, true],
  ['it is older', FRESH_AS_OF_SECONDS + MAX_STALENESS_SECONDS + 1, false],
  ['it has expired', snapshot.expiresAtSeconds + SKEW_SECONDS, false],
])('freshness while %s: in order when any route is served', (_what, nowSeconds, isServed) => {
  jest.setSystemTime(nowSeconds * 1000 + 900);
  const rule = { kind: 'bounded', maxStalenessSeconds: MAX_STALENESS_SECONDS } as const;
  const denial = checkFreshness(rule, snapshot, nowSeconds, REALTIME_STALENESS_SECONDS);
  expect([denial === undefined, checkOf('freshness')?.problem === undefined]).toEqual([isServed, isServed]);
});

it.each([
  ['none is stale', 4, []],
  ['the one with a limit of its own is', 5, ['prices-capped']],
  ['as old as --realtime-staleness', REALTIME_STALENESS_SECONDS, ['prices-capped']],
  ['every realtime route is', REALTIME_STALENESS_SECONDS + 1, ['prices', 'prices-capped']],
  ['those that are bounded are not yet', MAX_STALENESS_SECONDS, ['prices', 'prices-capped']],
])('routes that are denied are a warning with their names: %s', (_what, ageSeconds, stale) => {
  jest.setSystemTime((FRESH_AS_OF_SECONDS + ageSeconds) * 1000);
  const check = checkOf('freshness');
  expect(check?.problem).toBeUndefined();
  expect(check?.routes ?? []).toEqual(stale);
  expect(check?.warning !== undefined).toBe(stale.length > 0);
  const counts = readingOf(snapshot, REALTIME_STALENESS_SECONDS)?.staleRoutes;
  expect(counts).toEqual({ bounded: 0, realtime: stale.length });
});

it('names why the statement is not applied beside the routes that are denied', () => {
  jest.setSystemTime((FRESH_AS_OF_SECONDS + 60) * 1000);
  const bundle = { ...IN_ORDER.bundle, freshnessIgnored: 'other_head' } as const;
  expect(checkOf('freshness', { bundle })?.warning).toMatch(/denied as stale.*; .*other_head$/);
});

it('bounds the names in an answer', async () => {
  const content = siteContent(newSiteKeys());
  for (let n = 0; n < 200; n++) {
    const name = { route_id: `r${n}`, path_template: `/r/${n}` };
    content.routes.push({ ...name, method: 'GET', audience: ORIGIN, freshness_class: 'realtime' });
    const allowed_sources = content.route_sources[0]?.allowed_sources ?? [];
    content.route_sources.push({ route_id: `r${n}`, allowed_sources });
  }
  jest.setSystemTime((FRESH_AS_OF_SECONDS + 60) * 1000);
  const check = checkOf('freshness', {
    bundle: { ...IN_ORDER.bundle, snapshot: await compileSite(content) },
  });
  expect(check?.routes).toHaveLength(100);
  expect(check?.warning).toContain(`202 of ${content.routes.length} `);
});

it('audit is a problem where records are required, a warning where they are not and for the collector', () => {
  const failing = { recorder: 'enospc', collector: undefined };
  expect(checkOf('audit', { audit: { mode: 'required', ...failing } })).toMatchObject({
    problem: expect.stringContaining('(enospc)'),
    warning: undefined,
  });
  expect(checkOf('audit', { audit: { mode: 'best_effort', ...failing } })).toMatchObject({
    problem: undefined,
    warning: expect.stringContaining('(enospc)'),
  });
  const collector = { recorder: undefined, collector: 'http_503' };
  expect(checkOf('audit', { audit: { mode: 'required', ...collector } })).toMatchObject({
    problem: undefined,
    warning: expect.stringContaining('(http_503)'),
  });
});

it('a store that is not ready, a leaving verifier and a bundle that is not there are problems', () => {
  const replay = { ready: false, problem: 'it is away' } as const;
  expect(checkOf('replay_store', { replay })?.problem).toBe('it is away');
  expect(checkOf('replay_store', { replay: { ready: true, warning: 'a fence' } })).toMatchObject({
    problem: undefined,
    warning: 'a fence',
  });
  expect(checkOf('listener', { leaving: true })?.problem).toBeDefined();
  expect(checkOf('listener')?.problem).toBeUndefined();
  const bundle = { ...IN_ORDER.bundle, snapshot: undefined };
  expect(checkOf('bundle', { bundle })?.problem).toBeDefined();
  expect(verifierReadiness(IN_ORDER).every(({ problem, warning }) => !problem && !warning)).toBe(true);
});

it.each([
  ['before the bundle is stale', BUNDLE_AGE_SECONDS, FRESH_AS_OF_SECONDS, 'until'],
  ['when no route could be served', MAX_STALENESS_SECONDS + 1, FRESH_AS_OF_SECONDS, 'until'],
  ['of another time', MAX_STALENESS_SECONDS + 1, FRESH_AS_OF_SECONDS + 3600, '(not_started)'],
  ['after a newer statement', MAX_STALENESS_SECONDS + 1, FRESH_AS_OF_SECONDS - 1, '(superseded)'],
])(
  'break-glass %s: a warning, and ready only while it applies',
  (_what, ageSeconds, fromSeconds, warning) => {
    const { head, revision } = snapshot;
    const statement = { revision, head, fromSeconds, untilSeconds: fromSeconds + 3600 };
    const stated = { ...snapshot, breakGlass: statement };
    jest.setSystemTime((FRESH_AS_OF_SECONDS + ageSeconds) * 1000);
    const changes = {
      bundle: { ...IN_ORDER.bundle, snapshot: stated },
      breakGlass: { statement, fault: undefined },
    };
    expect(checkOf('break_glass', changes)).toMatchObject({ problem: undefined });
    expect(checkOf('break_glass', changes)?.warning).toContain(warning);
    const isServed = warning === 'until';
    expect(checkOf('freshness', changes)?.problem === undefined).toBe(isServed);
    const reading = readingOf(stated, REALTIME_STALENESS_SECONDS);
    expect([reading?.isBreakGlass, reading?.staleRoutes.realtime === 0]).toEqual([isServed, isServed]);
  },
);

it('break-glass: a file that is refused is a warning, and no file says nothing', () => {
  const fault = { code: 'signature_invalid', text: 'of another key' };
  const check = checkOf('break_glass', { breakGlass: { statement: undefined, fault } });
  expect(check).toMatchObject({
    problem: undefined,
    warning: expect.stringContaining('(signature_invalid)'),
  });
  const none = checkOf('break_glass', { breakGlass: { statement: undefined, fault: undefined } });
  expect(none).toEqual({ name: 'break_glass', problem: undefined, warning: undefined });
  expect(checkOf('break_glass')).toBeUndefined();
});

it('the check of the bundle says which one is loaded', () => {
  const { authSite, head, revision } = snapshot;
  expect(checkOf('bundle')?.bundle).toEqual({ authSite, revision, head });
});

it('Control is never a problem: a warning while it fails, was never reached, or workers are late', () => {
  const inOrder = { lastContactSeconds: NOW_SECONDS, problem: undefined, late: undefined };
  const warningOf = (changes: Partial<RefreshStatus>) => {
    const check = checkOf('control', { refresh: { ...inOrder, ...changes } });
    expect(check?.problem).toBeUndefined();
    return check?.warning;
  };
  const error = new ControlFailure('control_unauthorized', 'it answered 401');
  const problem = { error, sinceSeconds: NOW_SECONDS };
  const late = { revision: 7, workers: [2, 5] };
  expect(checkOf('control')).toBeUndefined();
  expect(warningOf({})).toBeUndefined();
  expect(warningOf({ problem, lastContactSeconds: undefined })).toMatch(/^control_unauthorized: /);
  expect(warningOf({ lastContactSeconds: undefined, late })).toContain('--control-url');
  expect(warningOf({ late })).toMatch(/^workers_late: revision 7 .*: 2, 5$/);
});

it('a rejected bundle or statement is a warning with its code while another bundle serves', () => {
  const error = bundleError('revision_lower', 'bundle.jws', '', 'it is older');
  const rejected = { error, sinceSeconds: NOW_SECONDS };
  const loaded = { ...IN_ORDER.bundle, problem: rejected, freshnessProblem: rejected };
  expect(checkOf('bundle', { bundle: loaded })).toMatchObject({
    problem: undefined,
    warning: expect.stringMatching(/^revision_lower: /),
  });
  expect(checkOf('freshness', { bundle: loaded })).toMatchObject({
    problem: undefined,
    warning: expect.stringMatching(/^revision_lower: /),
  });
  const none = { ...loaded, snapshot: undefined };
  expect(checkOf('bundle', { bundle: none })?.problem).toMatch(/^revision_lower: /);
  expect(checkOf('freshness', { bundle: none })?.problem).toBeUndefined();
});

it('observation: names the first five of what is enforced all the same, and how many more', () => {
  const enforcedOf = (count: number) =>
    Array.from({ length: count }, (_, index) => ({ name: `r${index}`, why: 'not_allowed' }) as const);
  const warningOf = (count: number) =>
    checkOf('observation', { observation: { observed: [], enforced: enforcedOf(count) } })?.warning;
  expect(warningOf(5)).toMatch(/: r0, r1, r2, r3, r4$/);
  expect(warningOf(7)).toMatch(/: r0, r1, r2, r3, r4 and 2 more$/);
});

it('observation: only a warning, of what passes and of what is enforced all the same', () => {
  expect(checkOf('observation')).toBeUndefined();
  const observed = [
    { routeId: 'b', untilSeconds: NOW_SECONDS + 60 },
    { routeId: 'a', untilSeconds: NOW_SECONDS + 120 },
    { routeId: undefined, untilSeconds: NOW_SECONDS + 180 },
  ];
  const enforced = [{ name: 'c', why: 'latched' } as const];
  const check = checkOf('observation', { observation: { observed, enforced } });
  expect(check).toMatchObject({ problem: undefined, routes: ['a', 'b'] });
  expect(check?.warning).toContain(`the first until ${formatTime(NOW_SECONDS + 60)}`);
  expect(check?.warning).toMatch(/requests that no route matches, a, b; .*another time.*: c$/);
});
