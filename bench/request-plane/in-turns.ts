/** Two subjects measured in turns, each as often before the other as after it, so that a machine whose speed drifts drifts for both. */
import { watchStolenTime } from '../machine.ts';
import { type Figure, figure } from '../report.ts';
import { percentile } from '../statistics.ts';

/** While the host gives more than this of the machine to others, the longest waits are the host's. */
const MOST_STOLEN = 0.005;

export interface Pairs<Sample> {
  readonly first: readonly Sample[];
  readonly second: readonly Sample[];
  /** Left out, because the host took the machine away for longer meanwhile than in those that count. */
  readonly leftOut: number;
  /** The share of the machine's time that its host took during each counted pair, 0 to 1. */
  readonly stolenShares: readonly number[];
}

/** Which goes first changes from pair to pair; in the first pair it is `first`. */
export interface Turns<Sample> {
  readonly first: () => Slice<Sample>;
  readonly second: () => Slice<Sample>;
  /** Number of pairs that count. */
  readonly pairs: number;
  /** So many are measured at most until as many were undisturbed; then those that were least disturbed count. */
  readonly mostPairs: number;
}

/** Everything is made ready before; what the function does is measured. */
type Slice<Sample> = () => Promise<Sample>;

interface Measured<Sample> {
  readonly sample: Sample;
  readonly stolenShare: number;
}

interface Pair<Sample> {
  readonly samples: readonly [Sample, Sample];
  readonly stolenShare: number;
}

export async function measureInTurns<Sample>(turns: Turns<Sample>): Promise<Pairs<Sample>> {
  const measured: Pair<Sample>[] = [];
  const undisturbed = () => measured.filter(({ stolenShare }) => stolenShare <= MOST_STOLEN).length;
  while (undisturbed() < turns.pairs && measured.length < turns.mostPairs) {
    measured.push(await measurePair(turns, measured.length % 2 === 1));
  }
  const counted = measured.sort((a, b) => a.stolenShare - b.stolenShare).slice(0, turns.pairs);
  return {
    first: counted.map(({ samples }) => samples[0]),
    second: counted.map(({ samples }) => samples[1]),
    leftOut: measured.length - counted.length,
    stolenShares: counted.map(({ stolenShare }) => stolenShare),
  };
}

async function measurePair<Sample>(
  { first, second }: Turns<Sample>,
  secondGoesFirst: boolean,
): Promise<Pair<Sample>> {
  const before = secondGoesFirst ? await measure(second()) : undefined;
  const one = await measure(first());
  const other = before ?? (await measure(second()));
  return {
    samples: [one.sample, other.sample],
    stolenShare: Math.max(one.stolenShare, other.stolenShare),
  };
}

async function measure<Sample>(slice: Slice<Sample>): Promise<Measured<Sample>> {
  const stolenShare = watchStolenTime();
  const sample = await slice();
  return { sample, stolenShare: stolenShare() };
}

/** @param slices each ascending @param share 0 to 1 */
export function percentiles(slices: readonly (readonly number[])[], share: number): number[] {
  return slices.map((slice) => percentile(slice, share));
}

/** How far the host was in what counts, and how much does not. */
export function disturbance({ leftOut, stolenShares }: Pairs<unknown>, prefix = ''): readonly Figure[] {
  const stolenPercent = stolenShares.map((share) => share * 100);
  return [
    figure(`${prefix}of the machine, taken away by its host meanwhile`, '%', stolenPercent),
    figure(`${prefix}pairs of slices left out, more of it taken away in them`, '', [leftOut]),
  ];
}
