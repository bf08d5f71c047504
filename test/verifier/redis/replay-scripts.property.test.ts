/**
 * The scripts in a real Redis against clocks that do as they like. The scripts ask a key for the time in place of
 * `TIME`, which no test could set; all else is as it is.
 */
import { describe, expect, it } from '@jest/globals';
import fc from 'fast-check';
import type { Redis } from 'ioredis';
import { replayKeys } from '../../../src/verifier/redis/replay-keys.ts';
import { CONSUME_CODES } from '../../../src/verifier/redis/replay-scripts.ts';
import { scriptsFedByKeys, withRedis } from './scripts-fed-by-keys.ts';

const SKEW_SECONDS = 5;
const START_SECONDS = 1_800_000_000;
/** Interval of a verifier's looks, with or without proofs. */
const LOOK_SECONDS = 5;
const KEYS = replayKeys('0');

const { consumeLua, prepareLua } = scriptsFedByKeys('time');

let redis: Redis;
withRedis((client) => {
  redis = client;
});

interface Proof {
  readonly id: string;
  readonly issuedAtSeconds: number;
  readonly expiresAtSeconds: number;
  consumed: number;
}

/** One Redis, verifiers whose clocks agree, and a holder whose clock is right. */
class World {
  trueSeconds = START_SECONDS;
  serverOffset = 0;
  verifierOffset = 0;
  readonly proofs: Proof[] = [];
  #consumedAt: (readonly [number, number])[] = [];

  get verifierSeconds(): number {
    return this.trueSeconds + this.verifierOffset;
  }

  get serverSeconds(): number {
    return this.trueSeconds + this.serverOffset;
  }

  /** Like `LatestIssued`: by a clock that is never set. */
  get latestIssuedAt(): number {
    const lately = this.#consumedAt.filter(([at]) => at > this.trueSeconds - 600);
    return Math.max(0, ...lately.map(([, issued]) => issued));
  }

  /** All verifiers forget what they had consumed. */
  restartVerifiers(): void {
    this.#consumedAt = [];
  }

  sign(lifeSeconds: number, clockSeconds = this.trueSeconds): Proof {
    const id = `proof-${this.proofs.length}`;
    const proof = {
      id,
      issuedAtSeconds: clockSeconds,
      expiresAtSeconds: clockSeconds + lifeSeconds,
      consumed: 0,
    };
    this.proofs.push(proof);
    return proof;
  }

  /** As a verifier does: step 5, then the script. Undefined when step 5 refuses. */
  async present(proof: Proof): Promise<number | undefined> {
    const now = this.verifierSeconds;
    if (proof.issuedAtSeconds - SKEW_SECONDS > now) return undefined;
    if (now >= proof.expiresAtSeconds + SKEW_SECONDS) return undefined;
    await redis.set('{0}time', this.serverSeconds);
    const bucket = `${KEYS.bucketPrefix}${Math.floor(proof.expiresAtSeconds / 32)}`;
    const code = Number(
      await redis.eval(
        ...([consumeLua, 4, KEYS.epoch, bucket, `${KEYS.quotaPrefix}holder`] as const),
        ...[`${KEYS.subjectQuotaPrefix}subject`, proof.id, 'nonce'],
        ...[
          proof.issuedAtSeconds,
          proof.expiresAtSeconds,
          SKEW_SECONDS,
          now,
          1e9,
          SKEW_SECONDS,
          0,
          this.latestIssuedAt,
          0,
          1e9,
        ],
      ),
    );
    if (code === CONSUME_CODES.consumed) {
      proof.consumed += 1;
      this.#consumedAt.push([this.trueSeconds, proof.issuedAtSeconds]);
    }
    return code;
  }

  async look(): Promise<readonly unknown[]> {
    await redis.set('{0}time', this.serverSeconds);
    const args = [
      KEYS.bucketPrefix,
      SKEW_SECONDS,
      this.verifierSeconds,
      SKEW_SECONDS,
      0,
      this.latestIssuedAt,
      0,
    ];
    const reply = await redis.eval(prepareLua, 1, KEYS.epoch, ...args);
    return Array.isArray(reply) ? reply : [];
  }

