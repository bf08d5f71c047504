/**
 * Loads the bundle from a local directory (`--bundle`): polls the files, loads the bundle when they change, and applies
 * the deltas and links beside it. A rejected file is not retried until it changes; transient errors are retried with
 * backoff.
 * Source: docs/bundle.md "Life in the verifier".
 */

import { asBundleError, type BundleError } from '../../bundle/format/bundle-error.ts';
import { BUNDLE_FILE } from '../../bundle/format/file-names.ts';
import type {
  FoundStepFile,
  LocalDirectory,
  ResolvedDirectory,
} from '../../bundle/format/local-directory.ts';
import type { StepDocument } from '../../bundle/format/open-step.ts';
import type { ActiveBundle } from './active-bundle.ts';
import { Backoff, NO_JITTER } from './backoff.ts';
import type { FoundChain } from './found-chain.ts';
import { PASSING } from './passing-faults.ts';
import type { ProblemRecord } from './problem-record.ts';

export interface DirectorySourceOptions {
  readonly directory: LocalDirectory;
  readonly active: ActiveBundle;
  readonly problem: ProblemRecord;
  /** Backoff between attempts to load unchanged files, milliseconds. */
  readonly retry: { readonly firstMs: number; readonly maxMs: number };
  /** See {@link FoundChain.keep}. */
  readonly keep?: ((files: ResolvedDirectory, steps: FoundChain['steps']) => FoundChain['keep']) | undefined;
}

/** Result for the files with this fingerprint; there is nothing to do until they change. */
interface Settled {
  readonly fingerprint: string;
  readonly problem: BundleError | undefined;
}

/** Maximum number of steps read into memory at once. */
const STEPS_AT_A_TIME = 64;

export class DirectorySource {
  readonly #options: DirectorySourceOptions;
  readonly #backoff: Backoff;
  #bundle: Settled | undefined;
  #steps: Settled | undefined;

  constructor(options: DirectorySourceOptions) {
    this.#options = options;
    this.#backoff = new Backoff({ ...options.retry, random: NO_JITTER });
  }

  /** The next look also includes files that failed a moment ago. */
  retryNow(): void {
    this.#backoff.reset();
  }

  /**
   * Cheap when nothing changed. Must not overlap with another change of the active bundle.
   * @throws BundleError about files, which may be missing because the directory was just swapped, and about their
   * content
   */
  async look(files: ResolvedDirectory): Promise<void> {
    const { active, problem } = this.#options;
    const bundle = await files.bundleFingerprint();
    const steps = await files.stepsAfter(active.snapshot?.revision ?? 0);
    const isLoaded = active.snapshot !== undefined && this.#bundle?.problem === undefined;
    if (isLoaded && this.#bundle?.fingerprint === bundle) await this.#advance(files, steps);
    else await this.#load(files, { bundle, steps });
    problem.settle(this.#bundle?.problem ?? this.#steps?.problem);
  }

  async #load(
    files: ResolvedDirectory,
    found: { readonly bundle: string; readonly steps: readonly FoundStepFile[] },
  ): Promise<void> {
    const withSteps = `${found.bundle}\n${fingerprintOf(found.steps)}`;
    if (this.#isSettled(this.#bundle, withSteps)) return;
    const all = await files.stepsAfter(0);
    const steps = (after: number) =>
      readSteps(
        files,
        all.filter(({ revision }) => revision > after),
      );
    const keep = this.#options.keep?.(files, steps);
    try {
      const { refused } = await this.#options.active.load({ source: 'directory', files, steps, keep });
      this.#bundle = { fingerprint: found.bundle, problem: undefined };
      this.#settleSteps(all, refused);
    } catch (error) {
      const problem = asBundleError(error, BUNDLE_FILE);
      this.#backoff.failed();
      this.#bundle = { fingerprint: withSteps, problem };
      this.#steps = undefined;
      throw problem;
    }
  }

  async #advance(files: ResolvedDirectory, found: readonly FoundStepFile[]): Promise<void> {
    const { active } = this.#options;
    if (this.#isSettled(this.#steps, fingerprintOf(found))) return;
    let refused: BundleError | undefined;
    for (let at = 0; at < found.length && refused === undefined; at += STEPS_AT_A_TIME) {
      const documents: StepDocument[] = [];
      for await (const step of readSteps(files, found.slice(at, at + STEPS_AT_A_TIME))) documents.push(step);
      refused = await active.advance(documents, 'directory');
    }
    this.#settleSteps(found, refused);
  }

  /** @param found the state before the files were read: a file that is written or added meanwhile counts as a change */
  #settleSteps(found: readonly FoundStepFile[], problem: BundleError | undefined): void {
    const { snapshot } = this.#options.active;
    const left = found.filter(({ revision }) => revision > (snapshot?.revision ?? 0));
    this.#steps = { fingerprint: fingerprintOf(left), problem };
    if (problem === undefined) this.#backoff.reset();
    else this.#backoff.failed();
  }

  #isSettled(settled: Settled | undefined, fingerprint: string): boolean {
    if (settled?.fingerprint !== fingerprint) return false;
    return settled.problem === undefined || !(PASSING.has(settled.problem.code) && this.#backoff.isDue);
  }
}

function fingerprintOf(steps: readonly FoundStepFile[]): string {
  return steps.map(({ fingerprint }) => fingerprint).join('\n');
}

async function* readSteps(
  files: ResolvedDirectory,
  steps: readonly FoundStepFile[],
): AsyncGenerator<StepDocument> {
  for (const { kind, name } of steps) yield { kind, file: name, bytes: await files.readStep(name, kind) };
}
