/**
 * The scripts in a real Redis, to the second: where a fence begins and ends, when a hash is deleted, how far clocks may be
 * apart. They ask a key for the time in place of `TIME`, which no test could set; all else is as it is.
 */
import { describe, expect, it } from '@jest/globals';
import type { Redis } from 'ioredis';
import { replayKeys } from '../../../src/verifier/redis/replay-keys.ts';
import { BUCKET_SECONDS, CONSUME_CODES } from '../../../src/verifier/redis/replay-scripts.ts';
import { scriptsFedByKeys, withRedis } from './scripts-fed-by-keys.ts';

const SKEW_SECONDS = 5;
const START = 1_800_000_000;
const KEYS = replayKeys('0');
/** As docs/operate/replay.md "Clocks" has them. */
const GAP_SECONDS = 10;
const HOLD_SECONDS = 300;
const MOST_AHEAD_SECONDS = 1_000;
const MOST_BUCKETS = 128;

const { consumeLua, prepareLua } = scriptsFedByKeys('time');

let redis: Redis;
let count = 0;
withRedis((client) => {
  redis = client;
});

interface Call {
  readonly identifier: string;
  readonly issued: number;
  readonly expires: number;
  /** Most difference of clocks. */
  readonly apart: number;
  /** The verifier's clock; default: the server's. */
  readonly now: number;
  readonly quota: number;
  readonly holder: string;
  readonly subjectQuota: number;
  readonly skew: number;
  readonly margin: number;
  readonly latest: number;
}

/** What a verifier sends at a moment of the server's clock, by default of a proof issued then. */
async function consumeAt(seconds: number, changes: Partial<Call> = {}): Promise<number> {
  count += 1;
  const call: Call = {
    identifier: `proof-${count}`,
    issued: seconds,
    expires: seconds + 60,
    apart: SKEW_SECONDS,
    now: seconds,
    quota: 1e9,
    holder: 'holder',
    subjectQuota: 1e9,
    skew: SKEW_SECONDS,
    margin: 0,
    latest: 0,
    ...changes,
  };
  await redis.set('{0}time', seconds);
  const quotas = [`${KEYS.quotaPrefix}${call.holder}`, `${KEYS.subjectQuotaPrefix}subject`] as const;
  const keys = [KEYS.epoch, bucketOf(call.expires), ...quotas] as const;
  const { apart, expires, identifier, issued, latest, margin, now, quota, skew, subjectQuota } = call;
  const words = [
    identifier,
    'nonce',
    issued,
    expires,
    apart,
    now,
    quota,
    skew,
    margin,
    latest,
    0,
    subjectQuota,
  ];
  return Number(await redis.eval(consumeLua, 4, ...keys, ...words));
}

interface Epoch {
  readonly moment: number;
  readonly largest: number;
  readonly why: string;
  readonly lowestExpiry: number;
}

async function lookAt(seconds: number, changes: Partial<Call> = {}): Promise<Epoch> {
  const { apart, latest, margin, now, skew } = {
    apart: SKEW_SECONDS,
    now: seconds,
    skew: SKEW_SECONDS,
    margin: 0,
    latest: 0,
    ...changes,
  };
  await redis.set('{0}time', seconds);
  const reply = await redis.eval(
    prepareLua,
    1,
    KEYS.epoch,
    KEYS.bucketPrefix,
    apart,
    now,
    skew,
    margin,
    latest,
    0,
  );
  const [events, moment, largest, why, lowestExpiry] = Array.isArray(reply) ? reply : [];
  expect(events).toBe(seconds);
  return { moment, largest, why, lowestExpiry };
}

const bucketOf = (expires: number) => `${KEYS.bucketPrefix}${Math.floor(expires / BUCKET_SECONDS)}`;
const bucketsThere = () => redis.keys(`${KEYS.bucketPrefix}*`);

/** Looks often enough that no gap is seen, to the moment given. */
async function watchFromTo(from: number, to: number, skew = SKEW_SECONDS): Promise<void> {
  for (let at = from; at < to; at += GAP_SECONDS) await lookAt(at, { skew });
  await lookAt(to, { skew });
}

/** An epoch that began at `START`, whose fence has ended. @returns the time */
async function begin(skew = SKEW_SECONDS): Promise<number> {
  await lookAt(START, { skew });
  const now = START + 2 * skew + 1;
  await watchFromTo(START, now, skew);
  return now;
}

