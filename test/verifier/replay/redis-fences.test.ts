import { describe, expect, it } from '@jest/globals';
import { RedisFences, type ReplayEpoch } from '../../../src/verifier/replay/redis-fences.ts';

const SKEW_SECONDS = 5;
const MOMENT = 1_000_000;
/** Long after the fence of the moment. */
const LATER = MOMENT + 1_000;

/** An epoch of a shard that began long ago. */
function epochAt(serverSeconds: number, changes: Partial<ReplayEpoch> = {}): ReplayEpoch {
  return {
    serverSeconds,
    momentSeconds: MOMENT,
    largestSkewSeconds: SKEW_SECONDS,
    why: 'epoch_missing',
    lowestExpirySeconds: 0,
    ...changes,
  };
}

/** What the fences report for each look at one shard, one after the other. */
function eventsOf(...looks: readonly ReplayEpoch[]): readonly (readonly string[])[] {
  let events: string[] = [];
  const fences = new RedisFences({ fenceRaised: (why) => events.push(why) });
  return looks.map((epoch) => {
    events = [];
    fences.note(new Map([[0, epoch]]), SKEW_SECONDS);
    return events;
  });
}

describe('fences in Redis: what is reported of them', () => {
  it('tells of the one that is found up, once', () => {
    expect(eventsOf(epochAt(MOMENT), epochAt(MOMENT + 1))).toEqual([['epoch_missing'], []]);
  });

  it('tells of none that was over before the first look', () => {
    expect(eventsOf(epochAt(LATER), epochAt(LATER + 1))).toEqual([[], []]);
  });

  it('tells of another moment', () => {
    const moved = epochAt(LATER + 1, { momentSeconds: LATER, why: 'primary_changed' });
    expect(eventsOf(epochAt(LATER), moved)).toEqual([[], ['primary_changed']]);
  });

  it('tells of what was deleted ahead of the clock, once', () => {
    const deleted = { lowestExpirySeconds: LATER + 3_600 };
    const looks = [epochAt(LATER), epochAt(LATER + 1, deleted), epochAt(LATER + 6, deleted)];
    expect(eventsOf(...looks)).toEqual([[], ['clock'], []]);
  });

  it('tells of it although the fence of a moment is up still', () => {
    const deleted = epochAt(MOMENT + 1, { lowestExpirySeconds: MOMENT + 3_600 });
    expect(eventsOf(epochAt(MOMENT), deleted)).toEqual([['epoch_missing'], ['clock']]);
  });

  it('tells of nothing while what is deleted lies behind the clock', () => {
    const looks = [10, 20, 30].map((seconds) =>
      epochAt(LATER + seconds, { lowestExpirySeconds: LATER + seconds - SKEW_SECONDS }),
    );
    expect(eventsOf(...looks)).toEqual([[], [], []]);
  });

  it('tells of a fence that a clock gone back puts up again', () => {
    const deleted = { lowestExpirySeconds: LATER + 3_600 };
    const looks = [epochAt(LATER), epochAt(LATER + 7_200, deleted), epochAt(LATER + 10, deleted)];
    expect(eventsOf(...looks)).toEqual([[], [], ['clock']]);
  });

  it('tells once of what shards have in common', () => {
    const events: string[] = [];
    const fences = new RedisFences({ fenceRaised: (why) => events.push(why) });
    const shards = [0, 1, 2];
    fences.note(new Map(shards.map((shard) => [shard, epochAt(LATER)])), SKEW_SECONDS);
    const deleted = epochAt(LATER + 1, { lowestExpirySeconds: LATER + 3_600 });
    fences.note(new Map(shards.map((shard) => [shard, deleted])), SKEW_SECONDS);
    expect(events).toEqual(['clock']);
    expect(fences.up(2, LATER + 1)).toEqual({ why: 'clock', secondsLeft: 3_600 - 61 });
  });
});
