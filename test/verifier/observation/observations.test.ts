/** When an observation begins and ends: two keys, the earlier end, and the latch that survives a restart. */
import { mkdtemp, readFile, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, test } from '@jest/globals';
import { formatTime } from '../../../src/protocol/rfc3339.ts';
import { LATCH_FILE } from '../../../src/verifier/observation/latch-file.ts';
import { Observations } from '../../../src/verifier/observation/observations.ts';
import { AUTH_SITE, NOW_SECONDS } from '../../support/fixtures/bundle-content.ts';
import { compileSite, newSiteKeys, routeContentOf, siteContent } from '../../support/fixtures/snapshot.ts';

const keys = newSiteKeys();
const ROUTE = 'orders-read';
const HOUR = 3600;
const inHours = (hours: number) => NOW_SECONDS + hours * HOUR;

const enforcing = await compileSite(siteContent(keys));
const withoutRoute = await compileSite({
  ...siteContent(keys),
  routes: siteContent(keys).routes.filter(({ route_id: id }) => id !== ROUTE),
  route_sources: siteContent(keys).route_sources.filter(({ route_id: id }) => id !== ROUTE),
});
const observing = (until: number) => {
  const content = siteContent(keys);
  Object.assign(routeContentOf(content, ROUTE), { enforcement: 'observe', observe_until: formatTime(until) });
  return compileSite(content);
};

/** A verifier's observations over time, with one state directory. */
async function timeline(stateDirectory?: string) {
  const directory = stateDirectory ?? (await mkdtemp(join(tmpdir(), 'proofgate-latch-')));
  const failures: unknown[] = [];
  let nowSeconds = NOW_SECONDS;
  let observations: Observations | undefined;
  let snapshot = enforcing;
  return {
    directory,
    failures,
    at: (seconds: number) => {
      nowSeconds = seconds;
    },
    /** @param allowed end of `--allow-observe`; undefined: no flag */
    start: async (allowed: number | undefined, bundle = snapshot) => {
      snapshot = bundle;
      observations = await Observations.open({
        allowed: {
          routes: new Map(allowed === undefined ? [] : [[ROUTE, allowed]]),
          unmatchedUntil: undefined,
        },
        authSite: AUTH_SITE,
        stateDirectory: directory,
        nowSeconds: () => nowSeconds,
        onLatchFailed: (error) => failures.push(error),
      });
      observations.follow(bundle);
      await observations.settled();
    },
    load: async (bundle: typeof snapshot) => {
      snapshot = bundle;
      observations?.follow(bundle);
      await observations?.settled();
    },
    observes: () => {
      const route = snapshot.routes.find(ROUTE);
      return route !== undefined && observations?.observes(route, nowSeconds) === true;
    },
    why: () => observations?.status().enforced.map(({ why }) => why),
    enforced: () => observations?.enforced(),
  };
}

test.each([
  ['the bundle alone', undefined, inHours(1), false],
  ['the flag alone', inHours(1), undefined, false],
  ['both', inHours(1), inHours(1), true],
  ['a flag that has ended', inHours(-1), inHours(1), false],
  ['a bundle whose end has passed', inHours(1), inHours(-1), false],
])('%s', async (_, allowed, until, isObserved) => {
  const verifier = await timeline();
  await verifier.start(allowed, until === undefined ? enforcing : await observing(until));
  expect(verifier.observes()).toBe(isObserved);
});

test.each([
  ['the bundle ends first', inHours(2), inHours(1)],
  ['the flag ends first', inHours(1), inHours(2)],
])('%s: everything enforces from then on, also when the clock goes back', async (_, allowed, until) => {
  const verifier = await timeline();
  await verifier.start(allowed, await observing(until));
  verifier.at(inHours(1) - 1);
  expect(verifier.observes()).toBe(true);
  verifier.at(inHours(1));
  expect(verifier.observes()).toBe(false);
  verifier.at(NOW_SECONDS);
  expect(verifier.observes()).toBe(false);
});

test('a route that the bundle enforced observes again only with another flag', async () => {
  const verifier = await timeline();
  const bundle = await observing(inHours(5));
  await verifier.start(inHours(5), bundle);
  await verifier.load(enforcing);
  await verifier.load(bundle);
  expect([verifier.observes(), verifier.why()]).toEqual([false, ['latched']]);
  await verifier.start(inHours(5));
  expect(verifier.observes()).toBe(false);
  await verifier.start(inHours(4));
  expect(verifier.observes()).toBe(true);
});

