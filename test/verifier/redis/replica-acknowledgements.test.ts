/**
 * The scripts in a real Redis that stands still and goes on, whose replicas follow, hang and leave: what they acknowledge is
 * said by a key in place of `INFO`, the time by another. All else is as it is.
 */
import { describe, expect, it } from '@jest/globals';
import type { Redis } from 'ioredis';
import { FOLLOWED_SECONDS } from '../../../src/verifier/redis/failover-settings.ts';
import { replayKeys } from '../../../src/verifier/redis/replay-keys.ts';
import { CONSUME_CODES } from '../../../src/verifier/redis/replay-scripts.ts';
import { scriptsFedByKeys, withRedis } from './scripts-fed-by-keys.ts';

const SKEW_SECONDS = 5;
const MARGIN_SECONDS = 12;
const START_SECONDS = 1_800_000_000;
const KEYS = replayKeys('0');
const REPLID = '47db85750730cb35eacd6e87845c4b4aaf73bc53';
const NOT_FOLLOWED = 'NOREPLICAS';

const { consumeLua, prepareLua } = scriptsFedByKeys('time', 'info');

let redis: Redis;
withRedis((client) => {
  redis = client;
});

/** A primary with replicas that acknowledge, at the end of every second, all that was sent to them. */
class Primary {
  readonly needed: number;
  seconds = START_SECONDS;
  replid = REPLID;
  sent = 1_000;
  /** What each replica acknowledged; undefined: it is still being filled. */
  acknowledged: (number | undefined)[];
  #count = 0;

  constructor(needed: number) {
    this.needed = needed;
    this.acknowledged = Array.from({ length: needed }, () => 1_000);
  }

  /** Replicas acknowledge, time goes by. */
  follow(): void {
    this.acknowledged = this.acknowledged.map((offset) => (offset === undefined ? undefined : this.sent));
  }

  async #run(lua: string, keys: readonly string[], words: readonly (string | number)[]): Promise<unknown> {
    const lines = this.acknowledged.map((offset, at) => {
      const state = offset === undefined ? 'send_bulk' : 'online';
      return `slave${at}:ip=10.0.0.${at},port=6379,state=${state},offset=${offset ?? this.sent + 9},lag=0`;
    });
    const info = ['# Replication', 'role:master', `connected_slaves:${lines.length}`, ...lines];
    info.push(`master_replid:${this.replid}`, `master_replid2:${'0'.repeat(40)}`);
    info.push(`master_repl_offset:${this.sent}`, 'second_repl_offset:-1', '');
    await redis.mset('{0}time', this.seconds, '{0}info', info.join('\r\n'));
    const before = await redis.get(KEYS.epoch);
    const reply = await redis
      .eval(lua, keys.length, ...keys, ...words)
      .catch((error: Error) => error.message);
    // Only what is written is sent.
    if ((await redis.get(KEYS.epoch)) !== before) this.sent += 200;
    return typeof reply === 'string' ? reply.split(' ', 1)[0] : reply;
  }

  look(): Promise<unknown> {
    const words = [
      KEYS.bucketPrefix,
      SKEW_SECONDS,
      this.seconds,
      SKEW_SECONDS,
      MARGIN_SECONDS,
      0,
      this.needed,
    ];
    return this.#run(prepareLua, [KEYS.epoch], words);
  }

  /** A proof that no earlier fence denies. */
  consume(issuedAtSeconds = this.seconds): Promise<unknown> {
    const expiresAtSeconds = issuedAtSeconds + 60;
    const bucket = `${KEYS.bucketPrefix}${Math.floor(expiresAtSeconds / 32)}`;
    this.#count += 1;
    return this.#run(
      consumeLua,
      [KEYS.epoch, bucket, `${KEYS.quotaPrefix}holder`, `${KEYS.subjectQuotaPrefix}subject`],
      [
        ...[`proof-${this.#count}`, 'nonce', issuedAtSeconds, expiresAtSeconds, SKEW_SECONDS, this.seconds],
        ...[1e9, SKEW_SECONDS, MARGIN_SECONDS, 0, this.needed, 1e9],
      ],
    );
  }

  async pass(seconds: number, { lookSeconds = 1, isFollowed = true } = {}): Promise<void> {
    for (let left = seconds; left > 0; left -= lookSeconds) {
      this.seconds += Math.min(left, lookSeconds);
      if (isFollowed) this.follow();
      await this.look();
    }
  }
}

async function servingPrimary(needed = 1): Promise<Primary> {
  const primary = new Primary(needed);
  await primary.look();
  await primary.pass(MARGIN_SECONDS + 2 * SKEW_SECONDS + 1);
  expect(await primary.consume()).toBe(CONSUME_CODES.consumed);
  return primary;
}

