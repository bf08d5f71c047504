/** What a primary acknowledges to Control: never more than one of its running workers decides by. */
import { expect, it } from '@jest/globals';
import type { ChainPosition } from '../../../src/bundle/format/chain.ts';
import { createLogger } from '../../../src/process/telemetry/logger.ts';
import { formatTime } from '../../../src/protocol/rfc3339.ts';
import { openBundle } from '../../../src/verifier/assembly/open-bundle.ts';
import { CommonPosition, type LateWorkers } from '../../../src/verifier/loading/refresh/common-position.ts';
import { FileMark } from '../../../src/verifier/loading/state/high-water-mark.ts';
import { createVerifierMetrics } from '../../../src/verifier/verifier-metrics.ts';
import { newDirectory } from '../../support/bundle/bundle-directory.ts';
import { startFakeControl } from '../../support/fakes/control-distribution.ts';
import { AUTH_SITE } from '../../support/fixtures/bundle-content.ts';
import { wallClockSeconds } from '../../support/fixtures/enrolled-site.ts';
import { Random } from '../../support/random.ts';
import { waitUntil } from '../../support/wait.ts';
import { closeAfterTest } from './loader-fixture.ts';
import { keys, newControl, siteContent, startFollower } from './refresh-fixture.ts';

const at = (revision: number, head = `head-${revision}`): ChainPosition => ({ revision, head });

function newCommon(lateAfterMs?: number) {
  const raised: number[] = [];
  const late: LateWorkers[] = [];
  const common = new CommonPosition({
    onRaised: ({ revision }) => raised.push(revision),
    onLate: (workers) => late.push(workers),
    lateAfterMs,
  });
  return { common, late, raised };
}

it('without workers it is what the process itself holds', () => {
  const { common, raised } = newCommon();
  for (const revision of [1, 2, 5]) common.own(at(revision));
  expect(raised).toEqual([1, 2, 5]);
});

it('waits for the last worker, and skips what none holds alone any more', () => {
  const { common, raised } = newCommon();
  common.own(at(1));
  common.started(1);
  common.started(2);
  for (const revision of [2, 3]) common.own(at(revision));
  common.loaded(1, at(3));
  expect(raised).toEqual([1]);
  common.loaded(2, at(2));
  expect(raised).toEqual([1, 2]);
  common.loaded(2, at(3));
  expect(raised).toEqual([1, 2, 3]);
});

it('a worker that started before there was any mark has nothing older than the first bundle', () => {
  const { common, raised } = newCommon();
  common.started(1);
  common.own(at(4));
  common.own(at(5));
  expect([raised, common.orOlder(at(5))]).toEqual([[4], at(4)]);
  common.loaded(1, at(5));
  expect([raised, common.orOlder(at(5))]).toEqual([[4, 5], at(5)]);
});

it('a worker that started beside an earlier mark may have that, until it says more or ends', () => {
  const { common, raised } = newCommon();
  common.begin(at(2));
  common.started(1);
  common.own(at(4));
  expect([raised, common.orOlder(at(4))]).toEqual([[2], at(2)]);
  common.ended(1);
  common.started(1);
  expect([raised, common.orOlder(at(4))]).toEqual([[2, 4], at(4)]);
});

it('a worker that ends no longer counts, and the one after it starts from what the primary holds', () => {
  const { common, raised } = newCommon();
  common.own(at(1));
  common.started(1);
  common.own(at(2));
  common.ended(1);
  expect(raised).toEqual([1, 2]);
  // A late message of the one that ended.
  common.loaded(1, at(1));
  common.started(1);
  common.own(at(3));
  expect(raised).toEqual([1, 2]);
  common.loaded(1, at(3));
  expect(raised).toEqual([1, 2, 3]);
});

it('a worker that is ahead, or has another content, does not raise it', () => {
  const { common, raised } = newCommon();
  common.own(at(1));
  common.started(1);
  common.loaded(1, at(3));
  expect(raised).toEqual([1]);
  common.own(at(3, 'another'));
  expect(raised).toEqual([1]);
  expect(common.late()).toBeUndefined();
});

it('a worker that stays behind is named once, until all hold it', async () => {
  const { common, late } = newCommon(1);
  common.own(at(1));
  common.started(1);
  common.started(2);
  common.own(at(2));
  common.loaded(1, at(2));
  await waitUntil(() => late.length > 0);
  expect([late, common.late()]).toEqual([[{ revision: 2, workers: [2] }], { revision: 2, workers: [2] }]);
  common.loaded(2, at(2));
  expect(common.late()).toBeUndefined();
});

