import { describe, expect, it } from '@jest/globals';
import fc from 'fast-check';
import {
  createMemoryReplayStore,
  type MemoryReplayStoreOptions,
} from '../../../src/verifier/replay/memory.ts';
import { CONSUMED, REPLAYED, type ReplayOutcome, UNAVAILABLE } from '../../../src/verifier/replay/store.ts';
import { claimAt, randomIdentifier, SKEW_SECONDS } from './claims.ts';
import { describeReplayStore } from './replay-store-suite.ts';

const START_SECONDS = 1_800_000_000;
/** Histories of each kind of clock; `make soak` makes 300. */
const CLOCK_RUNS = Number(process.env.PROOFGATE_TEST_CLOCK_RUNS ?? 100);

function createAt(startSeconds: number, options: MemoryReplayStoreOptions = {}) {
  const clock = { seconds: startSeconds };
  const store = createMemoryReplayStore({ ...options, clockSeconds: () => clock.seconds });
  const consume = (claim: Parameters<typeof store.consume>[0]) => store.consume(claim) as ReplayOutcome;
  return { store, clock, consume };
}

describeReplayStore('memory', {
  create: async (options) => ({
    store: createAt(START_SECONDS, options).store,
    nowSeconds: () => START_SECONDS,
    fenceMomentSeconds: async () => START_SECONDS,
    fenceSkews: 1,
  }),
  destroy: (store) => store.close(),
});

describe('memory: keeping and forgetting', () => {
  it('starts its fence at the second in which it was created', () => {
    const { consume } = createAt(START_SECONDS + 0.9);
    const fenced = { issuedAtSeconds: START_SECONDS + SKEW_SECONDS };
    expect(consume(claimAt(START_SECONDS, fenced))).toEqual(UNAVAILABLE.fenced);
    const first = { issuedAtSeconds: START_SECONDS + SKEW_SECONDS + 1 };
    expect(consume(claimAt(START_SECONDS, first))).toEqual(CONSUMED);
  });

  it('keeps a record to the last second that it must, and frees its room then', () => {
    const { consume } = createAt(START_SECONDS, { maxRecords: 1 });
    const claim = claimAt(START_SECONDS);
    const keepUntil = claim.expiresAtSeconds + 3 * SKEW_SECONDS + 2;
    expect(consume(claim)).toEqual(CONSUMED);
    expect(consume({ ...claim, nowSeconds: keepUntil - 1 })).toEqual(REPLAYED);
    expect(consume(claimAt(keepUntil - 1))).toEqual(UNAVAILABLE.store);
    expect(consume(claimAt(keepUntil))).toEqual(CONSUMED);
  });

  it('refuses when full, forgets nothing for it, and says so', () => {
    const { store, clock, consume } = createAt(START_SECONDS, { maxRecords: 100 });
    clock.seconds += 20;
    const claims = Array.from({ length: 100 }, () => claimAt(clock.seconds));
    for (const claim of claims) expect(consume(claim)).toEqual(CONSUMED);
    expect(store.health()).toEqual({
      ready: false,
      problem: 'the embedded replay store is full (100 identifiers)',
    });
    expect(consume(claimAt(clock.seconds))).toEqual(UNAVAILABLE.store);
    for (const claim of claims) expect(consume(claim)).toEqual(REPLAYED);
    clock.seconds += 1000;
    expect(store.health()).toEqual({ ready: true });
  });

  it('keeps up with expiry at a steady rate without growing', () => {
    const { consume } = createAt(START_SECONDS, { maxRecords: 100 * 100 });
    for (let second = 0; second < 400; second += 1) {
      const now = START_SECONDS + 10 + second;
      for (let count = 0; count < 100; count += 1) {
        const claim = claimAt(now, { issuedAtSeconds: now, expiresAtSeconds: now + 60 });
        if (consume(claim).kind !== 'consumed') throw new Error(`refused after ${second} s`);
      }
    }
  });

  it('is not ready while every fresh proof is fenced', () => {
    const { store, clock } = createAt(START_SECONDS, { expectedSkewSeconds: () => 5 });
    expect(store.health()).toMatchObject({ ready: false, problem: expect.stringMatching(/another 6 s$/) });
    clock.seconds += 5;
    expect(store.health()).toMatchObject({ ready: false, problem: expect.stringMatching(/another 1 s$/) });
    clock.seconds += 1;
    expect(store.health()).toEqual({ ready: true });
  });

  it.each([
    { skewSeconds: 1, shownSeconds: 2 },
    { skewSeconds: 60, shownSeconds: 61 },
  ])('reckons with the site’s skew of $skewSeconds s once a bundle tells it', (known) => {
    let skewSeconds: number | undefined;
    const { store, clock } = createAt(START_SECONDS, { expectedSkewSeconds: () => skewSeconds });
    expect(store.health()).toMatchObject({ problem: expect.stringMatching(/another 6 s$/) });
    skewSeconds = known.skewSeconds;
    expect(store.health()).toMatchObject({
      problem: expect.stringMatching(new RegExp(`another ${known.shownSeconds} s$`)),
    });
    clock.seconds += known.skewSeconds + 1;
    expect(store.health()).toEqual({ ready: true });
  });

  it('refuses a claim whose times are no numbers', () => {
    const { consume } = createAt(START_SECONDS);
    for (const name of ['issuedAtSeconds', 'expiresAtSeconds', 'nowSeconds']) {
      expect(consume(claimAt(START_SECONDS, { [name]: Number.NaN }))).toEqual(UNAVAILABLE.fenced);
    }
  });
});

