/**
 * Loads the bundle from a local directory (`--bundle`): polls the files, loads the bundle when they change, and applies
 * the deltas and links beside it. A rejected file is not retried until it changes; transient errors are retried with
 * backoff.
 * Source: docs/design/bundle.md "Life in the verifier".
 */
import { type FSWatcher, watch } from 'node:fs';
import { basename, dirname, resolve } from 'node:path';
import { asBundleError, type BundleError } from '../../bundle/format/bundle-error.ts';
import { BUNDLE_FILE } from '../../bundle/format/file-names.ts';
import {
  type FoundStepFile,
  LocalDirectory,
  type ResolvedDirectory,
} from '../../bundle/format/local-directory.ts';
import type { StepDocument } from '../../bundle/format/open-document.ts';
import { Backoff, NO_JITTER } from '../../process/program/backoff.ts';
import type { ActiveBundle } from './active-bundle.ts';
import { PASSING, type ProblemRecord } from './problem-record.ts';
import type { PersistedBundle } from './state/persisted-bundle.ts';

export interface DirectorySourceOptions {
  readonly directory: string;
  readonly active: ActiveBundle;
  readonly problem: ProblemRecord;
  /** Interval of polls, and first wait between attempts to load unchanged files, milliseconds. */
  readonly pollIntervalMs: number;
  /** Gets a copy of each bundle that is loaded. */
  readonly persisted?: PersistedBundle | undefined;
}

/** Result for the files with this fingerprint; there is nothing to do until they change. */
interface Settled {
  readonly fingerprint: string;
  readonly problem: BundleError | undefined;
}

/** Maximum number of steps read into memory at once. */
const STEPS_AT_A_TIME = 64;
/** Maximum wait between attempts to load unchanged files. */
const MAX_RETRY_INTERVAL_MS = 60_000;

export class DirectorySource {
  readonly #options: DirectorySourceOptions;
  readonly #directory: LocalDirectory;
  readonly #backoff: Backoff;
  #watch: DirectoryWatch | undefined;
  #bundle: Settled | undefined;
  #steps: Settled | undefined;

  constructor(options: DirectorySourceOptions) {
    this.#options = options;
    this.#directory = new LocalDirectory(options.directory);
    const { pollIntervalMs: firstMs } = options;
    this.#backoff = new Backoff({ firstMs, maxMs: MAX_RETRY_INTERVAL_MS, random: NO_JITTER });
  }

  /** @param onTick called often, also when nothing changed, so it must be cheap then. Must not throw */
  watch(onTick: () => void): void {
    this.#watch ??= new DirectoryWatch(this.#options.directory, this.#options.pollIntervalMs, onTick);
  }

  close(): void {
    this.#watch?.close();
    this.#watch = undefined;
  }

  /** Makes the next check include files that have just failed. */
  retryNow(): void {
    this.#backoff.reset();
  }

  readFreshness(): Promise<Buffer | undefined> {
    return this.#directory.read((files) => files.readFreshness());
  }

  /** Cheap when nothing changed. Must not overlap with another change of the active bundle. Never rejects. */
  async look(): Promise<void> {
    try {
      await this.#directory.read(async (files) => {
        this.#watch?.follow(files.path);
        await this.#lookAt(files);
      });
    } catch (error) {
      this.#options.problem.set(asBundleError(error, BUNDLE_FILE));
    }
  }

  /**
   * @throws BundleError about files, which may be missing because the directory was just swapped, and about their
   * content
   */
  async #lookAt(files: ResolvedDirectory): Promise<void> {
    const { active, problem } = this.#options;
    const bundle = await files.bundleFingerprint();
    const steps = await files.stepsAfter(active.snapshot?.revision ?? 0);
    // After a rejection the fingerprint is that of bundle and steps together.
    if (this.#bundle?.fingerprint === bundle) await this.#advance(files, steps);
    else await this.#load(files, { bundle, steps });
    problem.settle(this.#bundle?.problem ?? this.#steps?.problem);
  }

  async #load(
    files: ResolvedDirectory,
    found: { readonly bundle: string; readonly steps: readonly FoundStepFile[] },
  ): Promise<void> {
    const withSteps = `${found.bundle}\n${fingerprintOf(found.steps)}`;
    if (this.#isSettled(this.#bundle, withSteps)) return;
    const { active, persisted } = this.#options;
    const all = await files.stepsAfter(0);
    const steps = (after: number) =>
      readSteps(
        files,
        all.filter(({ revision }) => revision > after),
      );
    try {
      const refused = await active.load({
        source: 'directory',
        files,
        steps,
        keep: persisted && ((chain) => persisted.keepCopy(files, steps, chain)),
      });
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

/**
 * Watches a directory by file system notifications, which are fast, and by polling, which is reliable. Notifications do
 * not cross network file systems, and swapping a link further up the path changes nothing that is watched. The timer does not
 * keep the process alive.
 */
class DirectoryWatch {
  readonly #directory: string;
  readonly #onTick: () => void;
  readonly #poll: NodeJS.Timeout;
  #watchers: FSWatcher[] = [];
  #resolved: string | undefined;

  constructor(directory: string, pollIntervalMs: number, onTick: () => void) {
    this.#directory = resolve(directory);
    this.#onTick = onTick;
    this.#poll = setInterval(onTick, pollIntervalMs).unref();
  }

  /**
   * Watches the directory and its parent, where it may be replaced.
   * @param resolved real path that the files were last read from; the same path again changes nothing
   */
  follow(resolved: string): void {
    if (resolved === this.#resolved) return;
    this.#resolved = resolved;
    this.#stopWatching();
    const name = basename(this.#directory);
    this.#watch(this.#directory, () => true);
    this.#watch(dirname(this.#directory), (changed) => {
      const isOurs = changed === null || changed === name;
      // The watched directory may be gone: resolve it again.
      if (isOurs) this.#resolved = undefined;
      return isOurs;
    });
    if (resolved !== this.#directory) this.#watch(resolved, () => true);
  }

  close(): void {
    clearInterval(this.#poll);
    this.#stopWatching();
  }

  #watch(directory: string, isOurs: (changed: string | null) => boolean): void {
    try {
      const watcher = watch(directory, { persistent: false }, (_event, changed) => {
        if (isOurs(changed)) this.#onTick();
      });
      // Without notifications (too many watchers, directory gone) polling still works.
      watcher.on('error', () => watcher.close());
      this.#watchers.push(watcher);
    } catch {
      // As above.
    }
  }

  #stopWatching(): void {
    for (const watcher of this.#watchers) watcher.close();
    this.#watchers = [];
  }
}
