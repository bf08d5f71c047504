import { describe, expect, it } from '@jest/globals';
import {
  describeFence,
  parseEpoch,
  RedisFences,
  type ReplayEpoch,
} from '../../../src/verifier/replay/redis-fences.ts';
import { REPLAY_FENCE_REASONS, type ReplayFenceReason } from '../../../src/verifier/replay/store.ts';

const NOW = 1_800_000_000;
const SKEW_SECONDS = 5;

/** One that begun long ago and lets everything of now through, but for the changes. */
function epochWith(changes: Partial<ReplayEpoch>): ReplayEpoch {
  return {
    serverSeconds: NOW,
    momentSeconds: NOW - 1000,
    largestSkewSeconds: SKEW_SECONDS,
    why: 'epoch_missing',
    lowestExpirySeconds: 0,
    ...changes,
  };
}

function fencesAfter(...looks: readonly (readonly [number, Partial<ReplayEpoch>])[][]) {
  const raised: ReplayFenceReason[] = [];
  const fences = new RedisFences({ fenceRaised: (why) => raised.push(why) });
  for (const look of looks) {
    fences.note(new Map(look.map(([shard, changes]) => [shard, epochWith(changes)])), SKEW_SECONDS);
  }
  return { fences, raised };
}

describe('the fence of a shard', () => {
  it('is unknown until the shard was looked at', () => {
    const { fences } = fencesAfter([[1, {}]]);
    expect([fences.isKnown(0), fences.isKnown(1)]).toEqual([false, true]);
    expect(fences.up(0, NOW)).toBeUndefined();
    expect(fences.isStarting(NOW)).toBe(false);
  });

  it.each([
    ['two skews of the epoch beyond its moment', { largestSkewSeconds: 60 }, 120],
    ['two skews of the site, where that is larger', { largestSkewSeconds: 1 }, 2 * SKEW_SECONDS],
  ])('reaches %s, to the second', (_what, changes, reachSeconds) => {
    const { fences } = fencesAfter([[0, { momentSeconds: NOW, ...changes }]]);
    const last = NOW + reachSeconds;
    expect(fences.up(0, NOW)).toEqual({ why: 'epoch_missing', secondsLeft: reachSeconds + 1 });
    expect(fences.up(0, last)).toEqual({ why: 'epoch_missing', secondsLeft: 1 });
    expect(fences.up(0, last + 1)).toBeUndefined();
    expect([fences.isStarting(last), fences.isStarting(last + 1)]).toEqual([true, false]);
  });

  it('reaches what was deleted, less what a proof lives for, where that is later: a clock was ahead', () => {
    const byMoment = { momentSeconds: NOW, largestSkewSeconds: SKEW_SECONDS };
    const same = fencesAfter([[0, { ...byMoment, lowestExpirySeconds: NOW + 2 * SKEW_SECONDS + 61 }]]);
    expect(same.fences.up(0, NOW)).toEqual({ why: 'epoch_missing', secondsLeft: 2 * SKEW_SECONDS + 1 });
    const later = fencesAfter([[0, { ...byMoment, lowestExpirySeconds: NOW + 2 * SKEW_SECONDS + 62 }]]);
    expect(later.fences.up(0, NOW)).toEqual({ why: 'clock', secondsLeft: 2 * SKEW_SECONDS + 2 });
  });
});