describe('clocks of server and verifier', () => {
  it.each([1, -1])('may differ by so much and no more (%i)', async (sign) => {
    const now = await begin();
    expect(await consumeAt(now, { now: now + sign * SKEW_SECONDS })).toBe(CONSUME_CODES.consumed);
    expect(await consumeAt(now, { now: now + sign * (SKEW_SECONDS + 1) })).toBe(CONSUME_CODES.clock);
    expect(await lookAt(now, { now: now + sign * SKEW_SECONDS })).toMatchObject({ moment: START });
    expect(await lookAt(now, { now: now + sign * (SKEW_SECONDS + 1) })).toMatchObject({ moment: 0 });
  });

  it('that differ set no epoch', async () => {
    await lookAt(START, { now: START - 100 });
    await consumeAt(START, { now: START - 100 });
    expect(await redis.exists(KEYS.epoch)).toBe(0);
  });

  it('that are no numbers refuse', async () => {
    const now = await begin();
    for (const changes of [{ now: Number.NaN }, { expires: now + MOST_AHEAD_SECONDS + 1 }]) {
      expect(await consumeAt(now, changes)).toBe(CONSUME_CODES.clock);
    }
    expect(await consumeAt(now, { expires: now + MOST_AHEAD_SECONDS })).toBe(CONSUME_CODES.consumed);
  });
});

describe('a clock that jumps', () => {
  const whyAfter = async (seconds: number, skew = SKEW_SECONDS) => (await lookAt(seconds, { skew })).why;

  it.each([1, 5, 60])('back by more than the skew and 2 s raises the fence (skew %i s)', async (skew) => {
    const now = await begin(skew);
    expect(await whyAfter(now - skew - 2, skew)).toBe('epoch_missing');
    await lookAt(now, { skew });
    const back = await lookAt(now - skew - 3, { skew });
    expect(back).toMatchObject({ why: 'clock', moment: Math.max(START, now - skew - 3) });
  });

  it.each([1, 5, 60])('ahead, or was not looked at for long, raises the fence (skew %i s)', async (skew) => {
    const now = await begin(skew);
    expect(await whyAfter(now + GAP_SECONDS, skew)).toBe('epoch_missing');
    const ahead = await lookAt(now + 2 * GAP_SECONDS + 1, { skew });
    expect(ahead).toMatchObject({ why: 'clock', moment: now + 2 * GAP_SECONDS + 1 });
  });

  it('raises the fence by F, whatever the age of the last one', async () => {
    await begin();
    await watchFromTo(START + 20, START + 1_000);
    const ahead = await lookAt(START + 1_100, { margin: 12 });
    expect(ahead).toMatchObject({ why: 'clock', moment: START + 1_112 });
    const back = await lookAt(START + 500, { margin: 12 });
    expect(back).toMatchObject({ why: 'clock', moment: START + 512 });
  });

  it('tells the caller that it raised the fence, and the next one that it is up', async () => {
    const now = await begin();
    const later = now + GAP_SECONDS + 1;
    expect(await consumeAt(later)).toBe(CONSUME_CODES.raised);
    expect(await consumeAt(later)).toBe(CONSUME_CODES.fenced);
    expect(await consumeAt(later, { issued: later + 2 * SKEW_SECONDS })).toBe(CONSUME_CODES.fenced);
    expect(await consumeAt(later, { issued: later + 2 * SKEW_SECONDS + 1 })).toBe(CONSUME_CODES.consumed);
  });

  it('keeps everything for 300 s', async () => {
    const now = await begin();
    expect(await consumeAt(now, { expires: now + 1 })).toBe(CONSUME_CODES.consumed);
    const jumped = now + 2_000;
    await lookAt(jumped);
    await watchFromTo(jumped, jumped + HOLD_SECONDS - 1);
    expect(await bucketsThere()).toHaveLength(1);
    await lookAt(jumped + HOLD_SECONDS);
    expect(await bucketsThere()).toEqual([]);
  });
});

