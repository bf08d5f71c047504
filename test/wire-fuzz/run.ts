/** What all runs share: their seed, how many requests they send, and how much memory a program may need for them. */
import { readFileSync } from 'node:fs';
import fc from 'fast-check';
import type { Http1Case, Http2Case } from '../support/hostile/cases.ts';

/** At each point and program. */
export const REQUESTS = Number(process.env.PROOFGATE_TEST_REQUESTS ?? 1_500);
/** The same in each run, so that a change is to blame for a failure; `make soak` draws another. */
export const SEED = Number(process.env.PROOFGATE_TEST_SEED ?? 1);

/** For 48 connections with heads of up to 64 KiB and bodies of a few KiB; a program needs most of it before the first request. */
export const MAX_RESIDENT_MIB = 400;

export function highestResidentMib(pid: number): number {
  const status = readFileSync(`/proc/${pid}/status`, 'utf8');
  return Number(/^VmHWM:\s+(\d+) kB/m.exec(status)?.[1]) / 1_024;
}

/** As many cases as have this many requests. */
export function casesOf<T extends Http1Case | Http2Case>(
  arbitrary: fc.Arbitrary<Omit<T, 'name'>>,
  requests: number,
): readonly T[] {
  const drawn = fc.sample(arbitrary, { seed: SEED, numRuns: requests });
  let count = 0;
  const enough = drawn.filter(({ signs }) => {
    count += signs.length;
    return count - signs.length < requests;
  });
  return enough.map((one, index) => ({ ...one, name: `generated ${index}` }) as T);
}