it('5,000 schedules: whatever is acknowledged, no running worker decides by less', () => {
  const broken: number[] = [];
  let total = 0;
  for (let seed = 1; seed <= 5000; seed++) {
    const random = new Random(seed);
    const next = (below: number) => random.below(below);
    const mark = next(3);
    /** Workers load nothing older. */
    let first = mark === 0 ? undefined : mark;
    let own = mark;
    let acknowledged = 0;
    /** What each worker that runs really decides by, and what it has not said yet. */
    const running = new Map<number, { least: number; holds: number | undefined; unsaid: number[] }>();
    const common = new CommonPosition({
      onRaised: ({ revision }) => {
        acknowledged = revision;
      },
      onLate: () => undefined,
    });
    if (mark > 0) common.begin(at(mark));
    for (let step = 0; step < 40; step++) {
      const number = 1 + next(3);
      const worker = running.get(number);
      const kind = next(5);
      if (kind === 0) {
        own += 1 + next(2);
        first ??= own;
        common.own(at(own));
      } else if (worker === undefined) {
        common.started(number);
        // The mark, as the worker reads it.
        running.set(number, { least: own, holds: undefined, unsaid: [] });
      } else if (kind === 1) {
        common.ended(number);
        running.delete(number);
      } else if (kind === 2 && worker.unsaid.length > 0) {
        common.loaded(number, at(worker.unsaid.shift() ?? 0));
      } else if (own > 0) {
        const lowest = Math.max(first ?? 0, worker.holds ?? worker.least);
        worker.holds = lowest + next(own - lowest + 1);
        worker.unsaid.push(worker.holds);
      }
      const told = common.orOlder(at(own)).revision;
      const older = [...running.values()].filter(
        ({ holds }) => holds !== undefined && holds < Math.max(acknowledged, told),
      );
      if (older.length > 0) broken.push(seed);
    }
    common.close();
    total += acknowledged;
  }
  expect(broken).toEqual([]);
  expect(total).toBeGreaterThan(5000);
});

it('polls tell what the last worker holds, and what is known by then is not applied again', async () => {
  const control = await newControl();
  control.publishWhole(siteContent());
  const { loader, refresher } = await startFollower({
    stateDirectory: await newDirectory(),
    url: control.url,
  });
  await waitUntil(() => loader.position?.revision === 1);
  refresher.workers.started(1);
  for (const revision of [2, 3, 4]) {
    control.publishDelta({});
    await waitUntil(() => loader.position?.revision === revision);
  }
  refresher.workers.loaded(1, loader.position ?? at(0));
  control.publishDelta({});
  await waitUntil(() => control.polls.at(-1)?.revision === 4);
  expect(new Set(control.polls.map(({ revision }) => revision))).toEqual(new Set([undefined, 1, 4]));
  expect(control.filesSent).toEqual(['bundle.jws']);
  expect(control.acknowledgements.filter(({ outcome }) => outcome === 'refused')).toEqual([]);
});

it('Control hears of a revision when all workers hold it, and of a rejection at once', async () => {
  const control = await newControl();
  control.publishWhole(siteContent());
  const { loader, refresher } = await startFollower({
    stateDirectory: await newDirectory(),
    url: control.url,
  });
  const heard = () => control.acknowledgements.map(({ outcome, revision }) => `${outcome} ${revision}`);
  await waitUntil(() => heard().includes('accepted 1'));
  refresher.workers.started(1);
  control.publishDelta({});
  await waitUntil(() => loader.position?.revision === 2);
  control.publishWhole(siteContent({ routes: [] }));
  await waitUntil(() => heard().includes('refused 3'));
  expect(heard()).not.toContain('accepted 2');
  refresher.workers.loaded(1, loader.position ?? at(0));
  await waitUntil(() => heard().includes('accepted 2'));
});

it('a primary that could not load what its mark names acknowledges no more for a worker that may have', async () => {
  const signer = keys.bundle;
  const control = await startFakeControl({ authSite: AUTH_SITE, signer, nowSeconds: wallClockSeconds });
  closeAfterTest(() => control.close());
  const [issued, expires] = [wallClockSeconds(), wallClockSeconds() + 3600].map(formatTime);
  const current = { single_verifier: true, issued_at: issued ?? '', expires_at: expires ?? '' };
  control.publishWhole(siteContent(current));
  const stateDirectory = await newDirectory();
  await new FileMark({ stateDirectory, authSite: AUTH_SITE }).raise(control.position);
  control.publishDelta({});
  const signers = { keys: [signer.publicKey], threshold: 1 };
  const bundle = await openBundle(
    {
      ...{
        authSite: AUTH_SITE,
        stateDirectory,
        isWorker: false,
        directory: undefined,
        breakGlass: undefined,
      },
      ...{ bundleSigners: signers, freshnessSigners: signers, realtimeStalenessSeconds: 10 },
      control: { url: new URL(control.url), readToken: async () => 'target-token' },
      replay: { kind: 'memory' },
    },
    createLogger('silent'),
    createVerifierMetrics(() => undefined),
    { enforced: async () => undefined, follow: () => undefined },
  );
  closeAfterTest(() => bundle.close());
  await bundle.start();
  bundle.workers?.started(1);
  await waitUntil(() => bundle.loader.position?.revision === 2);
  const acknowledged = () => control.acknowledgements.map(({ revision }) => revision);
  await waitUntil(() => acknowledged().length > 0);
  expect(acknowledged()).toEqual([1]);
  bundle.workers?.loaded(1, control.position);
  await waitUntil(() => acknowledged().includes(2));
});
