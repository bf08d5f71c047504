/**
 * The freshness statements at hand, by where they come from: the directory, or Control and what was kept of it. Either
 * may make what is loaded younger; only the one that it came from is expected to speak of it.
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
  /** Whether there is a directory: without one statements come from Control alone. */
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

  /** Whose statements are expected to be about what is loaded. */
  get #expected(): StatementSource {
    const source = this.#active.source ?? (this.#options.hasDirectory ? 'directory' : 'control');
    return source === 'directory' ? 'directory' : 'control';
  }

  /** Of those that are expected. */
  get problem(): BundleProblem | undefined {
    return this.#problems[this.#expected].current;
  }

  get ignored(): StatementKeeper['ignored'] {
    return this[this.#expected].ignored;
  }

  /** @returns whether what is loaded became younger */
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