  /** Time goes by, and verifiers look. */
  async pass(seconds: number): Promise<void> {
    for (let left = seconds; left > 0; left -= LOOK_SECONDS) {
      this.trueSeconds += Math.min(left, LOOK_SECONDS);
      await this.look();
    }
  }

  async loseData(): Promise<void> {
    await redis.flushall();
  }
}

type Step =
  | { readonly kind: 'pass' | 'sleep'; readonly seconds: number }
  | { readonly kind: 'server' | 'verifier' | 'both'; readonly offset: number }
  | { readonly kind: 'sign'; readonly lifeSeconds: number; readonly byVerifierClock: boolean }
  | { readonly kind: 'present'; readonly which: number }
  | { readonly kind: 'presentAll' | 'lose' };

const offset = fc.oneof(
  fc.constant(0),
  fc.integer({ min: -15, max: 15 }),
  fc.integer({ min: -400, max: 400 }),
  fc.integer({ min: -100_000, max: 100_000 }),
);
const lifeSeconds = fc.oneof(fc.constant(60), fc.integer({ min: 1, max: 300 }));
const pass = fc.record({ kind: fc.constantFrom('pass' as const), seconds: fc.integer({ min: 0, max: 120 }) });
const both = fc.record({ kind: fc.constant('both' as const), offset });
const present = fc.record({ kind: fc.constant('present' as const), which: fc.nat({ max: 30 }) });
const presentAll = fc.constant({ kind: 'presentAll' as const });

async function take(world: World, step: Step): Promise<void> {
  switch (step.kind) {
    case 'pass':
      return await world.pass(step.seconds);
    case 'sleep':
      world.trueSeconds += step.seconds;
      return;
    case 'server':
      world.serverOffset = step.offset;
      return;
    case 'verifier':
      world.verifierOffset = step.offset;
      return;
    case 'both':
      world.serverOffset = step.offset;
      world.verifierOffset = step.offset;
      return;
    case 'sign': {
      const clockSeconds = step.byVerifierClock ? world.verifierSeconds : world.trueSeconds;
      await world.present(world.sign(step.lifeSeconds, clockSeconds));
      return;
    }
    case 'present': {
      const proof = world.proofs[step.which % Math.max(1, world.proofs.length)];
      if (proof !== undefined) await world.present(proof);
      return;
    }
    case 'presentAll':
      for (const proof of world.proofs) await world.present(proof);
      return;
    case 'lose':
      await world.loseData();
  }
}

async function consumedTwice(steps: readonly Step[]): Promise<{ twice: string[]; consumed: number }> {
  await redis.flushall();
  const world = new World();
  await world.look();
  await world.pass(2 * SKEW_SECONDS + 1);
  for (const step of steps) await take(world, step);
  await take(world, { kind: 'presentAll' });
  return {
    twice: world.proofs.filter(({ consumed }) => consumed > 1).map(({ id }) => id),
    consumed: world.proofs.filter(({ consumed }) => consumed === 1).length,
  };
}

describe('the replay scripts: clocks', () => {
  it('consume nothing twice whatever all clocks do, watched or not, while no data is lost', async () => {
    const sign = fc.record({
      kind: fc.constant('sign' as const),
      lifeSeconds,
      byVerifierClock: fc.boolean(),
    });
    const alone = fc.record({ kind: fc.constantFrom('server' as const, 'verifier' as const), offset });
    const sleep = fc.record({
      kind: fc.constant('sleep' as const),
      seconds: fc.integer({ min: 0, max: 700 }),
    });
    const step: fc.Arbitrary<Step> = fc.oneof(sign, sign, present, presentAll, both, alone, pass, sleep);
    let consumed = 0;
    const property = fc.asyncProperty(fc.array(step, { minLength: 5, maxLength: 40 }), async (steps) => {
      const found = await consumedTwice(steps);
      consumed += found.consumed;
      expect(found.twice).toEqual([]);
    });
    await fc.assert(property, { numRuns: 400 });
    expect(consumed).toBeGreaterThan(200);
  });

  it('consume nothing twice when data is lost under wrong clocks, whatever they do then', async () => {
    const sign = fc.record({
      kind: fc.constant('sign' as const),
      lifeSeconds,
      byVerifierClock: fc.constant(false),
    });
    const lose = fc.constant({ kind: 'lose' as const });
    const step: fc.Arbitrary<Step> = fc.oneof(sign, sign, present, presentAll, both, pass, pass, lose);
    let consumed = 0;
    const property = fc.asyncProperty(fc.array(step, { minLength: 5, maxLength: 40 }), async (steps) => {
      const found = await consumedTwice(steps);
      consumed += found.consumed;
      expect(found.twice).toEqual([]);
    });
    await fc.assert(property, { numRuns: 400 });
    expect(consumed).toBeGreaterThan(100);
  });
});

