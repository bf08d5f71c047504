/**
 * Holds the current freshness statements by source: the directory, or Control together with the persisted statement.
 * Any of them may make the loaded bundle fresher. Only a statement from the bundle's own source is expected to match
 * it.
 * Source: docs/bundle.md "Freshness".
 */

import type { Signers } from '../../bundle/format/documents.ts';
import type { ActiveBundle } from './active-bundle.ts';
import type { BundleListener } from './bundle-loader-events.ts';
import { type BundleProblem, ProblemRecord } from './problem-record.ts';
import { StatementKeeper } from './statement-keeper.ts';

export type StatementSource = 'directory' | 'control';

export interface StatementsOptions {
  readonly authSite: string;
  readonly freshnessSigners: Signers;
  /** Whole seconds since the epoch, rounded down. */
  readonly nowSeconds: () => number;
  readonly listener?: BundleListener | undefined;
  /** Whether there is a directory; without one, statements come only from Control. */
  readonly hasDirectory: boolean;
}

export class Statements {
  readonly directory: StatementKeeper;
  readonly control: StatementKeeper;
  readonly #options: StatementsOptions;
  readonly #active: ActiveBundle;
  readonly #problems: { readonly [S in StatementSource]: ProblemRecord };

  constructor(active: ActiveBundle, options: StatementsOptions) {
    const { listener, nowSeconds } = options;
    this.#options = options;
    this.#active = active;
    const newProblem = () => new ProblemRecord(nowSeconds, (error) => listener?.freshnessRefused?.(error));
    this.#problems = { directory: newProblem(), control: newProblem() };
    this.directory = this.#newKeeper(this.#problems.directory);
    this.control = this.#newKeeper(this.#problems.control);
  }

  #newKeeper(problem: ProblemRecord): StatementKeeper {
    const { authSite, freshnessSigners: signers, listener } = this.#options;
    const onIgnored: BundleListener['freshnessIgnored'] = (why, statement) =>
      listener?.freshnessIgnored?.(why, statement);
    return new StatementKeeper({ authSite, signers, problem, onIgnored });
  }

  /** The source whose statements are expected to match the loaded bundle. */
  get #expected(): StatementSource {
    const source = this.#active.source ?? (this.#options.hasDirectory ? 'directory' : 'control');
    return source === 'directory' ? 'directory' : 'control';
  }

  /** Problem of the expected source. */
  get problem(): BundleProblem | undefined {
    return this.#problems[this.#expected].current;
  }

  get ignored(): StatementKeeper['ignored'] {
    return this[this.#expected].ignored;
  }

  /** @returns whether the loaded bundle became fresher */
  apply(): boolean {
    const nowSeconds = this.#options.nowSeconds();
    let isYounger = false;
    for (const source of ['directory', 'control'] as const) {
      const { snapshot } = this.#active;
      if (snapshot === undefined) continue;
      const younger = this[source].apply(snapshot, nowSeconds, source === this.#expected);
      if (younger === undefined) continue;
      this.#active.freshen(younger);
      isYounger = true;
    }
    return isYounger;
  }
}
