/**
 * Documents that were damaged or forged, at every way into a verifier: nothing but what was signed is ever loaded, and what
 * was loaded before stays. `PROOFGATE_TEST_CORRUPTIONS` says how many at each way (`make soak`), `PROOFGATE_TEST_SEED`
 * repeats a run.
 */
import { afterAll, afterEach, describe, expect, it } from '@jest/globals';
import {
  BYTE_CORRUPTIONS,
  newRandom,
  type Random,
  testSeed,
} from '../../../support/bundle/byte-corruptions.ts';
import { ALWAYS_TAKEN, ENVELOPE_CORRUPTIONS, NEVER_TAKEN } from './envelope-corruptions.ts';
import { newSignedChain, TARGETS, type Target } from './signed-chain.ts';
import { openControlStation } from './stations/control-station.ts';
import { openDirectoryStation } from './stations/directory-station.ts';
import { openStateStation } from './stations/state-station.ts';
import { type Expected, Tester } from './tester.ts';

const STATIONS = [
  ['the local directory', openDirectoryStation],
  ['the state directory', openStateStation],
  ['a hostile Control', openControlStation],
] as const;
const CORRUPTIONS = Number(process.env.PROOFGATE_TEST_CORRUPTIONS ?? 150);
const TIMEOUT_MS = 300_000 + CORRUPTIONS * 60;
/** Without the variable, documents are cut at some of their bytes, and at all of the last ones. */
const STRIDE = process.env.PROOFGATE_TEST_CORRUPTIONS === undefined ? 71 : 1;
/** The end of an envelope: where what is missing may not be missed. */
const LAST_BYTES = 12;
const seed = testSeed();
const chain = newSignedChain();

const figures: Record<string, unknown> = { seed };
let tester: Tester | undefined;
afterEach(() => tester?.close());
afterAll(() => {
  process.stdout.write(`corruptions: ${JSON.stringify(figures)}\n`);
});

/** Half of them know what they change. */
function corruption(target: Target, random: Random): { readonly kind: string; readonly bytes: Buffer } {
  const all = target.endsWith('.jws') && random.int(2) === 0 ? ENVELOPE_CORRUPTIONS : BYTE_CORRUPTIONS;
  const kind = random.pick(Object.keys(all));
  const others = TARGETS.filter((name) => name !== target).map((name) => chain.documents[name]);
  const bytes = all[kind]?.({ bytes: chain.documents[target], others }, random);
  if (bytes === undefined) throw new Error('no such kind');
  return { kind, bytes };
}

function expectedOf(kind: string): (isAsSigned: boolean) => Expected {
  return (isAsSigned) => {
    if (!isAsSigned || NEVER_TAKEN.has(kind)) return 'refused';
    return ALWAYS_TAKEN.has(kind) ? 'taken' : 'either';
  };
}

describe.each(STATIONS)('from %s', (name, open) => {
  it.each(TARGETS)(
    'a %s that was damaged or forged is not taken, and nothing else is',
    async (target) => {
      const trying = new Tester(chain, target, open);
      tester = trying;
      const random = newRandom(seed ^ TARGETS.indexOf(target));
      const count = Math.ceil(CORRUPTIONS / TARGETS.length);
      for (let number = 0; number < count && !trying.isOver; number++) {
        const { bytes, kind } = corruption(target, random);
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

  it.each(TARGETS)(
    'a %s that was cut off at any byte is not taken',
    async (target) => {
      const trying = new Tester(chain, target, open);
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
    STRIDE === 1 ? 1_200_000 : 300_000,
  );
});
