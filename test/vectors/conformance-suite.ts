/** Runs every vector at any enforcement point: outcome, reason, detail and status, and what the upstream receives. */
import { describe, expect, it } from '@jest/globals';
import {
  ALLOWED,
  type Answered,
  DENIED,
  REPLAY,
  withoutStep,
} from '../support/protocol/published-vectors.ts';
import { type Bench, type Circumstances, createBench, storeOf } from './bench.ts';
import type { Expected, ReceivedRequest } from './make/format.ts';

/** Puts a request to the bench's verifier, in the circumstances that are set. */
export type AskEnforcementPoint = (request: ReceivedRequest, bench: Bench) => Promise<Answered>;

export function describeVectors(point: string, ask: AskEnforcementPoint): void {
  const bench = createBench();

  async function expectAnswer(request: ReceivedRequest, circumstances: Circumstances, expected: Expected) {
    await bench.set(circumstances);
    expect(await ask(request, bench)).toEqual(withoutStep(expected));
    expect(bench.internalErrors).toEqual([]);
  }

  describe.each([
    ['allowed', ALLOWED],
    ['denied', DENIED],
  ] as const)(`${point}: %s`, (_, vectors) => {
    it.each(vectors.map((vector) => [vector.name, vector] as const))('%s', async (_name, vector) => {
      const { bundle, expected, now: nowSeconds, request } = vector;
      const realtimeStalenessSeconds = vector.realtime_staleness_seconds;
      const store = storeOf(null, nowSeconds);
      await expectAnswer(request, { bundle, nowSeconds, realtimeStalenessSeconds, store }, expected);
    });
  });

  describe(`${point}: one after the other`, () => {
    it.each(REPLAY.map((vector) => [vector.name, vector] as const))('%s', async (_name, vector) => {
      const { bundle, steps, store: begun } = vector;
      const store = storeOf(begun, steps[0]?.now ?? 0);
      for (const { expected, now: nowSeconds, request } of steps) {
        const realtimeStalenessSeconds = vector.realtime_staleness_seconds;
        await expectAnswer(request, { bundle, nowSeconds, realtimeStalenessSeconds, store }, expected);
      }
    });
  });
}
