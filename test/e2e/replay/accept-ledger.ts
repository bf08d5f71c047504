/** The oracle: what every target answered for every proof, kept outside of the system under test. */

/** Outcomes that a verifier may give while its replay store or its machine has a fault (docs/design/protocol.md "Decision: first fault wins"). */
const KNOWN_OUTCOMES = new Set([
  'allowed',
  'jti_replay 403',
  'replay_store_unavailable/store 503',
  'replay_store_unavailable/fenced 503',
  'verifier_unavailable/overloaded 503',
]);

export interface Accept {
  readonly jti: string;
  readonly target: string;
  /** Of `performance.now()`. */
  readonly atMs: number;
}

export class AcceptLedger {
  readonly #accepts = new Map<string, Accept>();
  readonly #alsoKnown: ReadonlySet<string>;
  /** Accepted twice: `jti: first target, second target, milliseconds between`. Empty, or all is lost. */
  readonly doubles: string[] = [];
  /** Answers that are not of the documented set, and calls that ended without one. */
  readonly unknown: string[] = [];
  readonly outcomes = new Map<string, number>();

  /** @param alsoKnown outcomes that the campaign provokes on purpose */
  constructor(alsoKnown: readonly string[] = []) {
    this.#alsoKnown = new Set(alsoKnown);
  }

  get acceptCount(): number {
    return this.#accepts.size;
  }

  isAccepted(jti: string): boolean {
    return this.#accepts.has(jti);
  }

  /** @param prefix of targets' names */
  acceptsThrough(prefix: string): number {
    return [...this.#accepts.values()].filter(({ target }) => target.startsWith(prefix)).length;
  }

  count(outcome: string): number {
    return this.outcomes.get(outcome) ?? 0;
  }

  record(jti: string, target: string, outcome: string): void {
    this.outcomes.set(outcome, this.count(outcome) + 1);
    if (!KNOWN_OUTCOMES.has(outcome) && !this.#alsoKnown.has(outcome)) {
      this.unknown.push(`${target}: ${outcome}`);
    }
    if (outcome !== 'allowed') return;
    const atMs = performance.now();
    const first = this.#accepts.get(jti);
    if (first === undefined) this.#accepts.set(jti, { jti, target, atMs });
    else this.doubles.push(`${jti}: ${first.target}, ${target}, ${Math.round(atMs - first.atMs)} ms later`);
  }
}