describe('data that is lost', () => {
  it('fences what was issued up to now and F, or what is known to have been consumed', async () => {
    expect(await lookAt(START, { margin: 7 })).toMatchObject({ moment: START + 7, why: 'epoch_missing' });
    await redis.flushall();
    const latest = START + 100;
    const epoch = await lookAt(START, { margin: 7, latest });
    expect(epoch.moment).toBe(latest - 2 * SKEW_SECONDS);
  });

  it('never moves the fence back', async () => {
    const now = await begin();
    await redis.set(KEYS.epoch, `${now + 500} gone`);
    expect(await lookAt(now)).toMatchObject({ moment: now + 500, why: 'epoch_missing' });
  });

  it('is noticed by any one hash; the others are kept, and deleted in their time', async () => {
    const now = await begin();
    const lifetimes = [60, 120, 180];
    for (const seconds of lifetimes) {
      expect(await consumeAt(now, { expires: now + seconds })).toBe(CONSUME_CODES.consumed);
    }
    await redis.del(bucketOf(now + 120));
    expect(await lookAt(now + 1)).toMatchObject({ why: 'epoch_missing', moment: now + 1 });
    expect((await bucketsThere()).sort()).toEqual([60, 180].map((seconds) => bucketOf(now + seconds)).sort());
    await watchFromTo(now + 1, now + 180 + BUCKET_SECONDS + 3 * SKEW_SECONDS + 2 + HOLD_SECONDS);
    expect(await bucketsThere()).toEqual([]);
  });

  it('is presumed on another primary', async () => {
    const now = await begin();
    const epoch = String(await redis.get(KEYS.epoch)).split(' ');
    await redis.set(KEYS.epoch, epoch.with(1, 'abcdef').join(' '));
    expect(await lookAt(now, { margin: 7 })).toMatchObject({ moment: now + 7, why: 'primary_changed' });
    expect(await lookAt(now + 1, { margin: 7 })).toMatchObject({ moment: now + 7 });
  });
});

describe('a larger skew', () => {
  it('raises the fence where something may be recorded for the smaller one, and stays', async () => {
    const now = await begin();
    expect(await lookAt(now, { skew: 6 })).toMatchObject({ moment: now, largest: 6, why: 'skew_raised' });
    expect(await lookAt(now + 1, { skew: 5 })).toMatchObject({ moment: now, largest: 6 });
  });

  it('raises none before any verifier has stated a skew', async () => {
    await lookAt(START, { skew: 0 });
    expect(await lookAt(START + 1, { skew: 60 })).toMatchObject({
      moment: START,
      largest: 60,
      why: 'epoch_missing',
    });
  });
});

it('a skew that is shown is kept, also within the second in which somebody looked', async () => {
  await lookAt(START, { skew: 0 });
  await lookAt(START, { skew: 5 });
  expect(await lookAt(START, { skew: 0 })).toMatchObject({ largest: 5 });
});

describe('a hash', () => {
  it('is deleted three skews and 2 s after the last proof in it, and what belongs there is refused from then on', async () => {
    const now = await begin();
    const expires = now + 60;
    expect(await consumeAt(now, { expires })).toBe(CONSUME_CODES.consumed);
    const end = (Math.floor(expires / BUCKET_SECONDS) + 1) * BUCKET_SECONDS;
    const over = end + 3 * SKEW_SECONDS + 2;
    await watchFromTo(now, over - 1);
    expect(await bucketsThere()).toHaveLength(1);
    expect((await lookAt(over)).lowestExpiry).toBe(end);
    expect(await bucketsThere()).toEqual([]);
    // By a clock that was set back, so that the proof itself would be valid.
    const back = over - SKEW_SECONDS - 2;
    expect(await consumeAt(back, { expires: end - 1, issued: back })).toBe(CONSUME_CODES.fenced);
    expect(await consumeAt(back, { expires: end, issued: back })).toBe(CONSUME_CODES.consumed);
  });

  it('remembers an identifier whatever times it comes with', async () => {
    const now = await begin();
    const identifier = 'same';
    expect(await consumeAt(now, { identifier, expires: now + 60 })).toBe(CONSUME_CODES.consumed);
    for (const seconds of [60, 61, 150, 300]) {
      expect(await consumeAt(now, { identifier, expires: now + seconds })).toBe(CONSUME_CODES.replayed);
    }
  });

  it('takes no proof that would be forgotten at once', async () => {
    const now = await begin();
    const least = now - 3 * SKEW_SECONDS - 2;
    expect(await consumeAt(now, { expires: least, issued: now })).toBe(CONSUME_CODES.fenced);
    expect(await consumeAt(now, { expires: least + 1, issued: now })).toBe(CONSUME_CODES.consumed);
  });

  it('is one of a bounded number', async () => {
    const now = await begin();
    expect(await consumeAt(now)).toBe(CONSUME_CODES.consumed);
    const ahead = Math.floor((now + MOST_AHEAD_SECONDS) / BUCKET_SECONDS);
    const numbers = Array.from({ length: MOST_BUCKETS - 2 }, (_, index) => `${ahead + 10 + index}`);
    for (const number of numbers) await redis.hset(`${KEYS.bucketPrefix}${number}`, 'other', 'nonce');
    const epoch = String(await redis.get(KEYS.epoch));
    await redis.set(KEYS.epoch, `${epoch},${numbers.join(',')}`);
    expect(await consumeAt(now, { expires: now + 150 })).toBe(CONSUME_CODES.consumed);
    expect(await consumeAt(now, { expires: now + 250 })).toBe(CONSUME_CODES.clock);
    // The existing hashes have room.
    expect(await consumeAt(now, { expires: now + 150 })).toBe(CONSUME_CODES.consumed);
  });
});