describe('a primary whose replicas must follow', () => {
  it('takes nothing before they acknowledged what it wrote', async () => {
    const primary = new Primary(1);
    const beyondFence = () => primary.consume(primary.seconds + 100);
    expect(await primary.look()).toBe(NOT_FOLLOWED);
    expect(await beyondFence()).toBe(NOT_FOLLOWED);
    primary.seconds += 1;
    // Acknowledged earlier, which does not prove that a replica is there now.
    expect(await beyondFence()).toBe(NOT_FOLLOWED);
    primary.seconds += 1;
    primary.follow();
    expect(await beyondFence()).toBe(CONSUME_CODES.consumed);
    expect(await primary.look()).toContain(primary.seconds);
  });

  it('needs as many as configured, and counts none that is being filled', async () => {
    const primary = await servingPrimary(2);
    primary.acknowledged[1] = undefined;
    await primary.pass(FOLLOWED_SECONDS + 1);
    expect(await primary.consume()).toBe(NOT_FOLLOWED);
    expect(await primary.look()).toBe(NOT_FOLLOWED);
    primary.acknowledged[1] = primary.sent;
    await primary.pass(2);
    expect(await primary.consume()).toBe(CONSUME_CODES.consumed);
  });

  it('is not asked for any where none is needed', async () => {
    const primary = new Primary(0);
    await primary.look();
    expect(await primary.consume(primary.seconds + 100)).toBe(CONSUME_CODES.consumed);
    expect(await redis.get(KEYS.epoch)).toMatch(/ epoch_missing \d+$/);
  });

  it('serves on when the only verifier looks each 5 s, or a late one each 9 s', async () => {
    const primary = await servingPrimary();
    for (const lookSeconds of [5, 9]) {
      for (let round = 0; round < 10; round += 1) {
        await primary.pass(lookSeconds, { lookSeconds });
        expect(await primary.consume()).toBe(CONSUME_CODES.consumed);
      }
    }
  });

  it('takes nothing later than 10 s after the last moment at which they followed, whatever it is asked', async () => {
    const primary = await servingPrimary();
    await primary.pass(1);
    const lastFollowed = primary.seconds;
    const answers: unknown[] = [];
    for (let passed = 1; passed <= 20; passed += 1) {
      await primary.pass(1, { isFollowed: false });
      answers.push(await primary.consume());
    }
    const taken = answers.filter((answer) => answer === CONSUME_CODES.consumed).length;
    // The last acknowledgement speaks of the note of the second before.
    expect(taken).toBeGreaterThan(0);
    expect(taken).toBeLessThanOrEqual(FOLLOWED_SECONDS);
    expect(answers.slice(taken)).toEqual(answers.slice(taken).map(() => NOT_FOLLOWED));
    expect(primary.seconds).toBe(lastFollowed + 20);
  });
});

describe('a primary that stood still', () => {
  it('takes nothing that was issued within F of its return, if that was more than 10 s, though its replicas are there', async () => {
    const primary = await servingPrimary();
    // Long after the last fence.
    await primary.pass(700, { lookSeconds: 5 });
    primary.seconds += 11;
    const back = primary.seconds;
    primary.follow();
    const last = back + MARGIN_SECONDS + 2 * SKEW_SECONDS;
    expect(await primary.consume(last)).toBe(CONSUME_CODES.raised);
    expect(await primary.consume(last + 1)).toBe(NOT_FOLLOWED);
    await primary.pass(2);
    expect(await primary.consume(last)).toBe(CONSUME_CODES.fenced);
    expect(await primary.consume(last + 1)).toBe(CONSUME_CODES.consumed);
  });

  it.each([6, 10])('for %i s takes nothing later than others may have begun, and F', async (pauseSeconds) => {
    const primary = await servingPrimary();
    await primary.pass(1);
    // The earliest moment at which another took its place: acknowledgements of before are still to be read.
    const replaced = primary.seconds;
    primary.follow();
    primary.seconds += pauseSeconds;
    let last = 0;
    for (let passed = 0; passed < 20; passed += 1) {
      if ((await primary.consume()) === CONSUME_CODES.consumed) last = primary.seconds;
      primary.seconds += 1;
    }
    expect(last).toBeLessThan(replaced + MARGIN_SECONDS);
  });

  it('does not believe in what was acknowledged to the primary before it', async () => {
    const primary = await servingPrimary();
    primary.replid = REPLID.replace('4', '5');
    primary.follow();
    expect(await primary.consume(primary.seconds + 100)).toBe(NOT_FOLLOWED);
    await primary.pass(2);
    expect(await primary.consume(primary.seconds + 100)).toBe(CONSUME_CODES.consumed);
  });

  it('does not believe in a moment of a clock that went back', async () => {
    const primary = await servingPrimary();
    primary.seconds -= 3;
    expect(await primary.consume(primary.seconds + 100)).toBe(NOT_FOLLOWED);
    await primary.pass(2);
    expect(await primary.consume(primary.seconds + 100)).toBe(CONSUME_CODES.consumed);
  });
});
