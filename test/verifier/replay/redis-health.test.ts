import { describe, expect, it } from '@jest/globals';
import { RedisFences, type ReplayEpoch } from '../../../src/verifier/replay/redis-fences.ts';
import { redisHealth, type SeenPrimaries } from '../../../src/verifier/replay/redis-health.ts';
import { REPLAY_FENCE_REASONS } from '../../../src/verifier/replay/store.ts';

const NOW = 1_800_000_000;
const SKEW_SECONDS = 5;
const OPEN: Partial<ReplayEpoch> = { momentSeconds: NOW - 1000 };

interface Seen {
  /** Shards of each primary; a problem means that it does not serve. */
  readonly links: readonly {
    readonly shards: readonly number[];
    readonly problem?: string;
    readonly warning?: string;
  }[];
  readonly shardCount?: number;
  readonly problem?: string;
}

function primariesOf({ links, problem, shardCount = 2 }: Seen): SeenPrimaries {
  const seen = links.map((link) => ({
    shards: link.shards,
    isServing: link.problem === undefined,
    problem: link.problem,
    warning: link.warning,
  }));
  return {
    tags: Array.from({ length: shardCount }, (_, shard) => `${shard}`),
    linkOf: (shard) => seen.find(({ shards }) => shards.includes(shard)),
    links: () => seen,
    problem: () => problem,
  };
}

/** Each look returns epochs by shard; missing values are those of an epoch that began long ago. */
function fencesOf(...looks: readonly { readonly [shard: number]: Partial<ReplayEpoch> }[]): RedisFences {
  const fences = new RedisFences(undefined);
  for (const look of looks) {
    const epochs = Object.entries(look).map(([shard, changes]) => {
      const epoch: ReplayEpoch = {
        serverSeconds: NOW,
        momentSeconds: NOW - 1000,
        largestSkewSeconds: SKEW_SECONDS,
        why: 'epoch_missing',
        lowestExpirySeconds: 0,
        ...changes,
      };
      return [Number(shard), epoch] as const;
    });
    fences.note(new Map(epochs), SKEW_SECONDS);
  }
  return fences;
}

const healthOf = (seen: Seen, fences: RedisFences, refused: readonly (readonly [number, string])[] = []) =>
  redisHealth(primariesOf(seen), fences, new Map(refused), NOW);

const BOTH: Seen = { links: [{ shards: [0] }, { shards: [1] }] };

describe('the store in Redis', () => {
  it('is ready when every shard is served and no fence is up', () => {
    expect(healthOf(BOTH, fencesOf({ 0: OPEN, 1: OPEN }))).toEqual({
      ready: true,
      links: { serving: 2, unfit: 0 },
    });
  });

  it('is ready and warns of a server that may be the wrong one, beside what else it warns of', () => {
    const seen: Seen = { links: [{ shards: [0] }, { shards: [1], warning: 'it has replicas' }] };
    const health = healthOf(seen, fencesOf({ 0: OPEN, 1: OPEN }));
    expect(health).toMatchObject({ ready: true, warning: 'it has replicas' });
    const missing = healthOf({ ...seen, shardCount: 3 }, fencesOf({ 0: OPEN, 1: OPEN }), [[2, 'ASK']]);
    expect(missing).toMatchObject({ ready: true, warning: expect.stringMatching(/ASK.*; it has replicas$/) });
  });

  it('is not ready before the first look', () => {
    const health = healthOf(BOTH, fencesOf());
    expect(health).toMatchObject({ ready: false, problem: expect.stringMatching(/./) });
    expect(health).not.toHaveProperty('fence');
  });

  it('is not ready while nothing serves, and says why', () => {
    const away: Seen = { links: [{ shards: [0, 1], problem: 'it is away' }] };
    expect(healthOf(away, fencesOf({ 0: OPEN, 1: OPEN }))).toEqual({
      ready: false,
      problem: 'it is away',
      links: { serving: 0, unfit: 1 },
    });
  });

  it('is not ready while every shard is refused, and says with which code', () => {
    const health = healthOf(BOTH, fencesOf({ 0: OPEN, 1: OPEN }), [
      [0, 'TRYAGAIN'],
      [1, 'TRYAGAIN'],
    ]);
    expect(health).toMatchObject({ ready: false, problem: expect.stringContaining('(TRYAGAIN)') });
  });
});

