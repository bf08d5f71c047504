/**
 * Holds the newest freshness statement of each source: of the directory, and of Control together with the persisted one. A
 * statement is verified once and applied repeatedly, because one that was ahead of the clock, or of the bundle, may apply
 * later. Any of them may make the loaded bundle fresher. Only a statement from the bundle's own source is expected to match it.
 * Source: docs/design/bundle.md "Freshness".
 */
import {
  applyFreshness,
  type FreshnessIgnored,
  type FreshnessStatement,
  openFreshness,
} from '../../bundle/compile/freshness-statement.ts';
import { asBundleError, type BundleError } from '../../bundle/format/bundle-error.ts';
import type { Signers } from '../../bundle/format/documents.ts';
import { FRESHNESS_FILE } from '../../bundle/format/file-names.ts';
import type { ActiveBundle } from './active-bundle.ts';
import { type Problem, ProblemRecord } from './problem-record.ts';

export type StatementSource = 'directory' | 'control';

export interface FreshnessStatementsOptions {
  readonly authSite: string;
  readonly freshnessSigners: Signers;
  /** Whole seconds since the epoch, rounded down. */
  readonly nowSeconds: () => number;
  readonly onRefused: (error: BundleError) => void;
  readonly onIgnored: (why: FreshnessIgnored, statement: FreshnessStatement) => void;
  /** Whether there is a directory; without one, statements come only from Control. */
  readonly hasDirectory: boolean;
}

interface Held {
  readonly problem: ProblemRecord;
  bytes?: Buffer;
  statement?: FreshnessStatement;
  /** Why the validly signed statement does not apply. */
  ignored?: FreshnessIgnored | undefined;
}

export class FreshnessStatements {
  readonly #active: ActiveBundle;
  readonly #options: FreshnessStatementsOptions;
  readonly #held: { readonly [S in StatementSource]: Held };

  constructor(active: ActiveBundle, options: FreshnessStatementsOptions) {
    this.#active = active;
    this.#options = options;
    const newProblem = () => new ProblemRecord(options.nowSeconds, options.onRefused);
    this.#held = { directory: { problem: newProblem() }, control: { problem: newProblem() } };
  }

  /** The source whose statements are expected to match the loaded bundle. */
  get #expected(): StatementSource {
    const source = this.#active.source ?? (this.#options.hasDirectory ? 'directory' : 'control');
    return source === 'directory' ? 'directory' : 'control';
  }

  /** Problem of the expected source. */
  get problem(): Problem<BundleError> | undefined {
    return this.#held[this.#expected].problem.current;
  }

  /** Why the validly signed statement of the expected source does not apply. */
  get ignored(): FreshnessIgnored | undefined {
    return this.#held[this.#expected].ignored;
  }

  /**
   * Verifies bytes that differ from the current ones. An invalid statement, or none, does not undo an earlier one.
   * @returns whether they are a statement
   */
  offer(source: StatementSource, bytes: Buffer | undefined): boolean {
    const held = this.#held[source];
    try {
      if (bytes !== undefined && !held.bytes?.equals(bytes)) {
        const { authSite, freshnessSigners: signers } = this.#options;
        held.statement = openFreshness(bytes, { authSite, signers, file: FRESHNESS_FILE });
        held.bytes = bytes;
      }
      held.problem.clear();
      return bytes !== undefined;
    } catch (error) {
      this.fail(source, error);
      return false;
    }
  }

  /** Offers the bytes that are read, or records why they could not be read. Never rejects. */
  async offerRead(source: StatementSource, read: Promise<Buffer | undefined>): Promise<void> {
    await read.then(
      (bytes) => this.offer(source, bytes),
      (error: unknown) => this.fail(source, error),
    );
  }

  /** Records that a statement could not be read or stored. */
  fail(source: StatementSource, error: unknown): void {
    this.#held[source].problem.set(asBundleError(error, FRESHNESS_FILE));
  }

  /** @returns whether the loaded bundle became fresher */
  apply(): boolean {
    const isFresher = [this.#applyOf('directory'), this.#applyOf('control')];
    return isFresher.includes(true);
  }

  #applyOf(source: StatementSource): boolean {
    const held = this.#held[source];
    const { snapshot } = this.#active;
    if (snapshot === undefined || held.statement === undefined) return false;
    const step = applyFreshness(snapshot, held.statement, this.#options.nowSeconds());
    const why = step.kind === 'ignore' && source === this.#expected ? step.why : undefined;
    if (why !== undefined && why !== held.ignored) this.#options.onIgnored(why, held.statement);
    held.ignored = why;
    if (step.kind !== 'accept') return false;
    this.#active.restate({ ...snapshot, freshAsOfSeconds: step.freshAsOfSeconds });
    return true;
  }
}
