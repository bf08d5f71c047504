/** What a verifier does while Control fails: how long it waits, what it reports once, and what it acknowledges afterwards. */
import { setImmediate as nextTurn } from 'node:timers/promises';
import { expect, it } from '@jest/globals';
import { newDirectory, putBundle } from '../../support/bundle/bundle-directory.ts';
import { clientNamed } from '../../support/bundle/deltas.ts';
import type { FakeControl, Fault, RequestKind } from '../../support/fakes/control-distribution.ts';
import { AUTH_SITE, NOW_SECONDS } from '../../support/fixtures/bundle-content.ts';
import { waitUntil } from '../../support/wait.ts';
import { keys, newControl, siteContent, startFollower } from './refresh-fixture.ts';

const UNAVAILABLE: Fault = { kind: 'status', status: 503 };

function fail(control: FakeControl, on: RequestKind, times: number): void {
  for (let count = 0; count < times; count++) control.failNext(on, UNAVAILABLE);
}

type Events = Awaited<ReturnType<typeof startFollower>>['events'];
const recoveries = (events: Events) => events.filter(([event]) => event === 'recovered').length;

/** Its routes may be stale for an hour, so that only the backoff limits the waits, which take no time. */
async function following(more: Partial<Parameters<typeof startFollower>[0]> = {}) {
  const control = await newControl();
  const content = siteContent();
  const bounded = { freshness_class: 'bounded', max_staleness_seconds: 3600 } as const;
  control.publishWhole({ ...content, routes: content.routes.map((route) => ({ ...route, ...bounded })) });
  const waits: number[] = [];
  const sleep = async (waitMs: number) => {
    waits.push(waitMs);
    await nextTurn();
  };
  const options = { stateDirectory: await newDirectory(), url: control.url, sleep, ...more };
  const follower = await startFollower({ ...options, retryFirstMs: 250, retryMaxMs: 30_000 });
  await waitUntil(() => follower.outcomes.includes('accepted 1'));
  waits.length = 0;
  return { control, waits, ...follower };
}

it('waits twice as long after each failed poll, up to the maximum, and begins anew after a success', async () => {
  const { control, events, waits } = await following();
  for (const [round, failures] of [9, 1].entries()) {
    waits.length = 0;
    fail(control, 'poll', failures);
    // Ends the poll that waits.
    control.freshen(NOW_SECONDS + failures);
    await waitUntil(() => recoveries(events) === round + 1);
    const longest = [250, 500, 1000, 2000, 4000, 8000, 16_000, 30_000, 30_000].slice(0, failures);
    const backoffs = waits.slice(0, failures);
    // Jitter removes at most half.
    for (const [index, mostMs] of longest.entries()) {
      expect(backoffs[index]).toBeGreaterThanOrEqual(mostMs / 2);
      expect(backoffs[index]).toBeLessThanOrEqual(mostMs);
    }
  }
  expect(events.filter(([event]) => event === 'failed' || event === 'recovered')).toEqual([
    ['failed', 'control_unavailable'],
    ['recovered'],
    ['failed', 'control_unavailable'],
    ['recovered'],
  ]);
});

it('lets Control hold a poll only while it has all of the last answer, so that a failure delays nothing', async () => {
  const { control, outcomes } = await following();
  await waitUntil(() => control.polls.at(-1)?.wait_seconds === 30);
  fail(control, 'poll', 1);
  control.freshen(NOW_SECONDS + 1);
  await waitUntil(() => outcomes.includes('poll failed') && outcomes.at(-1) === 'poll changed');
  await waitUntil(() => control.polls.at(-1)?.wait_seconds === 30);
  const [first, ...others] = control.polls.map(({ wait_seconds: waitSeconds }) => waitSeconds);
  expect([first, others]).toEqual([0, [30, 0, 30]]);
});

it('knows when Control last answered, which an error is not', async () => {
  const clock = { seconds: NOW_SECONDS };
  const { control, events, refresher, outcomes } = await following({ nowSeconds: () => clock.seconds });
  clock.seconds += 7;
  fail(control, 'poll', 1);
  control.failNext('poll', { kind: 'body', body: 'x' });
  control.freshen(NOW_SECONDS + 1);
  await waitUntil(() => recoveries(events) === 1 && outcomes.at(-1) === 'poll changed');
  expect(events.filter(([event]) => event === 'failed')).toEqual([
    ['failed', 'control_unavailable'],
    ['failed', 'control_answer_invalid'],
  ]);
  expect(refresher.status()).toMatchObject({ lastContactSeconds: NOW_SECONDS + 7, problem: undefined });
});

it('asks for a whole bundle as if it had nothing when an answer leads nowhere, and reports a Control without one', async () => {
  const { control, events } = await following();
  const { revision } = control.publishDelta({});
  const empty = { auth_site: AUTH_SITE, revision: revision + 1, head: 'A'.repeat(43), steps: [] };
  await waitUntil(() => control.polls.at(-1)?.revision === revision);
  for (let count = 0; count < 2; count++)
    control.failNext('poll', { kind: 'body', body: JSON.stringify(empty) });
  control.freshen(NOW_SECONDS + 1);
  await waitUntil(() => recoveries(events) === 1);
  expect(events.filter(([event]) => event === 'failed')).toEqual([['failed', 'control_answer_invalid']]);
  expect(control.polls.some((poll) => !('revision' in poll) && !('base_revision' in poll))).toBe(true);
});

