/** Observations in the workers of a primary: they only read the latch, and what they cannot read is enforced. */
import { mkdir, mkdtemp, readFile, rename, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { beforeEach, describe, expect, test } from '@jest/globals';
import type { Snapshot } from '../../../src/bundle/compile/snapshot.ts';
import { formatTime } from '../../../src/protocol/rfc3339.ts';
import { LATCH_FILE } from '../../../src/verifier/observation/latch-file.ts';
import { Observations } from '../../../src/verifier/observation/observations.ts';
import { AUTH_SITE, NOW_SECONDS } from '../../support/fixtures/bundle-content.ts';
import { compileSite, newSiteKeys, routeContentOf, siteContent } from '../../support/fixtures/snapshot.ts';
import { waitFor } from '../../support/wait.ts';

const keys = newSiteKeys();
const ROUTE = 'orders-read';
const inHours = (hours: number) => NOW_SECONDS + hours * 3600;
const END = inHours(2);

const enforcing = await compileSite(siteContent(keys));
const observingUntil = (until: number) => {
  const content = siteContent(keys);
  Object.assign(routeContentOf(content, ROUTE), { enforcement: 'observe', observe_until: formatTime(until) });
  return compileSite(content);
};
const observing = await observingUntil(inHours(20));

let directory = '';
let nowSeconds = NOW_SECONDS;
let failures = 0;
beforeEach(async () => {
  directory = await mkdtemp(join(tmpdir(), 'proofgate-latch-'));
  nowSeconds = NOW_SECONDS;
  failures = 0;
});

const latchFile = () => join(directory, LATCH_FILE);

/** A process of a verifier that was started with `--allow-observe orders-read=END`. */
async function open(isWorker: boolean, allowed: number | 'none' = END) {
  const observations = await Observations.open({
    allowed: { routes: new Map(allowed === 'none' ? [] : [[ROUTE, allowed]]), unmatchedUntil: undefined },
    authSite: AUTH_SITE,
    stateDirectory: directory,
    isWorker,
    nowSeconds: () => nowSeconds,
    onLatchFailed: () => {
      failures += 1;
    },
  });
  let current: Snapshot | undefined;
  return {
    observations,
    /** As the loader does: what is prepared is on disk before any process uses the bundle. */
    load: async (bundle: Snapshot) => {
      await observations.prepare(bundle);
      observations.follow(bundle);
      current = bundle;
    },
    observes: () => {
      const route = current?.routes.find(ROUTE);
      return route !== undefined && observations.observes(route, nowSeconds);
    },
    why: () => observations.status().enforced.map(({ why }) => why),
  };
}

const openPrimary = (allowed?: number | 'none') => open(false, allowed);
const openWorker = (allowed?: number | 'none') => open(true, allowed);

/** A primary and one worker that observe. */
async function openBoth() {
  const [primary, worker] = [await openPrimary(), await openWorker()];
  for (const each of [primary, worker]) await each.load(observing);
  expect([primary.observes(), worker.observes()]).toEqual([true, true]);
  return { primary, worker };
}

test('a worker observes what the primary has begun, and also the one that replaces it', async () => {
  await openBoth();
  const again = await openWorker();
  await again.load(observing);
  expect(again.observes()).toBe(true);
});

test('a worker that has not read the latch for its bundle enforces', async () => {
  await (await openPrimary()).load(observing);
  const { observations } = await openWorker();
  observations.follow(observing);
  const route = observing.routes.find(ROUTE);
  expect(route !== undefined && observations.observes(route, nowSeconds)).toBe(false);
});

test('a worker begins nothing by itself, and writes nothing', async () => {
  const worker = await openWorker();
  await worker.load(observing);
  worker.observations.watch();
  expect([worker.observes(), worker.why()]).toEqual([false, ['latch_failed']]);
  await expect(readFile(latchFile())).rejects.toMatchObject({ code: 'ENOENT' });
  await worker.observations.close();
});

describe('what is on disk enforces in a worker', () => {
  const content = (latch: object, more: object = {}) =>
    JSON.stringify({
      format: 'proofgate.observations/v1',
      auth_site: AUTH_SITE,
      latches: [{ name: `route ${ROUTE}`, allowed_until: END, until: END, closed: false, ...latch }],
      ...more,
    });
  test.each<[string, string | undefined, boolean]>([
    ['all that it needs, which is observed', content({}), true],
    ['closed', content({ closed: true }), false],
    ['not begun', content({ until: null }), false],
    ['begun under an earlier flag', content({ allowed_until: END - 1 }), false],
    ['begun under a later flag', content({ allowed_until: END + 1 }), false],
    ['over', content({ until: NOW_SECONDS }), false],
    ['of another route', content({ name: 'route orders' }), false],
    ['of unmatched requests', content({ name: 'unmatched' }), false],
    ['of another site', content({}, { auth_site: 'other' }), false],
    ['of another format', content({}, { format: 'proofgate.observations/v2' }), false],
    ['nothing', content({}, { latches: [] }), false],
    ['a text in place of a time', content({ until: '2099-01-01T00:00:00Z' }), false],
    ['no JSON', content({}).slice(0, -1), false],
    ['empty', '', false],
    ['absent', undefined, false],
  ])('%s', async (_, text, isObserved) => {
    if (text !== undefined) await writeFile(latchFile(), text);
    const worker = await openWorker();
    await worker.load(observing);
    expect(worker.observes()).toBe(isObserved);
  });

  test('open, but this worker has no flag', async () => {
    await writeFile(latchFile(), content({}));
    const worker = await openWorker('none');
    await worker.load(observing);
    expect([worker.observes(), worker.why(), failures]).toEqual([false, ['not_allowed'], 0]);
  });
});

test('a worker that saw the end enforces for good, whatever its clock and the disk say then', async () => {
  const { worker } = await openBoth();
  nowSeconds = END;
  expect(worker.observes()).toBe(false);
  nowSeconds = NOW_SECONDS;
  await worker.load(observing);
  expect([worker.observes(), worker.why()]).toEqual([false, ['latched']]);
});

test('the primary closes what has ended without being asked, also for workers to come', async () => {
  const { primary, worker } = await openBoth();
  primary.observations.watch();
  nowSeconds = END;
  await waitFor('the latch to be closed', async () =>
    (await readFile(latchFile(), 'utf8')).includes('"closed":true'),
  );
  nowSeconds = NOW_SECONDS;
  const late = await openWorker();
  await late.load(observing);
  expect([primary.observes(), late.observes()]).toEqual([false, false]);
  // One that was idle meanwhile reads it.
  worker.observations.watch();
  await waitFor('the idle worker', () => !worker.observes());
  await Promise.all([primary.observations.close(), worker.observations.close()]);
});

test('a worker that missed the bundle that enforces does not observe by the next one', async () => {
  const { primary, worker } = await openBoth();
  await primary.load(enforcing);
  const next = await observingUntil(inHours(19));
  await primary.load(next);
  await worker.load(next);
  expect([primary.observes(), worker.observes(), worker.why()]).toEqual([false, false, ['latched']]);
});

test('a primary that cannot write that an observation is over lets no worker use the bundle', async () => {
  const { primary, worker } = await openBoth();
  await rm(latchFile());
  await mkdir(join(latchFile(), 'in the way'), { recursive: true });
  await expect(primary.load(enforcing)).rejects.toMatchObject({ code: 'file_not_written' });
  await expect(primary.load(enforcing)).rejects.toMatchObject({ code: 'file_not_written' });
  expect(failures).toBe(1);
  // What cannot be read is enforced, until it can be.
  await worker.load(observing);
  expect(worker.observes()).toBe(false);
  await rm(latchFile(), { recursive: true });
  await primary.load(enforcing);
  expect(await readFile(latchFile(), 'utf8')).toContain('"closed":true');
});

test('a primary that cannot read the latch goes on, and all enforce', async () => {
  await mkdir(join(latchFile(), 'in the way'), { recursive: true });
  const [primary, worker] = [await openPrimary(), await openWorker()];
  for (const each of [primary, worker]) await each.load(observing);
  expect([primary.why(), worker.why()]).toEqual([['latch_failed'], ['latch_failed']]);
});

test.each([
  ['what is not there', ''],
  ['what was begun', 'begun'],
])('a primary that could not read %s closes it once it can be read', async (_, begun) => {
  if (begun !== '') await openBoth();
  const away = join(directory, 'away');
  if (begun !== '') await rename(latchFile(), away);
  await mkdir(join(latchFile(), 'in the way'), { recursive: true });
  const primary = await openPrimary();
  await primary.load(observing);
  await rm(latchFile(), { recursive: true });
  if (begun !== '') await rename(away, latchFile());
  for (const bundle of [enforcing, observing]) await primary.load(bundle);
  const worker = await openWorker();
  await worker.load(observing);
  expect([primary.observes(), worker.observes(), failures]).toEqual([false, false, 1]);
  expect(await readFile(latchFile(), 'utf8')).toContain('"closed":true');
});

test('a primary without the flag that could not read the latch ends the observation once it can be read', async () => {
  await (await openPrimary()).load(observing);
  const away = join(directory, 'away');
  await rename(latchFile(), away);
  await mkdir(join(latchFile(), 'in the way'), { recursive: true });
  const other = await openPrimary('none');
  await rm(latchFile(), { recursive: true });
  await rename(away, latchFile());
  await other.load(enforcing);
  await (await openPrimary()).load(observing);
  const worker = await openWorker();
  await worker.load(observing);
  expect(worker.observes()).toBe(false);
});

test('a primary that cannot write a beginning goes on, and all enforce, also once it can', async () => {
  const [primary, worker] = [await openPrimary(), await openWorker()];
  await mkdir(join(latchFile(), 'in the way'), { recursive: true });
  for (const each of [primary, worker]) await each.load(observing);
  expect([primary.why(), worker.why()]).toEqual([['latch_failed'], ['latch_failed']]);
  await rm(latchFile(), { recursive: true });
  primary.observations.watch();
  await waitFor('the latch', async () =>
    /"closed":true/.test(await readFile(latchFile(), 'utf8').catch(String)),
  );
  await primary.observations.close();
  await worker.load(observing);
  expect([primary.why(), worker.why()]).toEqual([['latched'], ['latched']]);
  const another = await openWorker();
  await another.load(observing);
  expect(another.observes()).toBe(false);
});

test.each<[string, string]>([
  ['what a second process closed', 'closed by a second process'],
  ['what can no longer be read', '{'],
])('a primary never opens again %s', async (_, text) => {
  const { primary, worker } = await openBoth();
  if (text === '{') await writeFile(latchFile(), text);
  else await (await openPrimary(inHours(3))).observations.settled();
  // It has something to write.
  await primary.load(await observingUntil(inHours(1)));
  const again = await openWorker();
  for (const each of [worker, again]) await each.load(observing);
  expect([primary.observes(), worker.observes(), again.observes()]).toEqual([false, false, false]);
  expect(await readFile(latchFile(), 'utf8')).toContain('"closed":true');
});

test('a bundle that is rejected after it was prepared is not reported', async () => {
  const primary = await openPrimary('none');
  await primary.load(enforcing);
  await primary.observations.prepare(observing);
  expect([primary.why(), await primary.observations.enforced()]).toEqual([[], undefined]);
});

test('a lost state directory enforces until the primary starts again, as with one process', async () => {
  const { worker } = await openBoth();
  await rm(latchFile());
  await worker.load(observing);
  expect(worker.observes()).toBe(false);
  await (await openPrimary()).load(observing);
  const restarted = await openWorker();
  await restarted.load(observing);
  expect(restarted.observes()).toBe(true);
});

test('a primary that starts without the flag closes it, and with another one begins again', async () => {
  await openBoth();
  await (await openPrimary(inHours(3))).load(observing);
  const [before, after] = [await openWorker(), await openWorker(inHours(3))];
  for (const each of [before, after]) await each.load(observing);
  expect([before.observes(), after.observes()]).toEqual([false, true]);
});