describe("a holder's quota", () => {
  it('is so many a minute, counted for consumes alone', async () => {
    const now = await begin();
    const identifier = 'same';
    expect(await consumeAt(now, { identifier, quota: 2 })).toBe(CONSUME_CODES.consumed);
    expect(await consumeAt(now, { identifier, quota: 2 })).toBe(CONSUME_CODES.replayed);
    expect(await consumeAt(now, { quota: 2 })).toBe(CONSUME_CODES.consumed);
    expect(await consumeAt(now, { quota: 2 })).toBe(CONSUME_CODES.quota);
    const left = await redis.ttl(`${KEYS.quotaPrefix}holder`);
    expect(left).toBeGreaterThan(0);
    expect(left).toBeLessThanOrEqual(60);
  });

  it('begins its minute with the first consume, and not anew with each', async () => {
    const now = await begin();
    await consumeAt(now);
    expect(await redis.ttl(`${KEYS.quotaPrefix}holder`)).toBeGreaterThan(0);
    await redis.expire(`${KEYS.quotaPrefix}holder`, 30);
    await consumeAt(now);
    expect(await redis.ttl(`${KEYS.quotaPrefix}holder`)).toBeLessThanOrEqual(30);
  });

  it('ends within a minute, also where a clock that went back has made it longer', async () => {
    const now = await begin();
    await consumeAt(now, { quota: 1 });
    await redis.expire(`${KEYS.quotaPrefix}holder`, 5_000);
    expect(await consumeAt(now, { quota: 1 })).toBe(CONSUME_CODES.quota);
    expect(await redis.ttl(`${KEYS.quotaPrefix}holder`)).toBeLessThanOrEqual(60);
  });

  it('leaves nothing of what it refuses', async () => {
    const now = await begin();
    await consumeAt(now, { quota: 1 });
    const identifier = 'refused';
    expect(await consumeAt(now, { identifier, quota: 1 })).toBe(CONSUME_CODES.quota);
    expect(await consumeAt(now, { identifier, quota: 100 })).toBe(CONSUME_CODES.consumed);
  });
});

describe('a quota of issuer and subject', () => {
  const SUBJECT = `${KEYS.subjectQuotaPrefix}subject`;

  it('counts the consumes of all their holders, and no replay', async () => {
    const now = await begin();
    const identifier = 'same';
    expect(await consumeAt(now, { identifier, holder: 'a', subjectQuota: 2 })).toBe(CONSUME_CODES.consumed);
    expect(await consumeAt(now, { identifier, holder: 'a', subjectQuota: 2 })).toBe(CONSUME_CODES.replayed);
    expect(await consumeAt(now, { holder: 'b', subjectQuota: 2 })).toBe(CONSUME_CODES.consumed);
    expect(await consumeAt(now, { holder: 'c', subjectQuota: 2 })).toBe(CONSUME_CODES.quota);
    expect(await redis.ttl(SUBJECT)).toBeGreaterThan(0);
    expect(await redis.ttl(SUBJECT)).toBeLessThanOrEqual(60);
  });

  it("does not count what its holder's quota denies", async () => {
    const now = await begin();
    expect(await consumeAt(now, { holder: 'a', quota: 1, subjectQuota: 2 })).toBe(CONSUME_CODES.consumed);
    for (let time = 0; time < 3; time += 1) {
      expect(await consumeAt(now, { holder: 'a', quota: 1, subjectQuota: 2 })).toBe(CONSUME_CODES.quota);
    }
    expect(await consumeAt(now, { holder: 'b', quota: 1, subjectQuota: 2 })).toBe(CONSUME_CODES.consumed);
  });

  it('leaves nothing of what it refuses', async () => {
    const now = await begin();
    await consumeAt(now, { subjectQuota: 1 });
    const identifier = 'refused';
    expect(await consumeAt(now, { identifier, subjectQuota: 1 })).toBe(CONSUME_CODES.quota);
    expect(await consumeAt(now, { identifier, subjectQuota: 100 })).toBe(CONSUME_CODES.consumed);
  });

  it('refuses where a verifier names no number', async () => {
    const now = await begin();
    expect(await consumeAt(now, { subjectQuota: Number.NaN })).toBe(CONSUME_CODES.quota);
  });
});
