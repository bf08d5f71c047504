/** Two subjects measured in turns, so that a machine whose speed drifts drifts for both. */
import { watchStolenTime } from '../machine.ts';

/** While the host gives more than this of the machine to others, the longest waits are the host's. */
const MOST_STOLEN = 0.005;

export interface Pairs<Sample> {
  readonly first: readonly Sample[];
  readonly second: readonly Sample[];
  /** Left out, because the host took the machine away meanwhile. */
  readonly disturbed: number;
}

export interface Turns<Sample> {
  readonly first: () => Promise<Slice<Sample>>;
  readonly second: () => Promise<Slice<Sample>>;
  readonly pairs: number;
  /** Disturbed ones included. */
  readonly mostPairs: number;
}

/** Everything is made ready before; what the function does is measured. */
export type Slice<Sample> = () => Promise<Sample>;

/** @throws when the machine was hardly ever ours */
export async function measureInTurns<Sample>(turns: Turns<Sample>): Promise<Pairs<Sample>> {
  const [first, second]: [Sample[], Sample[]] = [[], []];
  let disturbed = 0;
  while (first.length < turns.pairs && first.length + disturbed < turns.mostPairs) {
    const [one, other] = [await undisturbed(turns.first), await undisturbed(turns.second)];
    if (one === undefined || other === undefined) {
      disturbed += 1;
      continue;
    }
    first.push(one.sample);
    second.push(other.sample);
  }
  if (first.length * 2 < turns.pairs) {
    throw new Error(`void run: the host took the machine away in ${disturbed} of ${turns.mostPairs} pairs`);
  }
  return { first, second, disturbed };
}

async function undisturbed<Sample>(
  prepare: () => Promise<Slice<Sample>>,
): Promise<{ readonly sample: Sample } | undefined> {
  const slice = await prepare();
  const stolenShare = watchStolenTime();
  const sample = await slice();
  return stolenShare() > MOST_STOLEN ? undefined : { sample };
}
