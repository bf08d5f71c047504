/** What the embedded store knows after a restart: that nothing consumed before it is consumed again. */
import { readFileSync } from 'node:fs';
import { mkdir, mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import fc from 'fast-check';
import { createMemoryReplayStore } from '../../../src/verifier/replay/memory.ts';
import {
  FENCE_FILE,
  openPersistedFence,
  type PersistedFence,
} from '../../../src/verifier/replay/persisted-fence.ts';
import type { ReplayClaim, ReplayOutcome, ReplayStore } from '../../../src/verifier/replay/store.ts';
import { CONSUMED, REPLAYED, UNAVAILABLE } from '../../../src/verifier/replay/store.ts';
import { FakeKeptFence, type FenceDisk } from '../../support/fakes/persisted-fence.ts';
import { waitUntil } from '../../support/wait.ts';
import { claimAt, randomIdentifier } from './claims.ts';

const NOW_SECONDS = 1_800_000_000;

let directory = '';
const open: (PersistedFence | ReplayStore)[] = [];
beforeEach(async () => {
  directory = await mkdtemp(join(tmpdir(), 'proofgate-fence-'));
});
afterEach(async () => {
  for (const one of open.splice(0)) await one.close(0);
  await rm(directory, { recursive: true, force: true });
});

async function openFence(): Promise<PersistedFence> {
  const fence = await openPersistedFence(directory);
  open.push(fence);
  return fence;
}

function onDisk(): number {
  return JSON.parse(readFileSync(join(directory, FENCE_FILE), 'utf8')).fenced_through_seconds;
}

describe('a kept fence', () => {
  it('is at nothing before the first run, and survives', async () => {
    const fence = await openFence();
    expect([fence.startsThroughSeconds, fence.throughSeconds, fence.problem]).toEqual([0, 0, undefined]);
    fence.keep(NOW_SECONDS);
    expect(fence.throughSeconds).toBe(0);
    await waitUntil(() => fence.throughSeconds === NOW_SECONDS);
    const again = await openFence();
    expect([again.startsThroughSeconds, again.throughSeconds]).toEqual([NOW_SECONDS, NOW_SECONDS]);
    expect(await readdir(directory)).toEqual([FENCE_FILE]);
  });

  it('is never above what is on the disk, up and down', async () => {
    const fence = await openFence();
    for (let round = 0; round < 40; round++) {
      fence.keep(NOW_SECONDS + (round % 7) * 100 - round);
      for (let look = 0; look < 5; look++) {
        if (fence.throughSeconds > 0) expect(onDisk()).toBeGreaterThanOrEqual(fence.throughSeconds);
        await new Promise((resolve) => setImmediate(resolve));
      }
    }
    await fence.close(NOW_SECONDS);
    expect([onDisk(), fence.throughSeconds]).toEqual([NOW_SECONDS, NOW_SECONDS]);
  });

  it('does not fall below where it began: runs before that consumed up to there', async () => {
    (await openFence()).keep(NOW_SECONDS);
    await waitUntil(() => readdirSyncHasFence());
    const fence = await openFence();
    await fence.close(5);
    expect(onDisk()).toBe(NOW_SECONDS);
  });

  function readdirSyncHasFence(): boolean {
    try {
      return onDisk() === NOW_SECONDS;
    } catch {
      return false;
    }
  }

  it('that cannot be written does not rise, says so, and rises when it can', async () => {
    const fence = await openFence();
    await rm(directory, { recursive: true });
    fence.keep(NOW_SECONDS);
    await waitUntil(() => fence.problem !== undefined);
    expect([fence.throughSeconds, fence.problem]).toEqual([0, expect.stringContaining(FENCE_FILE)]);
    await mkdir(directory);
    fence.keep(NOW_SECONDS);
    await waitUntil(() => fence.problem === undefined && fence.throughSeconds === NOW_SECONDS);
  });

  it.each([
    ['empty', ''],
    ['cut short', '{"format":"proofgate.replay-fence/v1","fenced_thr'],
    ['of another format', JSON.stringify({ format: 'x', fenced_through_seconds: 1 })],
    ['no number', JSON.stringify({ format: 'proofgate.replay-fence/v1', fenced_through_seconds: '1' })],
    ['negative', JSON.stringify({ format: 'proofgate.replay-fence/v1', fenced_through_seconds: -1 })],
    ['too large', ' '.repeat(5000)],
  ])('that cannot be read lets nothing be consumed, and is left as it is: %s', async (_what, text) => {
    await writeFile(join(directory, FENCE_FILE), text);
    const fence = await openFence();
    const store = createMemoryReplayStore({ persistedFence: fence, clockSeconds: () => NOW_SECONDS });
    open.push(store);
    expect(store.consume(claimAt(NOW_SECONDS, { issuedAtSeconds: NOW_SECONDS + 1e9 }))).toEqual(
      UNAVAILABLE.fenced,
    );
    expect(store.health()).toMatchObject({ ready: false, problem: expect.stringContaining(FENCE_FILE) });
    await store.close();
    expect(await readFile(join(directory, FENCE_FILE), 'utf8')).toBe(text);
  });
});

describe('a restart', () => {
  const clock = { seconds: NOW_SECONDS };
  beforeEach(() => {
    clock.seconds = NOW_SECONDS;
  });

  function startStore(disk: FenceDisk, skewSeconds: number) {
    const fence = new FakeKeptFence(disk);
    const store = createMemoryReplayStore({
      persistedFence: fence,
      clockSeconds: () => clock.seconds,
      expectedSkewSeconds: () => skewSeconds,
    });
    open.push(store);
    fence.settle();
    const consume = (claim: ReplayClaim): ReplayOutcome => {
      const outcome = store.consume({ ...claim, nowSeconds: clock.seconds, skewSeconds });
      if (outcome instanceof Promise) throw new Error('the embedded store answers at once');
      return outcome;
    };
    return { store, fence, consume };
  }

  const proofIssuedAt = (issuedAtSeconds: number) =>
    claimAt(issuedAtSeconds, { issuedAtSeconds, expiresAtSeconds: issuedAtSeconds + 300 });

  it.each([
    ['after a crash', 'crash', 5, 5, 0],
    ['after a crash, with a lowered skew', 'crash', 60, 1, 0],
    ['after a crash, with the clock set back', 'crash', 5, 5, -100],
    ['after a crash, with both', 'crash', 60, 1, -100],
    ['in good order, with a lowered skew', 'close', 60, 1, 0],
    ['in good order, with the clock set back', 'close', 5, 5, -100],
    ['in good order, with both', 'close', 60, 1, -100],
  ])('%s consumes nothing again', async (_what, end, skewBefore, skewAfter, jumpSeconds) => {
    const disk = { throughSeconds: 0 };
    const before = startStore(disk, skewBefore);
    clock.seconds += 2 * skewBefore + 1;
    before.store.health();
    before.fence.keep(clock.seconds + skewBefore + 8);
    before.fence.settle();
    // The furthest issue time that a proof may have.
    const proof = proofIssuedAt(clock.seconds + skewBefore);
    expect(before.consume(proof)).toEqual(CONSUMED);
    expect(before.consume(proof)).toEqual(REPLAYED);
    if (end === 'close') await before.store.close();
    clock.seconds += jumpSeconds;
    const after = startStore(disk, skewAfter);
    for (let second = 0; second <= 400; second += 5) {
      clock.seconds += 5;
      expect(after.consume(proof)).toEqual(UNAVAILABLE.fenced);
    }
  });

  it('in good order is fenced for no longer than a first start; after a crash for at most 8 s more', async () => {
    const disk = { throughSeconds: 0 };
    const first = startStore(disk, 5);
    clock.seconds += 100;
    first.fence.keep(clock.seconds + 13);
    first.fence.settle();
    expect(first.consume(proofIssuedAt(clock.seconds))).toEqual(CONSUMED);
    const crashed = startStore({ ...disk }, 5);
    expect(crashed.store.health()).toMatchObject({ ready: false, fence: { why: 'start', secondsLeft: 14 } });
    await first.store.close();
    const closed = startStore(disk, 5);
    expect(closed.store.health()).toMatchObject({ ready: false, fence: { why: 'start', secondsLeft: 6 } });
  });

  it('with the clock far back is fenced until it is where it was, and says why', () => {
    const { store } = startStore({ throughSeconds: NOW_SECONDS + 3600 }, 5);
    expect(store.health()).toMatchObject({ ready: false, fence: { why: 'clock', secondsLeft: 3601 } });
  });

  it('takes back what was only reserved while the clock was ahead', () => {
    const disk = { throughSeconds: 0 };
    const { consume, fence } = startStore(disk, 5);
    clock.seconds += 100_000;
    expect(consume(proofIssuedAt(clock.seconds))).toEqual(UNAVAILABLE.store);
    fence.settle();
    expect(disk.throughSeconds).toBeGreaterThan(NOW_SECONDS + 100_000);
    clock.seconds = NOW_SECONDS + 20;
    // More than what is covered: the store looks at its reserve again.
    fence.keep(NOW_SECONDS);
    expect(consume(proofIssuedAt(clock.seconds))).toEqual(UNAVAILABLE.store);
    fence.settle();
    expect(disk.throughSeconds).toBeLessThan(NOW_SECONDS + 60);
    expect(consume(proofIssuedAt(clock.seconds))).toEqual(CONSUMED);
  });

  it('refuses what a crash would forget, until it is on the disk', () => {
    const disk = { throughSeconds: 0 };
    const { consume, fence, store } = startStore(disk, 5);
    clock.seconds += 60;
    const proof = proofIssuedAt(clock.seconds);
    expect(consume(proof)).toEqual(UNAVAILABLE.store);
    fence.problem = 'replay-fence.json: cannot be written: ENOSPC';
    expect(store.health()).toEqual({ ready: false, problem: fence.problem });
    fence.problem = undefined;
    fence.settle();
    expect(store.health()).toEqual({ ready: true });
    expect(consume(proof)).toEqual(CONSUMED);
  });
});

describe('one issuer and subject', () => {
  it('may have three quarters of the records, with whatever keys, and again once some are forgotten', () => {
    const store = createMemoryReplayStore({ maxRecords: 100, clockSeconds: () => NOW_SECONDS });
    open.push(store);
    const subjectHash = randomIdentifier();
    const now = NOW_SECONDS + 10;
    const times = (nowSeconds: number) => ({
      issuedAtSeconds: nowSeconds,
      expiresAtSeconds: nowSeconds + 60,
    });
    const consume = (nowSeconds: number) =>
      store.consume(claimAt(nowSeconds, { ...times(nowSeconds), subjectHash }));
    for (let count = 0; count < 75; count++) expect(consume(now)).toEqual(CONSUMED);
    expect(consume(now)).toEqual(UNAVAILABLE.quota);
    for (let count = 0; count < 25; count++) {
      expect(store.consume(claimAt(now, times(now)))).toEqual(CONSUMED);
    }
    expect(store.consume(claimAt(now, times(now)))).toEqual(UNAVAILABLE.store);
    expect(consume(now + 100)).toEqual(CONSUMED);
  });
});

describe('one holder', () => {
  it('may have half of the records, and again once some are forgotten', () => {
    const store = createMemoryReplayStore({ maxRecords: 100, clockSeconds: () => NOW_SECONDS });
    open.push(store);
    const holderThumbprint = randomIdentifier();
    const now = NOW_SECONDS + 10;
    const claim = (nowSeconds: number, holder: string) =>
      claimAt(nowSeconds, {
        holderThumbprint: holder,
        issuedAtSeconds: nowSeconds,
        expiresAtSeconds: nowSeconds + 60,
      });
    for (let count = 0; count < 50; count++)
      expect(store.consume(claim(now, holderThumbprint))).toEqual(CONSUMED);
    expect(store.consume(claim(now, holderThumbprint))).toEqual(UNAVAILABLE.quota);
    for (let count = 0; count < 50; count++)
      expect(store.consume(claim(now, randomIdentifier()))).toEqual(CONSUMED);
    expect(store.consume(claim(now, randomIdentifier()))).toEqual(UNAVAILABLE.store);
    const later = now + 100;
    expect(store.consume(claim(later, holderThumbprint))).toEqual(CONSUMED);
  });
});

describe('whatever clock, skew and restarts do', () => {
  const START = 1_000_000;
  const step = fc.oneof(
    {
      weight: 8,
      arbitrary: fc.record({
        kind: fc.constant('claim' as const),
        proof: fc.nat({ max: 5 }),
        issuedIn: fc.integer({ min: -60, max: 60 }),
        livesSeconds: fc.constantFrom(1, 10, 60, 300),
      }),
    },
    {
      weight: 4,
      arbitrary: fc.record({
        kind: fc.constant('clock' as const),
        bySeconds: fc.oneof(
          { weight: 3, arbitrary: fc.integer({ min: 0, max: 20 }) },
          { weight: 2, arbitrary: fc.integer({ min: -400, max: 400 }) },
          { weight: 1, arbitrary: fc.constantFrom(-5000, 5000, 40_000) },
        ),
      }),
    },
    {
      weight: 2,
      arbitrary: fc.record({ kind: fc.constant('skew' as const), seconds: fc.constantFrom(1, 5, 60) }),
    },
    { weight: 3, arbitrary: fc.record({ kind: fc.constant('written' as const) }) },
    {
      weight: 1,
      arbitrary: fc.record({
        kind: fc.constant('restart' as const),
        how: fc.constantFrom('close', 'crash', 'landed'),
      }),
    },
    {
      weight: 1,
      arbitrary: fc.record({
        kind: fc.constant('excursion' as const),
        bySeconds: fc.constantFrom(400, 5000),
      }),
    },
    {
      weight: 1,
      arbitrary: fc.record({ kind: fc.constant('fill' as const), count: fc.constantFrom(1, 30, 300) }),
    },
  );

  /** The oracle remembers everything for ever. */
  class World {
    readonly disk: FenceDisk = { throughSeconds: 0 };
    readonly consumed = new Set<string>();
    readonly proofs = new Map<number, ReplayClaim>();
    now = START;
    skewSeconds = 5;
    fence = new FakeKeptFence(this.disk);
    store = this.newStore();

    newStore(): ReplayStore {
      return createMemoryReplayStore({
        maxRecords: 48,
        persistedFence: this.fence,
        clockSeconds: () => this.now,
        expectedSkewSeconds: () => this.skewSeconds,
      });
    }

    async restart(how: string): Promise<void> {
      if (how === 'landed') this.fence.land();
      const old = this.store;
      const survived = this.disk.throughSeconds;
      await old.close();
      // A crashed process did not write its final state.
      if (how !== 'close') this.disk.throughSeconds = survived;
      this.fence = new FakeKeptFence(this.disk);
      this.store = this.newStore();
    }

    /** The clock is ahead for a while, long enough for everything to be forgotten. */
    goAhead(bySeconds: number): void {
      this.now += bySeconds;
      for (let count = 0; count < 200; count++) {
        this.store.consume(claimAt(this.now, { skewSeconds: this.skewSeconds }));
      }
      this.now -= bySeconds;
    }

    claim(number: number, issuedIn: number, livesSeconds: number): void {
      const issuedAtSeconds = this.now + issuedIn;
      const known =
        this.proofs.get(number) ??
        claimAt(this.now, { issuedAtSeconds, expiresAtSeconds: issuedAtSeconds + livesSeconds });
      this.proofs.set(number, known);
      // The store never gets a proof with invalid times, because step 5 comes before.
      const { expiresAtSeconds, identifier, issuedAtSeconds: issued } = known;
      const isValid = issued - this.skewSeconds <= this.now && this.now < expiresAtSeconds + this.skewSeconds;
      if (!isValid) {
        if (!this.consumed.has(identifier)) this.proofs.delete(number);
        return;
      }
      const outcome = this.store.consume({ ...known, nowSeconds: this.now, skewSeconds: this.skewSeconds });
      if (outcome instanceof Promise || outcome.kind !== 'consumed') return;
      expect(this.consumed.has(identifier)).toBe(false);
      this.consumed.add(identifier);
    }
  }

  it('nothing is consumed twice', async () => {
    let consumedInAll = 0;
    await fc.assert(
      fc.asyncProperty(fc.array(step, { minLength: 20, maxLength: 120 }), async (steps) => {
        const world = new World();
        world.fence.settle();
        world.now += 70;
        for (const one of steps) {
          if (one.kind === 'claim') world.claim(one.proof, one.issuedIn, one.livesSeconds);
          else if (one.kind === 'clock') world.now += one.bySeconds;
          else if (one.kind === 'skew') world.skewSeconds = one.seconds;
          else if (one.kind === 'written') world.fence.settle();
          else if (one.kind === 'restart') await world.restart(one.how);
          else if (one.kind === 'excursion') world.goAhead(one.bySeconds);
          else for (let count = 0; count < one.count; count++) world.claim(100 + count, 0, 1);
        }
        consumedInAll += world.consumed.size;
        await world.store.close();
      }),
      { numRuns: 600 },
    );
    // A run that consumes nothing would prove nothing.
    expect(consumedInAll).toBeGreaterThan(1000);
  });
});