describe('a part of the holders', () => {
  const open = () => fencesOf({ 0: OPEN, 1: OPEN });
  const warningOf = (seen: Seen, fences: RedisFences, refused?: readonly (readonly [number, string])[]) => {
    const health = healthOf(seen, fences, refused);
    return health.ready ? health.warning : `not ready: ${health.problem}`;
  };

  it.each<[string, Seen, readonly (readonly [number, string])[], string]>([
    [
      'its primary is away',
      { links: [{ shards: [0] }, { shards: [1], problem: 'it is away' }] },
      [],
      'it is away',
    ],
    [
      'it has no primary',
      { links: [{ shards: [0] }], problem: 'some have no primary' },
      [],
      'have no primary',
    ],
    ['its primary refuses it', BOTH, [[1, 'MOVED']], '(MOVED)'],
  ])('is warned of while %s', (_what, seen, refused, why) => {
    expect(warningOf(seen, open(), refused)).toEqual(expect.stringContaining(why));
    expect(warningOf(seen, open(), refused)).toMatch(/\b2\b.* 1 /);
  });

  it('is not served before it was looked at', () => {
    const seen: Seen = { ...BOTH, problem: 'of some nothing is known' };
    expect(warningOf(seen, fencesOf({ 0: OPEN }))).toMatch(/\b2\b.*\b1\b.*nothing is known/);
  });

  it('counts for the fence only while it is served', () => {
    const fenced = fencesOf({ 0: OPEN, 1: { momentSeconds: NOW } });
    const seen: Seen = { links: [{ shards: [0] }, { shards: [1], problem: 'it is away' }] };
    expect(healthOf(seen, fenced)).not.toHaveProperty('fence');
    expect(healthOf(seen, fenced).ready).toBe(true);
    expect(healthOf(BOTH, fenced)).toHaveProperty('fence');
  });
});

describe('a fence', () => {
  const UP = { momentSeconds: NOW };
  const FENCE = { why: 'epoch_missing', secondsLeft: 2 * SKEW_SECONDS + 1 };

  it('that was there at the start makes it not ready', () => {
    expect(healthOf(BOTH, fencesOf({ 0: UP, 1: UP }))).toEqual({
      ready: false,
      problem: expect.stringContaining(`${FENCE.secondsLeft} s`),
      fence: FENCE,
      links: { serving: 2, unfit: 0 },
    });
  });

  it('that went up later is a warning', () => {
    expect(healthOf(BOTH, fencesOf({ 0: OPEN, 1: OPEN }, { 0: UP, 1: OPEN }))).toEqual({
      ready: true,
      warning: expect.stringContaining(`${FENCE.secondsLeft} s`),
      fence: FENCE,
      links: { serving: 2, unfit: 0 },
    });
  });

  it.each([
    ['the first', { 0: UP, 1: { momentSeconds: NOW - 3 } }],
    ['the last', { 0: { momentSeconds: NOW - 3 }, 1: UP }],
  ])('is the one that stays up longest, if that is %s', (_which, second) => {
    const health = healthOf(BOTH, fencesOf({ 0: OPEN, 1: OPEN }, second));
    expect(health.fence).toEqual(FENCE);
  });

  it.each(REPLAY_FENCE_REASONS)('(%s) is reported beside what is not served, with its code', (why) => {
    const fences = fencesOf({ 0: OPEN, 1: OPEN }, { 0: { ...UP, why }, 1: OPEN });
    const seen: Seen = { links: [{ shards: [0] }, { shards: [1], problem: 'it is away' }] };
    expect(healthOf(seen, fences)).toMatchObject({
      ready: true,
      warning: expect.stringMatching(new RegExp(`it is away; .*\\(${why}\\).*\\b${FENCE.secondsLeft} s$`)),
      fence: { ...FENCE, why },
      links: { serving: 1, unfit: 1 },
    });
  });
});
