/** What the embedded store says of itself, and when it writes its fence ahead. */
import { afterEach, describe, expect, it } from '@jest/globals';
import {
  createMemoryReplayStore,
  type MemoryReplayStoreOptions,
} from '../../../src/verifier/replay/memory.ts';
import type { PersistedFence } from '../../../src/verifier/replay/persisted-fence.ts';
import { CONSUMED, type ReplayStore, UNAVAILABLE } from '../../../src/verifier/replay/store.ts';
import { claimAt, SKEW_SECONDS } from './claims.ts';

const START = 1_800_000_000;
/** How far ahead of the latest proof that may come the fence is written. */
const RESERVE_SECONDS = 8;

let stores: ReplayStore[] = [];
afterEach(async () => {
  for (const store of stores) await store.close();
  stores = [];
});

/** A fence whose writes complete at once or never; it records its requests. */
class ScriptedFence implements PersistedFence {
  startsThroughSeconds = 0;
  throughSeconds = 0;
  problem: string | undefined;
  readonly asked: number[] = [];
  closedWith: number | undefined;
  writes = true;

  keep(throughSeconds: number): void {
    this.asked.push(throughSeconds);
    if (this.writes) this.throughSeconds = throughSeconds;
  }

  async close(throughSeconds: number): Promise<void> {
    this.closedWith = throughSeconds;
  }
}

function open(options: MemoryReplayStoreOptions = {}) {
  const clock = { seconds: START };
  const store = createMemoryReplayStore({
    clockSeconds: () => clock.seconds,
    expectedSkewSeconds: () => SKEW_SECONDS,
    ...options,
  });
  stores.push(store);
  return { store, clock };
}

describe('health', () => {
  it('is not ready once it is closed, and consumes nothing more', async () => {
    const { clock, store } = open();
    clock.seconds += SKEW_SECONDS + 1;
    expect(store.health()).toEqual({ ready: true });
    await store.close();
    expect(store.health()).toMatchObject({ ready: false, problem: expect.stringMatching(/./) });
    expect(await store.consume(claimAt(clock.seconds))).toEqual(UNAVAILABLE.store);
    expect(store.name).toBe('memory');
  });

  it('tells of a fence that a larger skew has raised, to the second', async () => {
    const { clock, store } = open();
    clock.seconds += 100;
    expect(await store.consume(claimAt(clock.seconds))).toEqual(CONSUMED);
    await store.consume(claimAt(clock.seconds, { skewSeconds: 60 }));
    expect(store.health()).toMatchObject({ ready: false, fence: { why: 'skew_raised', secondsLeft: 61 } });
    clock.seconds += 60;
    expect(store.health()).toMatchObject({ fence: { why: 'skew_raised', secondsLeft: 1 } });
    clock.seconds += 1;
    expect(store.health()).toEqual({ ready: true });
  });

  it('tells of records that were forgotten while the clock was ahead', async () => {
    const { clock, store } = open();
    clock.seconds += 100;
    const claim = claimAt(clock.seconds);
    expect(await store.consume(claim)).toEqual(CONSUMED);
    const keptUntil = claim.expiresAtSeconds + 3 * SKEW_SECONDS + 2;
    clock.seconds = keptUntil;
    expect(store.health()).toEqual({ ready: true });
    // Whatever is signed now and lives longest would have been forgotten by the clock that was ahead.
    const lastFenced = keptUntil - 300 - 3 * SKEW_SECONDS - 2;
    clock.seconds = lastFenced;
    expect(store.health()).toMatchObject({ ready: false, fence: { why: 'clock', secondsLeft: 1 } });
    clock.seconds = lastFenced + 1;
    expect(store.health()).toEqual({ ready: true });
  });

  it('says in each case something else', async () => {
    const lines: string[] = [];
    const note = (store: ReplayStore) => {
      const health = store.health();
      if (!health.ready) lines.push(health.problem.replace(/\d+/, 'N'));
    };
    const { clock, store } = open();
    note(store);
    clock.seconds += 100;
    await store.consume(claimAt(clock.seconds));
    await store.consume(claimAt(clock.seconds, { skewSeconds: 60 }));
    note(store);
    await store.close();
    note(store);
    const ahead = new ScriptedFence();
    ahead.startsThroughSeconds = START + 10_000;
    note(open({ persistedFence: ahead }).store);
    const unreadable = new ScriptedFence();
    unreadable.startsThroughSeconds = Number.POSITIVE_INFINITY;
    unreadable.problem = 'the fence cannot be read';
    note(open({ persistedFence: unreadable }).store);
    expect(new Set(lines).size).toBe(5);
  });

  it('warns of a fence that cannot be written while what is reserved serves, and is not ready after it', () => {
    const fence = new ScriptedFence();
    const { clock, store } = open({ persistedFence: fence });
    clock.seconds += SKEW_SECONDS + 1;
    fence.writes = false;
    fence.problem = 'the disk is full';
    expect(store.health()).toEqual({ ready: true, warning: 'the disk is full' });
    clock.seconds = fence.throughSeconds;
    expect(store.health()).toEqual({ ready: true, warning: 'the disk is full' });
    clock.seconds += 1;
    expect(store.health()).toEqual({ ready: false, problem: 'the disk is full' });
  });

  it('tells a fence of the runs before from one of another clock', () => {
    const why = (ahead: number) => {
      const fence = new ScriptedFence();
      fence.startsThroughSeconds = START + SKEW_SECONDS + ahead;
      return open({ persistedFence: fence }).store.health().fence?.why;
    };
    expect([why(1), why(60), why(61)]).toEqual(['start', 'start', 'clock']);
  });
});

