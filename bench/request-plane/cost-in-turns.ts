/** Measures the cost of one kind of request as a multiple of another's, with slices of each in turns. */
import { measureInTurns, type Pairs } from './in-turns.ts';
import { costOf, type GrpcTarget } from './load.ts';

const PAIRS = 15;
const MOST_PAIRS = 24;
export const REQUESTS_A_SLICE = 2_000;
export const SLICES = `${PAIRS} slices of ${REQUESTS_A_SLICE} requests`;

export interface Load {
  readonly target: GrpcTarget;
  readonly requests: readonly Buffer[];
}

export interface CostTurns {
  /** Microseconds of CPU for one request, a figure each slice. */
  readonly subject: readonly number[];
  readonly base: readonly number[];
  /** Of the subject over the base, for each pair, for a machine's speed drifts from pair to pair. */
  readonly ratios: readonly number[];
}

/** @param base made ready and sent before the first of the subject */
export async function costInTurns(base: () => Load, subject: () => Load): Promise<CostTurns> {
  const slice = ({ requests, target }: Load) => {
    return async () => (await costOf(target, requests)).cpuUs;
  };
  const measured: Pairs<number> = await measureInTurns({
    first: () => slice(base()),
    second: () => slice(subject()),
    pairs: PAIRS,
    mostPairs: MOST_PAIRS,
  });
  return {
    subject: measured.second,
    base: measured.first,
    ratios: ratios(measured.second, measured.first),
  };
}

/** The ratio of each sample to its neighbour. */
export function ratios(subjects: readonly number[], bases: readonly number[]): number[] {
  return subjects.map((subject, pair) => subject / (bases[pair] ?? Number.NaN));
}