test('a flag that came before the wish is not the later local act', async () => {
  const verifier = await timeline();
  await verifier.start(inHours(5), enforcing);
  await verifier.load(await observing(inHours(5)));
  expect(verifier.observes()).toBe(false);
});

test('a flag for a route that is yet to come counts from its first bundle, without a gap, once', async () => {
  const verifier = await timeline();
  await verifier.start(inHours(2), withoutRoute);
  await verifier.start(inHours(2), withoutRoute);
  const isLoaded = verifier.load(await observing(inHours(2)));
  expect(verifier.observes()).toBe(true);
  await isLoaded;
  await verifier.start(inHours(2));
  expect(verifier.observes()).toBe(true);
  await verifier.load(withoutRoute);
  await verifier.load(await observing(inHours(2)));
  expect([verifier.observes(), verifier.why()]).toEqual([false, ['latched']]);
});

test('a route that comes enforced closes a flag from before it', async () => {
  const verifier = await timeline();
  await verifier.start(inHours(2), withoutRoute);
  await verifier.load(enforcing);
  await verifier.load(await observing(inHours(2)));
  expect(verifier.observes()).toBe(false);
});

test('a restart goes on, without the flag or after the end it does not', async () => {
  const verifier = await timeline();
  const bundle = await observing(inHours(2));
  await verifier.start(inHours(5), bundle);
  await verifier.start(inHours(5));
  expect(verifier.observes()).toBe(true);
  await verifier.start(undefined);
  await verifier.start(inHours(5));
  expect(verifier.observes()).toBe(false);

  const another = await timeline();
  await another.start(inHours(5), bundle);
  another.at(inHours(3));
  await another.start(inHours(5), await observing(inHours(4)));
  expect(another.observes()).toBe(false);
});

test('a later end of the bundle counts while the observation lasts, up to the end of the flag', async () => {
  const verifier = await timeline();
  await verifier.start(inHours(3), await observing(inHours(1)));
  await verifier.load(await observing(inHours(5)));
  verifier.at(inHours(3) - 1);
  expect(verifier.observes()).toBe(true);
  verifier.at(inHours(3));
  expect(verifier.observes()).toBe(false);
});

test('a latch that cannot be read, or is of another site, enforces', async () => {
  for (const text of ['{', '{"format":"proofgate.observations/v1","auth_site":"other","latches":[]}']) {
    const verifier = await timeline();
    await writeFile(join(verifier.directory, LATCH_FILE), text);
    await verifier.start(inHours(1), await observing(inHours(1)));
    expect([verifier.observes(), verifier.why(), verifier.failures.length]).toEqual([
      false,
      ['latch_failed'],
      1,
    ]);
    expect(await readFile(join(verifier.directory, LATCH_FILE), 'utf8')).toBe(text);
  }
});

test('a latch that cannot be written enforces', async () => {
  const verifier = await timeline(join(tmpdir(), 'proofgate-no-such-directory'));
  await verifier.start(inHours(1), await observing(inHours(1)));
  expect([verifier.observes(), verifier.why()]).toEqual([false, ['latch_failed']]);
});

test('without a flag nothing is written', async () => {
  const verifier = await timeline();
  await verifier.start(undefined, await observing(inHours(1)));
  expect(verifier.why()).toEqual(['not_allowed']);
  await expect(readFile(join(verifier.directory, LATCH_FILE))).rejects.toMatchObject({ code: 'ENOENT' });
});

test('a report to Control names what is enforced although the bundle says observe, at once and until the end', async () => {
  const verifier = await timeline();
  const bundle = await observing(inHours(2));
  await verifier.start(undefined, bundle);
  expect(await verifier.enforced()).toBe(`1 route=${ROUTE}`);
  await verifier.start(inHours(1));
  expect(await verifier.enforced()).toBeUndefined();
  verifier.at(inHours(1));
  expect(await verifier.enforced()).toBe(`1 route=${ROUTE}`);
  verifier.at(inHours(2));
  expect(await verifier.enforced()).toBeUndefined();
});

test('a report to Control names requests that no route matches, and is absent when nothing is observed', async () => {
  const verifier = await timeline();
  await verifier.start(undefined, enforcing);
  expect(await verifier.enforced()).toBeUndefined();
  const content = siteContent(keys);
  Object.assign(content, { unmatched: 'observe', unmatched_until: formatTime(inHours(1)) });
  await verifier.load(await compileSite(content));
  expect(await verifier.enforced()).toBe('1 unmatched');
});