describe('the fence that is kept', () => {
  it('is written ahead at the start, by the skew of the site', () => {
    const fence = new ScriptedFence();
    open({ persistedFence: fence, expectedSkewSeconds: () => 7 });
    expect(fence.asked).toEqual([START + 7 + RESERVE_SECONDS]);
  });

  it('lets through what was issued up to it, and has it written further for what was not', async () => {
    const fence = new ScriptedFence();
    const { store } = open({ persistedFence: fence });
    const reserved = fence.throughSeconds;
    fence.writes = false;
    expect(await store.consume(claimAt(START, { issuedAtSeconds: reserved }))).toEqual(CONSUMED);
    const beyond = claimAt(START, { issuedAtSeconds: reserved + 1 });
    expect(await store.consume(beyond)).toEqual(UNAVAILABLE.store);
    expect(fence.asked.at(-1)).toBe(reserved + RESERVE_SECONDS);
    fence.throughSeconds = reserved + 1;
    expect(await store.consume(beyond)).toEqual(CONSUMED);
  });

  it('is written again only when little is left of it, or far too much', async () => {
    const fence = new ScriptedFence();
    const { clock, store } = open({ persistedFence: fence });
    /** What a claim beyond the fence makes the store request, with this much of the fence left. */
    const askedWith = async (leftSeconds: number) => {
      fence.asked.length = 0;
      fence.throughSeconds = clock.seconds + SKEW_SECONDS + leftSeconds;
      await store.consume(claimAt(clock.seconds, { issuedAtSeconds: fence.throughSeconds + 1 }));
      return fence.asked.length;
    };
    const counts: number[] = [];
    for (const left of [2, 3, 60, 61]) counts.push(await askedWith(left));
    expect(counts).toEqual([1, 0, 0, 1]);
  });

  it('gets at the end what was issued last', async () => {
    const fence = new ScriptedFence();
    const { store } = open({ persistedFence: fence });
    for (const ahead of [7, 9, 8]) {
      expect(await store.consume(claimAt(START, { issuedAtSeconds: START + ahead }))).toEqual(CONSUMED);
    }
    await store.close();
    expect(fence.closedWith).toBe(START + 9);
  });
});
