/**
 * Documents cut off at every byte, at every way into a verifier. In short at some of them, and at all of the last ones;
 * `PROOFGATE_TEST_CORRUPTIONS` (`make soak`) says that it is to be every byte.
 */
import { afterEach, describe, expect, it } from '@jest/globals';
import { newSignedChain, TARGETS } from './signed-chain.ts';
import { STATION_NAMES, STATIONS } from './stations/all.ts';
import { Tester } from './tester.ts';

const STRIDE = process.env.PROOFGATE_TEST_CORRUPTIONS === undefined ? 29 : 1;
/** The end of an envelope: where what is missing may not be missed. */
const LAST_BYTES = 12;
const chain = newSignedChain();

let tester: Tester | undefined;
afterEach(() => tester?.close());

describe.each(STATION_NAMES)('from %s', (name) => {
  it.each(TARGETS)(
    'a %s that was cut off is not taken',
    async (target) => {
      const trying = new Tester(chain, target, STATIONS[name]);
      tester = trying;
      const whole = chain.documents[target];
      for (let length = 0; length < whole.length && !trying.isOver; length++) {
        if (length % STRIDE !== 0 && length < whole.length - LAST_BYTES) continue;
        // Without its final line feed the JSON is complete and means the same.
        const expected = (isAsSigned: boolean) => (isAsSigned ? 'taken' : 'refused');
        await trying.offer(whole.subarray(0, length), expected, `the first ${length} bytes`);
      }
      const { findings, offered, taken } = trying.trials;
      expect(offered).toBeGreaterThanOrEqual(whole.length / STRIDE);
      expect(taken).toBeLessThanOrEqual(1);
      await trying.offerSound();
      expect(findings).toEqual([]);
    },
    STRIDE === 1 ? 1_200_000 : 60_000,
  );
});
