/**
 * Tests that no receipt is effective while any verifier could allow a request of the revoked key, and that no target has a
 * revocation while a verifier that Control knows could, under random schedules of polls, losses, restarts, restored state
 * directories, scaling, evictions and clock skew. `PROOFGATE_TEST_SCHEDULES` sets their number.
 */
import { expect, it } from '@jest/globals';
import { Random } from '../../support/random.ts';
import { Model } from './receipt-model.ts';

const SCHEDULES = Number(process.env.PROOFGATE_TEST_SCHEDULES ?? 50);
const FIRST = Number(process.env.PROOFGATE_TEST_SEED ?? 1);
const STEPS = 60;

it('no receipt is effective while a verifier could allow', async () => {
  let effective = 0;
  for (let seed = FIRST; seed < FIRST + SCHEDULES; seed++) {
    const model = await Model.open(new Random(seed));
    try {
      for (let step = 0; step < STEPS; step++) {
        await model.step();
        const contradiction = await model.contradiction();
        expect([seed, step, contradiction]).toEqual([seed, step, undefined]);
      }
      effective += await model.effective();
    } finally {
      await model.close();
    }
  }
  // Schedules show something only if receipts become effective before the key ends.
  expect(effective).toBeGreaterThan(SCHEDULES / 2);
});
