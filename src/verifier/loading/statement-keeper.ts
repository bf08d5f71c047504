/**
 * The newest freshness statement of one source. It is verified once and applied again and again: one that was ahead of
 * the clock, or of the bundle, may hold by now.
 * Source: docs/bundle.md "Freshness".
 */
import type { LiveSnapshot } from '../../bundle/compile/compile.ts';
import {
  applyFreshness,
  type FreshnessIgnored,
  type FreshnessOptions,
  type FreshnessStatement,
  openFreshness,
} from '../../bundle/compile/freshness-statement.ts';
import { asBundleError } from '../../bundle/format/bundle-error.ts';
import { FRESHNESS_FILE } from '../../bundle/format/file-names.ts';
import type { ProblemRecord } from './problem-record.ts';

export interface StatementKeeperOptions extends Omit<FreshnessOptions, 'file'> {
  readonly problem: ProblemRecord;
  readonly onIgnored: (why: FreshnessIgnored, statement: FreshnessStatement) => void;
}

export class StatementKeeper {
  readonly #options: StatementKeeperOptions;
  #bytes: Buffer | undefined;
  #statement: FreshnessStatement | undefined;
  #ignored: FreshnessIgnored | undefined;

  constructor(options: StatementKeeperOptions) {
    this.#options = options;
  }

  /** Why the statement, well signed as it is, is not applied. */
  get ignored(): FreshnessIgnored | undefined {
    return this.#ignored;
  }

  /**
   * Verifies bytes that are not those at hand. A bad statement, or none, takes nothing back.
   * @returns whether they are a statement
   */
  offer(bytes: Buffer | undefined): boolean {
    try {
      if (bytes !== undefined && !this.#bytes?.equals(bytes)) {
        this.#statement = openFreshness(bytes, { ...this.#options, file: FRESHNESS_FILE });
        this.#bytes = bytes;
      }
      this.#options.problem.clear();
      return bytes !== undefined;
    } catch (error) {
      this.fail(error);
      return false;
    }
  }

  /** The statement could not be had at all. */
  fail(error: unknown): void {
    this.#options.problem.set(asBundleError(error, FRESHNESS_FILE));
  }

  /**
   * @param isRelevant whether the source is the one that the snapshot came from: only then is it worth telling that its
   *   statement is about another
   * @returns the snapshot made younger; undefined when it stays as it is
   */
  apply(snapshot: LiveSnapshot, nowSeconds: number, isRelevant: boolean): LiveSnapshot | undefined {
    const statement = this.#statement;
    if (statement === undefined) return undefined;
    const step = applyFreshness(snapshot, statement, nowSeconds);
    const why = step.kind === 'ignore' && isRelevant ? step.why : undefined;
    const isNew = why !== this.#ignored;
    this.#ignored = why;
    if (isNew && why !== undefined) this.#options.onIgnored(why, statement);
    return step.kind === 'accept' ? { ...snapshot, freshAsOfSeconds: step.freshAsOfSeconds } : undefined;
  }
}