it('acknowledges the latest revision after an outage, and reports the outage once', async () => {
  let release = () => {};
  const isReleased = new Promise<void>((resolve) => {
    release = resolve;
  });
  const { control, loader, outcomes, refresher } = await following({
    // The first wait is that of the acknowledgement.
    sleep: async () => await isReleased,
  });
  outcomes.length = 0;
  fail(control, 'ack', 3);
  control.publishDelta({});
  await waitUntil(() => outcomes.includes('acknowledge control_unavailable'));
  control.publishDelta({});
  await waitUntil(() => loader.position?.revision === 3);
  expect(refresher.status().problem?.error.code).toBe('control_unavailable');
  release();
  await waitUntil(() => outcomes.includes('accepted 3'));
  expect(refresher.status().problem).toBeUndefined();
  expect(outcomes.filter((outcome) => !outcome.startsWith('poll'))).toEqual([
    'acknowledge control_unavailable',
    'acknowledge recovered',
    'accepted 3',
  ]);
  expect(control.acknowledgements.map(({ revision }) => revision)).toEqual([1, 3]);
});

it('fetches a newer base again after a failure, when Control offers it again', async () => {
  const { control, events, outcomes, waits } = await following();
  control.failNext('file', UNAVAILABLE);
  control.publishDelta({ clients_put: Array.from({ length: 40 }, (_, index) => clientNamed(`c${index}`)) });
  control.publishLinked(siteContent());
  await waitUntil(() => events.some(([event]) => event === 'failed'));
  expect(waits).toContainEqual(expect.any(Number));
  await waitUntil(() => outcomes.includes('accepted 3'));
  control.publishDelta({});
  await waitUntil(() => events.some(([event]) => event === 'rebased'));
  const background = events.filter(([event]) => ['failed', 'recovered', 'rebased'].includes(String(event)));
  expect(background).toEqual([['failed', 'control_unavailable'], ['recovered'], ['rebased', 3]]);
});

it('acknowledges what all workers have loaded, and names those that are late', async () => {
  const { control, loader, outcomes, refresher } = await following({ lateAfterMs: 1 });
  outcomes.length = 0;
  refresher.workers.started(7);
  control.publishDelta({});
  await waitUntil(() => outcomes.includes('late 2: 7'));
  expect(refresher.status().late).toEqual({ revision: 2, workers: [7] });
  expect(control.acknowledgements.map(({ revision }) => revision)).toEqual([1]);
  if (loader.position !== undefined) refresher.workers.loaded(7, loader.position);
  await waitUntil(() => outcomes.includes('accepted 2'));
  expect(refresher.status().late).toBeUndefined();
});

it('asks after a restart for what follows its stored bundle, and fetches nothing again', async () => {
  const stateDirectory = await newDirectory();
  const { control, stop } = await following({ stateDirectory });
  control.publishDelta({});
  await waitUntil(() => control.acknowledgements.some(({ revision }) => revision === 2));
  await stop();
  const before = control.polls.length;
  const again = await startFollower({ stateDirectory, url: control.url });
  await waitUntil(() => again.outcomes.includes('poll changed'));
  const position = { revision: 2, head: control.position.head, base_revision: 1, wait_seconds: 0 };
  expect(control.polls[before]).toEqual(position);
  expect(again.events.map(([event, revision]) => [event, revision])).toEqual([['loaded', 2]]);
  expect(control.filesSent).toEqual(['bundle.jws']);
});

it('does not apply an answer to a question that its own directory has made obsolete', async () => {
  const directory = await newDirectory();
  const { control, loader, events } = await following({ directory });
  await waitUntil(() => control.polls.at(-1)?.wait_seconds === 30);
  await putBundle(directory, { ...siteContent(), revision: 7 }, keys.bundle);
  await loader.reload();
  control.publishDelta({});
  await waitUntil(() => control.polls.at(-1)?.revision === 7);
  await waitUntil(() => control.acknowledgements.some(({ outcome }) => outcome === 'refused'));
  expect(events.filter(([event]) => event === 'refused').map(([, code]) => code)).not.toContain(
    'chain_broken',
  );
  expect(loader.position?.revision).toBe(7);
});

it('tells Control at its end that it decides no more, unless Control never answered', async () => {
  const stateDirectory = await newDirectory();
  const { control, events, outcomes, stop } = await following({ stateDirectory });
  await waitUntil(() => control.polls.at(-1)?.wait_seconds === 30);
  await stop();
  // The poll that it ends itself is no failure of Control.
  expect([events.some(([event]) => event === 'failed'), outcomes.includes('poll failed')]).toEqual([
    false,
    false,
  ]);
  const accepted = { ...control.position, outcome: 'accepted' };
  expect(control.acknowledgements).toMatchObject([accepted, accepted]);
  control.failNext('poll', UNAVAILABLE);
  const untilAborted = (_: number, signal: AbortSignal) =>
    new Promise<void>((resolve) => signal.addEventListener('abort', () => resolve()));
  const again = await startFollower({ stateDirectory, url: control.url, sleep: untilAborted });
  await waitUntil(() => again.outcomes.includes('accepted 1') && again.outcomes.includes('poll failed'));
  await again.stop();
  expect(control.acknowledgements).toHaveLength(3);
});
