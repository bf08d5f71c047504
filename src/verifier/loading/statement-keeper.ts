/**
 * Holds the newest freshness statement of one source. It is verified once and applied repeatedly: a statement that was
 * ahead of the clock, or of the bundle, may apply later.
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

  /** Why the validly signed statement does not apply. */
  get ignored(): FreshnessIgnored | undefined {
    return this.#ignored;
  }

  /**
   * Verifies bytes that differ from the current ones. An invalid statement, or none, does not undo an earlier one.
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

  /** Records that the statement could not be read or fetched. */
  fail(error: unknown): void {
    this.#options.problem.set(asBundleError(error, FRESHNESS_FILE));
  }

  /**
   * @param isRelevant whether the snapshot came from the same source: only then is a statement about another bundle
   * reported
   * @returns the fresher snapshot; undefined when it stays unchanged
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
