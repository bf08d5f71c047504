/** When a verifier asks Control again after an answer with `Retry-After`. Time is the sum of the waits. */
import { setTimeout as delay } from 'node:timers/promises';
import { describe, expect, it } from '@jest/globals';
import type { RouteContent } from '../../../src/bundle/format/schema.ts';
import { newDirectory } from '../../support/bundle/bundle-directory.ts';
import type { Fault, RequestKind } from '../../support/fakes/control-distribution.ts';
import { NOW_SECONDS } from '../../support/fixtures/bundle-content.ts';
import { hostileRetryAfters } from '../../support/fixtures/retry-after-headers.ts';
import { waitUntil } from '../../support/wait.ts';
import { newControl, siteContent, startFollower } from './refresh-fixture.ts';

const LATE_MS = 2000;
/** Age of the statement less the time to renew it. */
const SPARE_MS = 8000;
/** Maximum backoff, which `Retry-After` never exceeds. */
const LONGEST_MS = 30_000;

const answer = (retryAfter: string, status = 503): Fault => ({
  kind: 'status',
  status,
  headers: { 'retry-after': retryAfter },
});

/** A verifier with the delays of production and a clock that its waits advance. */
async function follow(routes: readonly Partial<RouteContent>[] = [{}, {}]) {
  const control = await newControl();
  const content = siteContent();
  control.publishWhole({
    ...content,
    routes: content.routes.map((route, index) => ({ ...route, ...routes[index] })),
  });
  const waits: number[] = [];
  let passedMs = 0;
  /** Called before time passes. */
  const beforeWait: { call: (passedMs: number) => void } = { call: () => {} };
  const start = async () => {
    const follower = await startFollower({
      stateDirectory: await newDirectory(),
      url: control.url,
      retryFirstMs: 250,
      retryMaxMs: LONGEST_MS,
      nowSeconds: () => NOW_SECONDS + Math.floor(passedMs / 1000),
      sleep: async (waitMs) => {
        waits.push(waitMs);
        passedMs += waitMs;
        beforeWait.call(passedMs);
        await delay(1);
      },
    });
    return follower;
  };
  const isRunning = () => control.acknowledgements.some(({ outcome }) => outcome === 'accepted');
  return { control, start, waits, beforeWait, isRunning, passedMs: () => passedMs };
}

describe.each(hostileRetryAfters())('Retry-After: %s', (retryAfter) => {
  it('a verifier without a bundle asks again within 2 s, so 4 s of a proxy cost no more than 6 s', async () => {
    const { beforeWait, control, isRunning, passedMs, start, waits } = await follow();
    control.failNext('poll', answer(retryAfter));
    beforeWait.call = (atMs) => {
      if (atMs < 4000) control.failNext('poll', answer(retryAfter));
    };
    await start();
    await waitUntil(isRunning);
    expect(Math.max(...waits)).toBeLessThanOrEqual(LATE_MS);
    expect(passedMs()).toBeLessThanOrEqual(4000 + 2 * LATE_MS);
  });

  it.each<[RequestKind]>([['poll'], ['ack']])('a %s is sent again before a route is stale', async (kind) => {
    const { control, isRunning, start, waits } = await follow();
    await start();
    await waitUntil(isRunning);
    waits.length = 0;
    control.failNext(kind, answer(retryAfter));
    if (kind === 'poll') control.freshen(NOW_SECONDS);
    else control.publishDelta({});
    await waitUntil(() => waits.length > 0);
    expect(Math.max(...waits)).toBeLessThanOrEqual(SPARE_MS);
  });
});

const BOUNDED = { freshness_class: 'bounded', max_staleness_seconds: 3600 } as const;

it.each([
  ['the strictest route decides', [{ max_staleness_seconds: 60 }, { max_staleness_seconds: 5 }], 3000],
  ['realtime counts at most --realtime-staleness', [{}, { max_staleness_seconds: 600 }], SPARE_MS],
  ['routes that may be stale for an hour leave the maximum of 30 s', [BOUNDED, BOUNDED], LONGEST_MS],
] as const)('%s', async (_what, routes, expectedMs) => {
  const { control, isRunning, start, waits } = await follow(routes);
  await start();
  await waitUntil(isRunning);
  waits.length = 0;
  control.failNext('poll', answer('3600'));
  control.freshen(NOW_SECONDS);
  await waitUntil(() => waits.some((waitMs) => waitMs > 250));
  expect(Math.max(...waits)).toBe(expectedMs);
});

it.each([
  [429, 1000],
  [503, 1000],
])('a short Retry-After of a %i is waited for', async (status, expectedMs) => {
  const { control, isRunning, start, waits } = await follow();
  control.failNext('poll', answer('1', status));
  await start();
  await waitUntil(isRunning);
  expect(waits[0]).toBe(expectedMs);
});
