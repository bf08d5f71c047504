/** One surface that takes untrusted bytes, and its invariants for any input. */
export interface FuzzTarget {
  readonly name: string;
  /** Inputs to begin with. */
  readonly seeds: readonly Buffer[];
  /** Words of the format. */
  readonly dictionary: readonly string[];
  readonly maxBytes: number;
  /** Most edges that one input may take, for each of its bytes; see `STEPS_FOR_NOTHING`. Bounds time without a clock. */
  readonly maxStepsPerByte: number;
  /** Throws when something that must hold does not. */
  run(input: Buffer): void | Promise<void>;
}

/** Edges that an input may take beside those for its bytes. */
export const STEPS_FOR_NOTHING = 20_000;

/** @throws Error with the text when it does not hold. */
export function mustHold(holds: boolean, text: string): asserts holds {
  if (!holds) throw new Error(`does not hold: ${text}`);
}