describe('memory: a clock that jumps', () => {
  it('fences a proof whose record was purged while the clock was ahead', () => {
    const { consume } = createAt(START_SECONDS);
    const now = START_SECONDS + 10;
    const claim = claimAt(now, { issuedAtSeconds: now, expiresAtSeconds: now + 60 });
    expect(consume(claim)).toEqual(CONSUMED);
    const ahead = now + 40_000_000;
    for (let count = 0; count < 200; count += 1) consume(claimAt(ahead));
    expect(consume({ ...claim, nowSeconds: now + 1 })).toEqual(UNAVAILABLE.fenced);
    // Only what may have been forgotten is fenced, not all until the clock is where it was.
    const fresh = claimAt(now + 2, { issuedAtSeconds: now + 2, expiresAtSeconds: now + 62 });
    expect(consume(fresh)).toEqual(CONSUMED);
    expect(consume(fresh)).toEqual(REPLAYED);
  });

  it('goes on freeing room after the clock was ahead', () => {
    const { consume } = createAt(START_SECONDS, { maxRecords: 1000 });
    for (let count = 0; count < 500; count += 1) consume(claimAt(START_SECONDS + 40_000_000));
    for (let second = 0; second < 3000; second += 1) {
      const now = START_SECONDS + 10 + second;
      const claim = claimAt(now, { issuedAtSeconds: now, expiresAtSeconds: now + 60 });
      expect(consume(claim)).toEqual(CONSUMED);
    }
  });

  it('gives a quota back a minute later, also after the clock was ahead', () => {
    const { consume } = createAt(START_SECONDS, { holderQuotaPerMinute: 1 });
    const holderThumbprint = randomIdentifier();
    const consumeAt = (now: number) => consume(claimAt(now, { holderThumbprint }));
    expect(consumeAt(START_SECONDS + 600)).toEqual(CONSUMED);
    expect(consumeAt(START_SECONDS + 600)).toEqual(UNAVAILABLE.quota);
    expect(consumeAt(START_SECONDS + 660)).toEqual(CONSUMED);
    // A request that was decided just before the minute changed counts in the new one.
    expect(consumeAt(START_SECONDS + 659)).toEqual(UNAVAILABLE.quota);
    expect(consumeAt(START_SECONDS + 40_000_000)).toEqual(CONSUMED);
    expect(consumeAt(START_SECONDS + 720)).toEqual(CONSUMED);
  });
});

describe('memory: whatever the clock and the skew do', () => {
  const creeping = fc.integer({ min: 0, max: 20 });
  const leaping = fc.constantFrom(-300, 300);
  const anyhow = fc.oneof(
    fc.integer({ min: -400, max: 400 }),
    fc.constantFrom(-40_000_000, -5000, 5000, 40_000_000),
  );
  const stepWith = (jumpSeconds: fc.Arbitrary<number>) =>
    fc.record({
      jumpSeconds,
      proof: fc.nat({ max: 3 }),
      startsInSeconds: fc.integer({ min: -60, max: 60 }),
      livesSeconds: fc.constantFrom(1, 10, 60, 300),
      skewSeconds: fc.constantFrom(1, 5, 60),
      fillers: fc.constantFrom(0, 0, 1, 100),
    });
  const clocks: readonly (readonly [string, fc.Arbitrary<number>])[] = [
    ['creeps', creeping],
    ['leaps', fc.oneof({ weight: 2, arbitrary: creeping }, { weight: 1, arbitrary: leaping })],
    ['does anything', fc.oneof({ weight: 3, arbitrary: creeping }, { weight: 1, arbitrary: anyhow })],
  ];

  it.each(clocks)('consumes no proof twice when the clock %s', (_name, jumpSeconds) => {
    fc.assert(
      fc.property(fc.array(stepWith(jumpSeconds), { minLength: 10, maxLength: 80 }), (steps) => {
        const { consume } = createAt(START_SECONDS, { maxRecords: 64 });
        const consumed = new Set<string>();
        const proofs = new Map<number, ReturnType<typeof claimAt>>();
        let now = START_SECONDS;
        for (const { jumpSeconds, proof, startsInSeconds, livesSeconds, skewSeconds, fillers } of steps) {
          now += jumpSeconds;
          for (let count = 0; count < fillers; count += 1) {
            consume(claimAt(now, { issuedAtSeconds: now, expiresAtSeconds: now + 1, skewSeconds }));
          }
          const issuedAtSeconds = now + startsInSeconds;
          const expiresAtSeconds = issuedAtSeconds + livesSeconds;
          const known = proofs.get(proof) ?? claimAt(now, { issuedAtSeconds, expiresAtSeconds });
          proofs.set(proof, known);
          const isValid =
            known.issuedAtSeconds - skewSeconds <= now && now < known.expiresAtSeconds + skewSeconds;
          // The pipeline asks the store about valid proofs only.
          if (!isValid) {
            if (!consumed.has(known.identifier)) proofs.delete(proof);
            continue;
          }
          const outcome = consume({ ...known, skewSeconds, nowSeconds: now });
          if (outcome.kind !== 'consumed') continue;
          expect(consumed.has(known.identifier)).toBe(false);
          consumed.add(known.identifier);
        }
      }),
      { numRuns: CLOCK_RUNS },
    );
  });
});