describe('a fence that goes up', () => {
  it('is reported once at the first look, if it is up then', () => {
    const last = { momentSeconds: NOW - 2 * SKEW_SECONDS };
    expect(fencesAfter([[0, last]]).raised).toEqual(['epoch_missing']);
    expect(fencesAfter([[0, { momentSeconds: last.momentSeconds - 1 }]]).raised).toEqual([]);
  });

  it('is reported when its moment moves, and not when it stays', () => {
    const moved = { momentSeconds: NOW, why: 'primary_changed' } as const;
    const { fences, raised } = fencesAfter([[0, {}]], [[0, {}]], [[0, moved]], [[0, moved]]);
    expect(raised).toEqual(['primary_changed']);
    expect(fences.up(0, NOW)?.why).toBe('primary_changed');
    // It was raised after the start: other verifiers could do no better.
    expect(fences.isStarting(NOW)).toBe(false);
  });

  it('is reported when it moves while it is up, for whichever reason', () => {
    for (const why of ['epoch_missing', 'primary_changed'] as const) {
      const { raised } = fencesAfter([[0, { momentSeconds: NOW }]], [[0, { momentSeconds: NOW + 3, why }]]);
      expect(raised).toEqual(['epoch_missing', why]);
    }
  });

  it('is not reported again when only what was deleted moves on below it', () => {
    const up = { momentSeconds: NOW };
    const { raised } = fencesAfter([[0, up]], [[0, { ...up, lowestExpirySeconds: NOW + 32 }]]);
    expect(raised).toEqual(['epoch_missing']);
  });

  it('is reported once for all shards of a look that have it in common', () => {
    const up = { momentSeconds: NOW } as const;
    expect(fencesAfter([0, 1, 2].map((shard) => [shard, up])).raised).toEqual(['epoch_missing']);
    const apart: readonly (readonly [number, Partial<ReplayEpoch>])[] = [
      [0, up],
      [1, { ...up, why: 'skew_raised' }],
    ];
    expect(fencesAfter([...apart]).raised).toEqual(['epoch_missing', 'skew_raised']);
  });

  it('needs no listener', () => {
    const fences = new RedisFences(undefined);
    fences.note(new Map([[0, epochWith({ momentSeconds: NOW })]]), SKEW_SECONDS);
    expect(fences.isKnown(0)).toBe(true);
  });

  it('starts as late as the latest of those that were found first', () => {
    const { fences } = fencesAfter([
      [0, { momentSeconds: NOW }],
      [1, { momentSeconds: NOW - 3 }],
    ]);
    const last = NOW + 2 * SKEW_SECONDS;
    expect([fences.isStarting(last), fences.isStarting(last + 1)]).toEqual([true, false]);
  });

  it('is described with its time, each reason in a way of its own', () => {
    const lines = REPLAY_FENCE_REASONS.map((why) => describeFence({ why, secondsLeft: 17 }));
    for (const line of lines) expect(line).toMatch(/^.+17 s$/);
    expect(new Set(lines).size).toBe(REPLAY_FENCE_REASONS.length);
  });
});

describe('the answer of the prepare script', () => {
  const REPLY = [NOW, NOW - 3, 5, 'clock', 64];

  it('is read', () => {
    expect(parseEpoch(REPLY)).toEqual({
      serverSeconds: NOW,
      momentSeconds: NOW - 3,
      largestSkewSeconds: 5,
      why: 'clock',
      lowestExpirySeconds: 64,
    });
    expect(parseEpoch([0, 0, 0, 'clock', 0])).toMatchObject({ momentSeconds: 0 });
  });

  it.each(REPLAY_FENCE_REASONS)('may give %s as the reason', (why) => {
    expect(parseEpoch(REPLY.map((word) => (word === 'clock' ? why : word)))?.why).toBe(why);
  });

  it.each<[unknown]>([['OK'], [null], [{ ...REPLY }], [[]]])('is none: %j', (reply) => {
    expect(parseEpoch(reply)).toBeUndefined();
  });

  it.each([0, 1, 2, 4])('is none with a word that is no count at %i', (at) => {
    for (const word of ['5', -1, 1.5, Number.NaN, 2 ** 53, null, undefined]) {
      expect(parseEpoch(REPLY.map((was, index) => (index === at ? word : was)))).toBeUndefined();
    }
  });

  it('is none with an unknown reason', () => {
    for (const word of ['', 'clocks', 3, undefined]) {
      expect(parseEpoch(REPLY.map((was, index) => (index === 3 ? word : was)))).toBeUndefined();
    }
  });
});
