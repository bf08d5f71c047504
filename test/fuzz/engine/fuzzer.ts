/** Coverage-guided fuzzing: it keeps inputs that reach a new edge and mutates them further. The same seed gives the same run. */
import { Random } from '../../support/random.ts';
import { type FuzzTarget, STEPS_FOR_NOTHING } from '../target.ts';
import { beginExecution, type ComparedPair, endExecution, type Observed } from './coverage.ts';
import { mutate } from './mutator.ts';

export interface FuzzOptions {
  readonly runs: number;
  readonly seed: number;
  readonly onProgress?: (executions: number, kept: number) => void;
}

export interface FuzzResult {
  readonly executions: number;
  /** Inputs that reached something. */
  readonly kept: number;
  readonly maxSteps: number;
  readonly finding: Finding | undefined;
}

export interface Finding {
  readonly input: Buffer;
  readonly error: Error;
}

interface Kept {
  readonly input: Buffer;
  readonly pairs: readonly ComparedPair[];
}

const PROGRESS_EVERY = 100_000;

/** Stops at the first finding. */
export async function fuzz(target: FuzzTarget, { onProgress, runs, seed }: FuzzOptions): Promise<FuzzResult> {
  const random = new Random(seed);
  const corpus: Kept[] = [];
  const dictionary = [...target.dictionary, '\0', '\n', ' '].map((word) => Buffer.from(word, 'latin1'));
  let maxSteps = 0;
  const next = (executions: number): Buffer => {
    const given = target.seeds[executions];
    if (given !== undefined) return given;
    const { input, pairs } = pickOf(corpus, random);
    const other = () => pickOf(corpus, random).input;
    return mutate(input, { random, dictionary, pairs, other, maxBytes: target.maxBytes });
  };
  for (let executions = 0; executions < runs; executions++) {
    const input = next(executions);
    const { error, observed } = await execute(target, input);
    maxSteps = Math.max(maxSteps, observed.steps);
    if (error !== undefined) {
      const smallest = await cutDown(target, input, error);
      return {
        executions: executions + 1,
        kept: corpus.length,
        maxSteps,
        finding: { input: smallest, error },
      };
    }
    if (observed.isNew || executions === 0) corpus.push({ input: Buffer.from(input), pairs: observed.pairs });
    if ((executions + 1) % PROGRESS_EVERY === 0) onProgress?.(executions + 1, corpus.length);
  }
  return { executions: runs, kept: corpus.length, maxSteps, finding: undefined };
}

/** The younger half as often as all together. */
function pickOf(corpus: readonly Kept[], random: Random): Kept {
  const { length } = corpus;
  const half = Math.floor(length / 2);
  const kept = corpus[random.below(2) === 0 ? random.below(length) : half + random.below(length - half)];
  if (kept === undefined) throw new Error('a target needs a seed');
  return kept;
}

interface Executed {
  readonly error: Error | undefined;
  readonly observed: Observed;
}

async function execute(target: FuzzTarget, input: Buffer): Promise<Executed> {
  beginExecution();
  let error: Error | undefined;
  try {
    const running = target.run(input);
    // Most targets need no turn of the event loop.
    if (running !== undefined) await running;
  } catch (thrown) {
    error = thrown instanceof Error ? thrown : new Error(`something was thrown that is no error: ${thrown}`);
  }
  const observed = endExecution();
  const mostSteps = STEPS_FOR_NOTHING + target.maxStepsPerByte * input.length;
  if (error === undefined && observed.steps > mostSteps) {
    error = new Error(`does not hold: at most ${mostSteps} steps for ${input.length} bytes`);
  }
  return { error, observed };
}

const MAX_CUTS = 400;

/** Takes away whatever the finding does not need. */
async function cutDown(target: FuzzTarget, found: Buffer, { message }: Error): Promise<Buffer> {
  let input = found;
  let cuts = 0;
  for (let length = input.length >> 1; length > 0; length >>= 1) {
    for (let at = 0; at < input.length && cuts < MAX_CUTS; cuts++) {
      const without = Buffer.concat([input.subarray(0, at), input.subarray(at + length)]);
      const { error } = await execute(target, without);
      if (error?.message === message) input = without;
      else at += length;
    }
  }
  return input;
}
