/**
 * Documents that were damaged or forged, at every way into a verifier: nothing but what was signed is ever loaded, and what
 * was loaded before stays. `PROOFGATE_TEST_CORRUPTIONS` says how many at each way (`make soak`), `PROOFGATE_TEST_SEED`
 * repeats a run.
 */
import { afterAll, afterEach, describe, expect, it } from '@jest/globals';
import { corruption } from './corruptions.ts';
import { ALWAYS_TAKEN, NEVER_TAKEN } from './envelope-corruptions.ts';
import { newRandom, testSeed } from './random.ts';
import { newSignedChain, TARGETS } from './signed-chain.ts';
import { STATION_NAMES, STATIONS } from './stations/all.ts';
import { type Expected, Tester } from './tester.ts';

const CORRUPTIONS = Number(process.env.PROOFGATE_TEST_CORRUPTIONS ?? 350);
const TIMEOUT_MS = 60_000 + CORRUPTIONS * 60;
const seed = testSeed();
const chain = newSignedChain();

const figures: Record<string, unknown> = { seed };
let tester: Tester | undefined;
afterEach(() => tester?.close());
afterAll(() => {
  process.stdout.write(`corruptions: ${JSON.stringify(figures)}\n`);
});

function expectedOf(kind: string): (isAsSigned: boolean) => Expected {
  return (isAsSigned) => {
    if (!isAsSigned || NEVER_TAKEN.has(kind)) return 'refused';
    return ALWAYS_TAKEN.has(kind) ? 'taken' : 'either';
  };
}

describe.each(STATION_NAMES)('from %s', (name) => {
  it.each(TARGETS)(
    'a %s that was damaged or forged is not taken, and nothing else is',
    async (target) => {
      const trying = new Tester(chain, target, STATIONS[name]);
      tester = trying;
      const random = newRandom(seed ^ TARGETS.indexOf(target));
      const count = Math.ceil(CORRUPTIONS / TARGETS.length);
      for (let number = 0; number < count && !trying.isOver; number++) {
        const { bytes, kind } = corruption(chain, target, random);
        await trying.offer(bytes, expectedOf(kind), `seed ${seed}, number ${number}, ${kind}`);
      }
      // The last document may have been taken without a further offer. This invalid one triggers the check of what served then.
      await trying.offer(Buffer.from('{}\n'), () => 'refused', 'no document at all');
      const request = (await trying.station()).request();
      const { findings, offered, refused, taken } = trying.trials;
      figures[`${name}: ${target}`] = { offered, refused, taken };
      await trying.offerSound();
      expect(findings).toEqual([]);
      // The verifier keeps serving what it loaded; a start that found no valid document serves no request.
      const isEmpty = name === 'the state directory' && target !== 'freshness.jws';
      expect(request).toBe(isEmpty ? 'bundle_policy_missing 503' : 'allowed');
      expect(refused).toBeGreaterThan(count / 2);
    },
    TIMEOUT_MS,
  );
});
