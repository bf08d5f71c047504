/**
 * Loads bundles from a directory, from the state directory or from Control: verifies, validates and compiles them, then
 * swaps them in. A failure leaves the bundle that was loaded before in place and is reported.
 * Source: docs/bundle.md "Life in the verifier" and "Freshness".
 */

import type { Snapshot } from '../../bundle/compile/snapshot.ts';
import { asBundleError, type BundleError } from '../../bundle/format/bundle-error.ts';
import type { ChainPosition } from '../../bundle/format/chain.ts';
import type { Signers } from '../../bundle/format/documents.ts';
import { BUNDLE_FILE } from '../../bundle/format/file-names.ts';
import { LocalDirectory, ResolvedDirectory } from '../../bundle/format/local-directory.ts';
import { openBundleInSteps } from '../../bundle/format/open-bundle.ts';
import type { StepDocument } from '../../bundle/format/open-step.ts';
import { TimeSlice } from '../../bundle/format/time-slice.ts';
import { ActiveBundle } from './active-bundle.ts';
import type { BundleListener, BundleStatus } from './bundle-loader-events.ts';
import { Coalesced } from './coalesced.ts';
import { DirectorySource } from './directory-source.ts';
import { DirectoryWatch } from './directory-watch.ts';
import type { BundleChange, BundleSource, FoundChain, LoadOutcome } from './found-chain.ts';
import type { HighWaterMark } from './high-water-mark.ts';
import { OneAtATime } from './one-at-a-time.ts';
import { ProblemRecord } from './problem-record.ts';
import type { PersistedBundle } from './state/persisted-chain.ts';
import type { IncomingBase } from './state/state-directory.ts';
import { Statements } from './statements.ts';

export type { BundleListener, BundleLoad, BundleStatus } from './bundle-loader-events.ts';
export type { BundleProblem } from './problem-record.ts';

export interface BundleLoaderOptions {
  readonly authSite: string;
  /** Undefined when bundles come only from Control. */
  readonly directory: string | undefined;
  /** Stores everything that is loaded, for the next start. */
  readonly persisted?: PersistedBundle | undefined;
  readonly bundleSigners: Signers;
  readonly freshnessSigners: Signers;
  readonly mark: HighWaterMark;
  /** Whole seconds since the epoch, rounded down. */
  readonly nowSeconds: () => number;
  /** Clock that freshness statements are compared with; default: `nowSeconds`. */
  readonly statementNowSeconds?: () => number;
  /** The verifier's own conditions, checked at every load: a reason rejects the snapshot, undefined accepts it. */
  readonly acceptSnapshot?: (snapshot: Snapshot) => string | undefined;
  readonly listener?: BundleListener;
  /** Default 1000. */
  readonly pollIntervalMs?: number;
}

const DEFAULT_POLL_INTERVAL_MS = 1000;
/** Maximum wait between attempts to load unchanged files. */
const MAX_RETRY_INTERVAL_MS = 60_000;
/** Interval of periodic work. */
const ROUND_INTERVAL_MS = 1000;
/** Maximum number of expired keys to remove at once: well below a millisecond. */
const FORGET_AT_A_TIME = 500;

export class BundleLoader {
  readonly #options: BundleLoaderOptions;
  readonly #active: ActiveBundle;
  readonly #directory: LocalDirectory | undefined;
  readonly #source: DirectorySource | undefined;
  readonly #problems: { readonly [S in BundleSource]: ProblemRecord };
  readonly #statements: Statements;
  /** Serializes everything that changes the loaded bundle. */
  readonly #changes = new OneAtATime();
  readonly #bundlePass = new Coalesced(() => this.#runBundlePass());
  readonly #freshnessPass = new Coalesced(() => this.#runFreshnessPass());
  #watch: DirectoryWatch | undefined;
  #rounds: NodeJS.Timeout | undefined;
  #startingAgain: Promise<void> | undefined;

