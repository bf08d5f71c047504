/** Offers documents one after the other, and judges what each did to what is loaded. */
import { isDeepStrictEqual } from 'node:util';
import type { SignedChain, Target } from './signed-chain.ts';
import type { Loaded, OpenStation, Station } from './stations/station.ts';

/** The possible results of a document besides rejection. */
export type Expected = 'refused' | 'taken' | 'either';

export interface Trials {
  offered: number;
  refused: number;
  /** Documents that held just what was signed, and were taken. */
  taken: number;
  /** A description of each offer with a wrong result. */
  readonly findings: string[];
}

const MOST_FINDINGS = 5;

export class Tester {
  readonly trials: Trials = { offered: 0, refused: 0, taken: 0, findings: [] };
  readonly #chain: SignedChain;
  readonly #target: Target;
  readonly #open: OpenStation;
  #station: Station | undefined;

  constructor(chain: SignedChain, target: Target, open: OpenStation) {
    this.#chain = chain;
    this.#target = target;
    this.#open = open;
  }

  get isOver(): boolean {
    return this.trials.findings.length >= MOST_FINDINGS;
  }

  async station(): Promise<Station> {
    this.#station ??= await this.#open(this.#chain, this.#target);
    return this.#station;
  }

  /** @param name for the finding, with all that it takes to do it again */
  async offer(bytes: Buffer, expected: (isAsSigned: boolean) => Expected, name: string): Promise<void> {
    const station = await this.station();
    await station.prepare?.();
    const { after, before } = station;
    if (isDeepStrictEqual(before, after)) throw new Error('nothing would be seen');
    const loaded = await station.offer(bytes);
    this.trials.offered += 1;
    const outcome = outcomeOf(loaded, before, after);
    const wanted = expected(station.isAsSigned(bytes));
    if (outcome === 'refused' || outcome === 'taken') this.trials[outcome] += 1;
    if (outcome !== wanted && (wanted !== 'either' || outcome === 'other')) {
      this.trials.findings.push(`${name}: ${outcome}, not ${wanted}`);
    }
    if (outcome !== 'refused') await this.close();
  }

  /** The sound document, the same way: what was refused before has not spoilt that. */
  offerSound(): Promise<void> {
    return this.offer(this.#chain.documents[this.#target], () => 'taken', 'the sound document');
  }

  async close(): Promise<void> {
    await this.#station?.close();
    this.#station = undefined;
  }
}

/** `other`: neither what was loaded before nor what the sound document leads to. */
function outcomeOf(loaded: Loaded, before: Loaded, after: Loaded): 'refused' | 'taken' | 'other' {
  if (isDeepStrictEqual(loaded, before)) return 'refused';
  return isDeepStrictEqual(loaded, after) ? 'taken' : 'other';
}
