/**
 * Loads bundles from a directory, from the state directory or from Control: verifies, validates and compiles them, then
 * swaps them in. After a failure, which is reported, the previous bundle stays in use.
 * Source: docs/design/bundle.md "Life in the verifier" and "Freshness".
 */

import type { FreshnessIgnored, FreshnessStatement } from '../../bundle/compile/freshness-statement.ts';
import type { BreakGlassStatement, Snapshot } from '../../bundle/compile/snapshot.ts';
import { asBundleError, type BundleError } from '../../bundle/format/bundle-error.ts';
import type { ChainPosition } from '../../bundle/format/chain.ts';
import type { Signers } from '../../bundle/format/documents.ts';
import { BUNDLE_FILE, type StepKind } from '../../bundle/format/file-names.ts';
import type { ResolvedDirectory } from '../../bundle/format/local-directory.ts';
import type { OpenedBundle, StepDocument } from '../../bundle/format/open-document.ts';
import { ActiveBundle, type BundleChange } from './active-bundle.ts';
import { DirectorySource } from './directory-source.ts';
import { FreshnessStatements } from './freshness-statements.ts';
import { type Problem, ProblemRecord } from './problem-record.ts';
import { Coalesced, OneAtATime } from './serial-tasks.ts';
import type { BundleSource, FoundChain } from './state/found-chain.ts';
import type { HighWaterMark } from './state/high-water-mark.ts';
import type { PersistedBundle } from './state/persisted-bundle.ts';

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
  readonly acceptSnapshot?: ((snapshot: Snapshot) => string | undefined) | undefined;
  /**
   * Raises the mark for a whole bundle, just before requests are decided by it, with what must happen before and after that.
   * An error rejects the bundle.
   */
  readonly raising?: ((snapshot: Snapshot, raise: () => Promise<void>) => Promise<void>) | undefined;
  readonly listener?: BundleListener;
  /** Default 1000. */
  readonly pollIntervalMs?: number;
}

/** Each is called once for each change, not at every poll. Must not throw. */
export interface BundleListener {
  loaded?(snapshot: Snapshot, change: BundleChange): void;
  /** Deltas and links were applied. */
  advanced?(snapshot: Snapshot, steps: readonly StepKind[], durationMs: number): void;
  freshened?(snapshot: Snapshot): void;
  /** A document was rejected; the loaded bundle stays. */
  refused?(error: BundleError, source: BundleSource): void;
  freshnessRefused?(error: BundleError): void;
  freshnessIgnored?(why: FreshnessIgnored, statement: FreshnessStatement): void;
}

export interface BundleStatus {
  readonly snapshot: Snapshot | undefined;
  readonly loadedAtSeconds: number | undefined;
  /** Why the newest documents found are not loaded; undefined when they are. */
  readonly problem: Problem<BundleError> | undefined;
  readonly freshnessProblem: Problem<BundleError> | undefined;
  /** Why the validly signed freshness statement does not apply. */
  readonly freshnessIgnored: FreshnessIgnored | undefined;
}

/** Interval of periodic work, and of polls by default. */
const ROUND_INTERVAL_MS = 1000;
/** Maximum number of expired keys to remove at once: well below a millisecond. */
const FORGET_AT_A_TIME = 500;

export class BundleLoader {
  readonly #options: BundleLoaderOptions;
  readonly #active: ActiveBundle;
  readonly #directory: DirectorySource | undefined;
  readonly #problems: { readonly [S in BundleSource]: ProblemRecord };
  readonly #statements: FreshnessStatements;
  #breakGlass: BreakGlassStatement | undefined;
  /** Serializes everything that changes the loaded bundle. */
  readonly #changes = new OneAtATime();
  readonly #bundlePass = new Coalesced(() => this.#changes.run(async () => this.#directory?.look()));
  readonly #freshnessPass = new Coalesced(() => this.#runFreshnessPass());
  #rounds: NodeJS.Timeout | undefined;
  #startingAgain: Promise<void> | undefined;