  constructor(options: BundleLoaderOptions) {
    const { listener, nowSeconds } = options;
    this.#options = options;
    const problemOf = (source: BundleSource) =>
      new ProblemRecord(nowSeconds, (error) => listener?.refused?.(error, source));
    this.#problems = {
      directory: problemOf('directory'),
      state: problemOf('state'),
      control: problemOf('control'),
    };
    this.#active = new ActiveBundle({
      ...options,
      stepRecord: options.persisted,
      onChange: (change) => this.#changed(change),
    });
    this.#statements = new Statements(this.#active, {
      ...options,
      nowSeconds: options.statementNowSeconds ?? nowSeconds,
      hasDirectory: options.directory !== undefined,
    });
    if (options.directory !== undefined) {
      this.#directory = new LocalDirectory(options.directory);
      this.#source = this.#newSource(this.#directory, options.persisted);
    }
  }

  #newSource(directory: LocalDirectory, persisted: PersistedBundle | undefined): DirectorySource {
    return new DirectorySource({
      directory,
      active: this.#active,
      problem: this.#problems.directory,
      retry: { firstMs: this.#pollIntervalMs, maxMs: MAX_RETRY_INTERVAL_MS },
      keep: persisted && ((files, steps) => (chain) => persisted.keepCopy(files, steps, chain)),
    });
  }

  get #pollIntervalMs(): number {
    return this.#options.pollIntervalMs ?? DEFAULT_POLL_INTERVAL_MS;
  }

  /** The signers and the site that this loader accepts bundles of. */
  get bundleTrust() {
    const { bundleSigners: signers, authSite } = this.#options;
    return { signers, authSite };
  }

  /** The current snapshot. A request keeps the one that it began with. */
  get snapshot(): Snapshot | undefined {
    return this.#active.snapshot;
  }

  /** Revision and head of the loaded bundle. */
  get position(): ChainPosition | undefined {
    const snapshot = this.#active.snapshot;
    return snapshot && { revision: snapshot.revision, head: snapshot.head };
  }

  status(): BundleStatus {
    const { directory, state, control } = this.#problems;
    return {
      snapshot: this.#active.snapshot,
      loadedAtSeconds: this.#active.loadedAtSeconds,
      problem: control.current ?? state.current ?? directory.current,
      freshnessProblem: this.#statements.problem,
      freshnessIgnored: this.#statements.ignored,
    };
  }

  /** Loads the persisted bundle and the directory, then keeps watching. Never rejects: see {@link BundleLoader.status}. */
  async start(): Promise<void> {
    if (this.#options.persisted !== undefined) await this.#changes.run(() => this.#loadPersisted());
    this.#rounds ??= setInterval(() => this.#goRound(), ROUND_INTERVAL_MS).unref();
    if (this.#options.directory !== undefined) {
      this.#watch ??= new DirectoryWatch({
        directory: this.#options.directory,
        pollIntervalMs: this.#pollIntervalMs,
        onTick: () => void this.#look(),
      });
    }
    await this.#look();
  }

  /** Checks the files now, including those that failed a moment ago. Never rejects. */
  async reload(): Promise<void> {
    this.#source?.retryNow();
    await this.#look();
  }

  /** Reads statements first, so that the loaded bundle stays fresh while a large one is being compiled. */
  async #look(): Promise<void> {
    await this.#freshnessPass.run();
    await this.#bundlePass.run();
  }

  close(): void {
    this.#watch?.close();
    this.#watch = undefined;
    clearInterval(this.#rounds);
    this.#rounds = undefined;
  }

  #goRound(): void {
    this.#active.forgetLapsedKeys(FORGET_AT_A_TIME);
    if (this.#active.snapshot !== undefined || !this.#lacksMark || this.#startingAgain !== undefined) return;
    this.#startingAgain = this.#startAgain().finally(() => {
      this.#startingAgain = undefined;
    });
  }

  /** Whether a load failed because the mark is unavailable. */
  get #lacksMark(): boolean {
    const { directory, state } = this.#problems;
    return [directory, state].some(({ current }) => current?.error.code === 'mark_unavailable');
  }

  async #startAgain(): Promise<void> {
    await this.#changes.run(() => this.#loadPersisted());
    await this.reload();
  }

  async #loadPersisted(): Promise<void> {
    const { persisted } = this.#options;
    if (this.#active.snapshot !== undefined) return;
    try {
      const found = await persisted?.found();
      if (found === undefined) return;
      const { control: keeper } = this.#statements;
      await persisted?.freshness().then(
        (bytes) => keeper.offer(bytes),
        (error: unknown) => keeper.fail(error),
      );
      const { refused } = await this.#active.load(found);
      this.#problems.state.settle(refused);
    } catch (error) {
      this.#problems.state.set(asBundleError(error, BUNDLE_FILE));
    }
  }

  async #runBundlePass(): Promise<void> {
    const [directory, source] = [this.#directory, this.#source];
    if (directory === undefined || source === undefined) return;
    await this.#changes.run(async () => {
      try {
        await directory.read(async (files) => {
          this.#watch?.follow(files.path);
          await source.look(files);
        });
      } catch (error) {
        this.#problems.directory.set(asBundleError(error, BUNDLE_FILE));
      }
    });
  }

  async #runFreshnessPass(): Promise<void> {
    if (this.#directory !== undefined) {
      const { directory: keeper } = this.#statements;
      await this.#directory
        .read((files) => files.readFreshness())
        .then(
          (bytes) => keeper.offer(bytes),
          (error: unknown) => keeper.fail(error),
        );
    }
    if (this.#statements.apply()) this.#tell((listener, snapshot) => listener.freshened?.(snapshot));
  }

  #changed(change: BundleChange): void {
    this.#statements.apply();
    // The persisted bundle has been replaced or updated.
    if (change.source !== 'state') this.#problems.state.clear();
    this.#tell((listener, snapshot) => {
      if (change.kind === 'loaded') listener.loaded?.(snapshot, change);
      else listener.advanced?.(snapshot, change.steps, change.durationMs);
    });
  }

  #tell(tell: (listener: BundleListener, snapshot: Snapshot) => void): void {
    const { snapshot } = this.#active;
    if (this.#options.listener !== undefined && snapshot !== undefined)
      tell(this.#options.listener, snapshot);
  }

  /** Applies steps from Control that continue the loaded bundle. @returns why they were not all applied */
  advance(documents: readonly StepDocument[]): Promise<BundleError | undefined> {
    return this.#changes.run(async () => {
      const refused = await this.#active.advance(documents, 'control');
      this.#problems.control.settle(refused);
      return refused;
    });
  }

  /**
   * Loads a whole bundle from Control and the steps after it.
   * @returns why it was rejected, or some of its steps were
   */
  replace(incoming: IncomingBase, documents: readonly StepDocument[]): Promise<BundleError | undefined> {
    const { persisted } = this.#options;
    const found: FoundChain = {
      source: 'control',
      files: new ResolvedDirectory(incoming.path),
      steps: () => documents,
      keep: persisted && ((chain) => persisted.keepDownloaded(incoming, chain, documents)),
    };
    return this.#changes.run(async () => {
      const refused = await this.#active.load(found).then(
        (outcome: LoadOutcome) => outcome.refused,
        (error: unknown) => asBundleError(error, BUNDLE_FILE),
      );
      this.#problems.control.settle(refused);
      return refused;
    });
  }

  /**
   * Persists a newer base of the loaded bundle. It is compiled first, so that the next start does not find it invalid.
   * Runs concurrently with other changes.
   * @returns false when it is not on the loaded chain
   * @throws BundleError when it is rejected or cannot be persisted
   */
  async rebase(incoming: IncomingBase): Promise<boolean> {
    const { authSite, bundleSigners: signers, persisted } = this.#options;
    if (persisted === undefined) return false;
    const files = new ResolvedDirectory(incoming.path);
    const slice = new TimeSlice();
    const bytes = await files.readBundle();
    const opened = await slice.run(openBundleInSteps(bytes, { file: BUNDLE_FILE, signers, authSite }));
    await this.#active.compile(opened, files);
    return this.#changes.run(() => persisted.rebase(incoming, opened));
  }

  /** Handles a statement from Control; persists it when it makes the loaded bundle fresher. Never rejects. */
  async offerStatement(bytes: Buffer): Promise<void> {
    const { control: keeper } = this.#statements;
    if (!keeper.offer(bytes) || !this.#statements.apply()) return;
    this.#tell((listener, snapshot) => listener.freshened?.(snapshot));
    await this.#options.persisted?.keepFreshness(bytes).catch((error: unknown) => keeper.fail(error));
  }
}