async function readyWorld(): Promise<World> {
  const world = new World();
  await world.look();
  await world.pass(2 * SKEW_SECONDS + 1);
  expect(await world.present(world.sign(60))).toBe(CONSUME_CODES.consumed);
  return world;
}

describe('the replay scripts: one jump each', () => {
  it('refuse a proof whose record was deleted by a clock ahead, when its time is lived through again', async () => {
    const world = await readyWorld();
    const proof = world.sign(300);
    expect(await world.present(proof)).toBe(CONSUME_CODES.consumed);
    await take(world, { kind: 'both', offset: 2_000 });
    await world.pass(700);
    expect(await redis.keys(`${KEYS.bucketPrefix}*`)).toEqual([]);
    await take(world, { kind: 'both', offset: -800 });
    await world.look();
    await world.pass(150);
    expect(world.verifierSeconds).toBeLessThan(proof.expiresAtSeconds);
    expect(await world.present(proof)).toBe(CONSUME_CODES.fenced);
  });

  it('fence anew when a clock that was behind at the loss is put right', async () => {
    const world = await readyWorld();
    const proof = world.sign(300);
    expect(await world.present(proof)).toBe(CONSUME_CODES.consumed);
    await take(world, { kind: 'both', offset: -3_600 });
    // The machine starts anew, with a wrong clock.
    await world.loseData();
    world.restartVerifiers();
    await world.pass(20);
    await take(world, { kind: 'both', offset: 0 });
    expect(await world.present(proof)).toBe(CONSUME_CODES.raised);
    await world.pass(2 * SKEW_SECONDS + 1);
    expect(await world.present(proof)).toBe(CONSUME_CODES.fenced);
    expect(await world.present(world.sign(60))).toBe(CONSUME_CODES.consumed);
  });

  it('fence what was consumed before clocks went back and data was lost', async () => {
    const world = await readyWorld();
    const proof = world.sign(60);
    expect(await world.present(proof)).toBe(CONSUME_CODES.consumed);
    await take(world, { kind: 'both', offset: -16 });
    await world.loseData();
    await world.look();
    await world.pass(12);
    expect(await world.present(proof)).toBe(CONSUME_CODES.fenced);
    await world.pass(16 + 2 * SKEW_SECONDS);
    expect(await world.present(proof)).toBe(CONSUME_CODES.fenced);
    // Its holder's clock is right: its proofs are valid once our clocks are right.
    await take(world, { kind: 'both', offset: 0 });
    await world.look();
    await world.pass(2 * SKEW_SECONDS + 1);
    expect(await world.present(world.sign(60))).toBe(CONSUME_CODES.consumed);
  });

  it('fence when a hash that should be there is not', async () => {
    const world = await readyWorld();
    const proof = world.sign(60);
    expect(await world.present(proof)).toBe(CONSUME_CODES.consumed);
    await redis.del(...(await redis.keys(`${KEYS.bucketPrefix}*`)));
    expect(await world.present(proof)).toBe(CONSUME_CODES.raised);
    expect(await world.present(proof)).toBe(CONSUME_CODES.fenced);
  });

  it('find the records again when only the epoch was deleted, and delete them in their time', async () => {
    const world = await readyWorld();
    const proof = world.sign(300);
    expect(await world.present(proof)).toBe(CONSUME_CODES.consumed);
    await redis.del(KEYS.epoch);
    expect(await world.present(proof)).toBe(CONSUME_CODES.raised);
    await world.pass(300 + 32 + 3 * SKEW_SECONDS + 2 + LOOK_SECONDS);
    expect(await redis.keys(`${KEYS.bucketPrefix}*`)).toEqual([]);
  });
});