  constructor(options: BundleLoaderOptions) {
    const { directory, listener, nowSeconds, persisted } = options;
    this.#options = options;
    const problemOf = (source: BundleSource) =>
      new ProblemRecord(nowSeconds, (error) => listener?.refused?.(error, source));
    this.#problems = {
      directory: problemOf('directory'),
      state: problemOf('state'),
      control: problemOf('control'),
    };
    this.#active = new ActiveBundle({ ...options, onChange: (change) => this.#changed(change) });
    this.#statements = new FreshnessStatements(this.#active, {
      ...options,
      nowSeconds: options.statementNowSeconds ?? nowSeconds,
      hasDirectory: directory !== undefined,
      onRefused: (error) => listener?.freshnessRefused?.(error),
      onIgnored: (why, statement) => listener?.freshnessIgnored?.(why, statement),
    });
    if (directory !== undefined) {
      const { pollIntervalMs = ROUND_INTERVAL_MS } = options;
      const [active, problem] = [this.#active, this.#problems.directory];
      this.#directory = new DirectorySource({ directory, active, problem, pollIntervalMs, persisted });
    }
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
    this.#directory?.watch(() => void this.#look());
    await this.#look();
  }

  /** Checks the files now, including those that failed a moment ago. Never rejects. */
  async reload(): Promise<void> {
    this.#directory?.retryNow();
    await this.#look();
  }

  /** Reads statements first, so that the loaded bundle stays fresh while a large one is being compiled. */
  async #look(): Promise<void> {
    await this.#freshnessPass.run();
    await this.#bundlePass.run();
  }

  close(): void {
    this.#directory?.close();
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
    if (persisted === undefined || this.#active.snapshot !== undefined) return;
    try {
      const found = await persisted.found();
      if (found === undefined) return;
      await this.#statements.offerRead('control', persisted.freshness());
      this.#problems.state.settle(await this.#active.load(found));
    } catch (error) {
      this.#problems.state.set(asBundleError(error, BUNDLE_FILE));
    }
  }

  async #runFreshnessPass(): Promise<void> {
    if (this.#directory !== undefined) {
      await this.#statements.offerRead('directory', this.#directory.readFreshness());
    }
    this.#applyStatements();
  }

  /** @returns whether the loaded bundle became fresher */
  #applyStatements(): boolean {
    const isFresher = this.#statements.apply();
    const { snapshot } = this.#active;
    if (isFresher && snapshot !== undefined) this.#options.listener?.freshened?.(snapshot);
    return isFresher;
  }

  #changed(change: BundleChange): void {
    this.#statements.apply();
    this.setBreakGlass(this.#breakGlass);
    // The persisted bundle has been replaced or updated.
    if (change.source !== 'state') this.#problems.state.clear();
    const { listener } = this.#options;
    const { snapshot } = this.#active;
    if (snapshot === undefined) return;
    if (change.steps === undefined) listener?.loaded?.(snapshot, change);
    else listener?.advanced?.(snapshot, change.steps, change.durationMs);
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
  replace(files: ResolvedDirectory, documents: readonly StepDocument[]): Promise<BundleError | undefined> {
    const { persisted } = this.#options;
    const found: FoundChain = {
      source: 'control',
      files,
      steps: () => documents,
      keep: persisted && ((chain) => persisted.keepDownloaded(files, chain, documents)),
    };
    return this.#changes.run(async () => {
      const refused = await this.#active
        .load(found)
        .catch((error: unknown) => asBundleError(error, BUNDLE_FILE));
      this.#problems.control.settle(refused);
      return refused;
    });
  }

  /** Verifies a whole bundle and changes nothing. @throws BundleError */
  open(bytes: Buffer): Promise<OpenedBundle> {
    return this.#active.open(bytes);
  }

  /**
   * Persists a newer base of the loaded bundle. It is compiled first, so that the next start does not find it invalid.
   * Runs concurrently with other changes.
   * @returns false when it is not on the loaded chain
   * @throws BundleError when it is rejected or cannot be persisted
   */
  async rebase(files: ResolvedDirectory): Promise<boolean> {
    const { persisted } = this.#options;
    if (persisted === undefined) return false;
    const opened = await this.#active.open(await files.readBundle());
    await this.#active.compile(opened, files);
    return this.#changes.run(() => persisted.rebase(files, opened));
  }

  /** Attaches the statement to the loaded bundle, and to each that is loaded later; undefined ends it. */
  setBreakGlass(statement: BreakGlassStatement | undefined): void {
    this.#breakGlass = statement;
    const { snapshot } = this.#active;
    if (snapshot === undefined || snapshot.breakGlass === statement) return;
    this.#active.restate({ ...snapshot, breakGlass: statement });
  }

  /** Handles a statement from Control; persists it when it makes the loaded bundle fresher. Never rejects. */
  async offerStatement(bytes: Buffer): Promise<void> {
    if (!this.#statements.offer('control', bytes) || !this.#applyStatements()) return;
    await this.#options.persisted
      ?.keepFreshness(bytes)
      .catch((error: unknown) => this.#statements.fail('control', error));
  }
}
