/** A worker follows what its primary persists, and verifies it again: the primary here follows a fake Control. */
import { appendFile, readFile, readlink, rename, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { expect, it } from '@jest/globals';
import type { BundleLoaderOptions } from '../../../src/verifier/loading/bundle-loader.ts';
import { PrimaryMark } from '../../../src/verifier/loading/state/primary-mark.ts';
import { StateFollower } from '../../../src/verifier/loading/state-follower.ts';
import { newDirectory } from '../../support/bundle/bundle-directory.ts';
import { clientNamed, keyNamed } from '../../support/bundle/deltas.ts';
import { AUTH_SITE, NOW_SECONDS, newSigningKey } from '../../support/fixtures/bundle-content.ts';
import { waitUntil } from '../../support/wait.ts';
import { closeAfterTest, newTestLoader } from './loader-fixture.ts';
import { keys, newControl, siteContent, startFollower } from './refresh-fixture.ts';

const { jwk } = newSigningKey().publicKey;

async function newPrimary() {
  const control = await newControl();
  control.publishWhole(siteContent());
  const stateDirectory = await newDirectory();
  const { stop } = await startFollower({ stateDirectory, url: control.url });
  const reaches = (revision: number) =>
    waitUntil(() => control.acknowledgements.some((ack) => ack.revision === revision));
  await reaches(1);
  return { control, stateDirectory, reaches, stop };
}

/** It looks only when the test says so. */
function newWorker(stateDirectory: string, more: Partial<BundleLoaderOptions> = {}) {
  const mark = new PrimaryMark({ stateDirectory, authSite: AUTH_SITE });
  const { loader, events } = newTestLoader({ signer: keys.bundle, mark, ...more });
  const follower = new StateFollower(stateDirectory, loader);
  closeAfterTest(() => follower.close());
  return { loader, events, follower };
}

it('loads the base, then only the steps and the statement that are new', async () => {
  const { control, reaches, stateDirectory } = await newPrimary();
  const { events, follower, loader } = newWorker(stateDirectory);
  await follower.look();
  control.publishDelta({ keys_put: [keyNamed('dk_1', 'billing', jwk)] });
  await reaches(2);
  await follower.look();
  await follower.look();
  control.publishDelta({ clients_put: [clientNamed('reporting')] });
  control.publishDelta({ keys_removed: ['dk_1'] });
  await reaches(4);
  await follower.look();
  control.freshen(NOW_SECONDS + 4);
  await waitUntil(async () => {
    await follower.look();
    return loader.snapshot?.freshAsOfSeconds === NOW_SECONDS + 4;
  });
  await follower.look();
  expect(events).toEqual([
    ['loaded', 1, 'control'],
    ['advanced', 2, 'delta'],
    ['advanced', 4, 'delta', 'delta'],
    ['freshened', NOW_SECONDS + 4],
  ]);
  expect(loader.position).toEqual(control.position);
});

it('takes a base with its steps at its start', async () => {
  const { control, reaches, stateDirectory, stop } = await newPrimary();
  control.publishDelta({ keys_put: [keyNamed('dk_1', 'billing', jwk)] });
  await reaches(2);
  await stop();
  const { follower, loader } = newWorker(stateDirectory);
  await follower.start();
  expect(loader.snapshot?.keys.get('dk_1')).toMatchObject({ status: 'active' });
});

it('takes the base that replaces another, with the steps after it, without being asked', async () => {
  const { control, reaches, stateDirectory } = await newPrimary();
  const { events, follower, loader } = newWorker(stateDirectory);
  await follower.start();
  control.publishDelta({ keys_put: [keyNamed('dk_1', 'billing', jwk)] });
  await reaches(2);
  await waitUntil(() => loader.position?.revision === 2);
  control.publishWhole(siteContent({ skew_seconds: 9 }));
  await reaches(3);
  await waitUntil(() => loader.position?.revision === 3);
  control.publishDelta({ clients_put: [clientNamed('reporting')] });
  await waitUntil(() => loader.position?.revision === 4);
  expect(loader.snapshot?.skewSeconds).toBe(9);
  expect(events.map(([event, revision]) => [event, revision])).toEqual([
    ['loaded', 1],
    ['advanced', 2],
    ['loaded', 3],
    ['advanced', 4],
  ]);
});

it('reads a statement once, and again when its file changes', async () => {
  const { control, stateDirectory } = await newPrimary();
  const { follower, loader } = newWorker(stateDirectory);
  const offered: unknown[] = [];
  const offer = loader.offerStatement.bind(loader);
  loader.offerStatement = async (bytes) => {
    await offer(bytes);
    offered.push(loader.snapshot?.freshAsOfSeconds);
  };
  await follower.look();
  expect(offered).toEqual([]);
  for (const asOfSeconds of [NOW_SECONDS + 4, NOW_SECONDS + 5]) {
    control.freshen(asOfSeconds);
    await waitUntil(async () => {
      await follower.look();
      return loader.snapshot?.freshAsOfSeconds === asOfSeconds;
    });
    await follower.look();
  }
  expect(offered).toEqual([NOW_SECONDS + 4, NOW_SECONDS + 5]);
});

it('verifies a rejected base again after longer and longer pauses, until it is accepted', async () => {
  const { stateDirectory } = await newPrimary();
  const attemptsMs: number[] = [];
  const { events, follower, loader } = newWorker(stateDirectory, {
    acceptSnapshot() {
      attemptsMs.push(performance.now());
      return attemptsMs.length < 4 ? 'not yet' : undefined;
    },
  });
  await waitUntil(async () => {
    await follower.look();
    return loader.position?.revision === 1;
  });
  const pausesMs = attemptsMs.slice(1).map((atMs, index) => atMs - (attemptsMs[index] ?? 0));
  for (const [index, leastMs] of [100, 200, 400].entries())
    expect(pausesMs[index]).toBeGreaterThanOrEqual(leastMs);
  expect(events).toEqual([
    ['refused', 'refused_by_policy', 'control'],
    ['loaded', 1, 'control'],
  ]);
});

it('keeps its bundle while the primary has a step of another, reports it once, and goes on when it is replaced', async () => {
  const { control, reaches, stateDirectory, stop } = await newPrimary();
  const { events, follower, loader } = newWorker(stateDirectory);
  await follower.look();
  control.publishDelta({ keys_put: [keyNamed('dk_1', 'billing', jwk)] });
  await reaches(2);
  await stop();
  const log = join(stateDirectory, await readlink(join(stateDirectory, 'current')), 'steps.jsonl');
  const step = await readFile(log, 'utf8');
  await writeFile(log, step.replace(/"signature":"./, '"signature":"_'));
  await waitUntil(async () => {
    await follower.look();
    return events.some(([event]) => event === 'refused');
  });
  expect(loader.position?.revision).toBe(1);
  await writeFile(log, step);
  await waitUntil(async () => {
    await follower.look();
    return loader.position?.revision === 2;
  });
  expect(events.filter(([event]) => event === 'refused')).toEqual([
    ['refused', 'signature_invalid', 'control'],
  ]);
});

it('loads nothing while the primary has stored nothing, and then what it stores', async () => {
  const { stateDirectory, stop } = await newPrimary();
  await stop();
  const link = join(stateDirectory, 'current');
  await rename(link, `${link}.away`);
  const { events, follower } = newWorker(stateDirectory);
  await follower.look();
  expect(events).toEqual([]);
  await rename(`${link}.away`, link);
  await follower.look();
  expect(events).toEqual([['loaded', 1, 'control']]);
});

it('waits for the end of a line that the primary is writing', async () => {
  const { control, reaches, stateDirectory, stop } = await newPrimary();
  const { events, follower } = newWorker(stateDirectory);
  await follower.look();
  control.publishDelta({ keys_put: [keyNamed('dk_1', 'billing', jwk)] });
  await reaches(2);
  await stop();
  const log = join(stateDirectory, await readlink(join(stateDirectory, 'current')), 'steps.jsonl');
  await appendFile(log, '{"half');
  await follower.look();
  expect(events).toEqual([
    ['loaded', 1, 'control'],
    ['advanced', 2, 'delta'],
  ]);
});

it('keeps what it has when the state directory is gone', async () => {
  const { stateDirectory, stop } = await newPrimary();
  const { follower, loader } = newWorker(stateDirectory);
  await follower.look();
  await stop();
  await rm(stateDirectory, { recursive: true });
  await expect(follower.look()).resolves.toBeUndefined();
  expect(loader.snapshot?.revision).toBe(1);
});