describe('the replay scripts: service after a jump', () => {
  it('resumes within the fence after clocks were ahead together for up to 300 s, and remembers', async () => {
    const world = await readyWorld();
    const before = world.sign(300);
    expect(await world.present(before)).toBe(CONSUME_CODES.consumed);
    await take(world, { kind: 'both', offset: 86_400 });
    await world.pass(100);
    await take(world, { kind: 'both', offset: 0 });
    await world.look();
    await world.pass(2 * SKEW_SECONDS + 1);
    expect(await world.present(world.sign(60))).toBe(CONSUME_CODES.consumed);
    expect(await world.present(before)).not.toBe(CONSUME_CODES.consumed);
  });

  it('is not disturbed by a jump of one clock alone: refuses during it, remembers and serves after it', async () => {
    for (const kind of ['server', 'verifier'] as const) {
      await redis.flushall();
      const world = await readyWorld();
      const before = world.sign(300);
      expect(await world.present(before)).toBe(CONSUME_CODES.consumed);
      await take(world, { kind, offset: 3_000 });
      const [, moment] = await world.look();
      expect(moment).toBe(0);
      world.trueSeconds += 30;
      if (kind === 'server') expect(await world.present(world.sign(60))).toBe(CONSUME_CODES.clock);
      await take(world, { kind, offset: 0 });
      expect(await world.present(before)).not.toBe(CONSUME_CODES.consumed);
      await world.pass(2 * SKEW_SECONDS + 1);
      expect(await world.present(world.sign(60))).toBe(CONSUME_CODES.consumed);
    }
  });

  it('waits for time to catch up after clocks were ahead for longer, and says so; the operator may end that', async () => {
    const world = await readyWorld();
    await take(world, { kind: 'both', offset: 2_000 });
    await world.pass(50);
    // Proofs by the wrong clock, so that there is something to delete.
    expect(await world.present(world.sign(60, world.verifierSeconds))).toBe(CONSUME_CODES.consumed);
    await world.pass(450);
    await take(world, { kind: 'both', offset: 0 });
    await world.pass(2 * SKEW_SECONDS + 1);
    expect(await world.present(world.sign(60))).toBe(CONSUME_CODES.fenced);
    const [, , , , lowest] = await world.look();
    expect(Number(lowest)).toBeGreaterThan(world.trueSeconds + 60);
    await redis.del(KEYS.epoch);
    world.restartVerifiers();
    await world.look();
    await world.pass(2 * SKEW_SECONDS + 1);
    expect(await world.present(world.sign(60))).toBe(CONSUME_CODES.consumed);
  });

  it.each([0, 700])(
    'fences a verifier that comes after %i s and a quiet night, for twice the skew',
    async (seconds) => {
      const world = await readyWorld();
      await world.pass(seconds);
      world.trueSeconds += 8 * 3_600;
      const early = world.sign(60);
      expect(await world.present(early)).toBe(CONSUME_CODES.raised);
      await world.pass(2 * SKEW_SECONDS + 1);
      expect(await world.present(early)).toBe(CONSUME_CODES.fenced);
      expect(await world.present(world.sign(60))).toBe(CONSUME_CODES.consumed);
    },
  );

  it('is not disturbed by looks that come 10 s apart, and is by 11 s', async () => {
    const world = await readyWorld();
    for (let look = 0; look < 3; look += 1) {
      world.trueSeconds += 10;
      expect(await world.present(world.sign(60))).toBe(CONSUME_CODES.consumed);
    }
    world.trueSeconds += 11;
    expect(await world.present(world.sign(60))).toBe(CONSUME_CODES.raised);
  });

  it('deletes what is over', async () => {
    const world = await readyWorld();
    expect(await redis.keys(`${KEYS.bucketPrefix}*`)).toHaveLength(1);
    await world.pass(60 + 32 + 3 * SKEW_SECONDS + 2 + LOOK_SECONDS);
    expect(await redis.keys(`${KEYS.bucketPrefix}*`)).toEqual([]);
  });
});
