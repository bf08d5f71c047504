/**
 * A bundle's life in the verifier: load, verify, validate, compile, swap one reference. Whatever fails on the way
 * leaves the last-known-good in place, and says so.
 * Source: docs/bundle.md "Life in the verifier" and "Freshness".
 */
import { AcceptedKeys } from './accepted-keys.ts';
import { Backoff } from './backoff.ts';
import { judgeBundle } from './chain.ts';
import { Coalesced } from './coalesced.ts';
import { compileBundle } from './compile.ts';
import { DirectoryWatch } from './directory-watch.ts';
import type { Signers } from './documents.ts';
import { BundleError, type BundleErrorCode, bundleError } from './errors.ts';
import { BUNDLE_FILE, FRESHNESS_FILE } from './file-names.ts';
import {
  applyFreshness,
  type FreshnessIgnored,
  type FreshnessStatement,
  openFreshness,
} from './freshness.ts';
import type { HighWaterMark } from './high-water-mark.ts';
import { LocalDirectory, type ResolvedDirectory } from './local-directory.ts';
import { type OpenedBundle, openBundleInSteps } from './open-bundle.ts';
import type { Snapshot } from './snapshot.ts';
import { TimeSlice } from './time-slice.ts';

export interface BundleHolderOptions {
  readonly authSite: string;
  readonly directory: string;
  readonly bundleSigners: Signers;
  readonly freshnessSigners: Signers;
  readonly mark: HighWaterMark;
  /** Whole seconds since the epoch, rounded down. */
  readonly nowSeconds: () => number;
  /** The verifier's own conditions, asked at every load: a reason refuses, undefined takes the snapshot. */
  readonly acceptSnapshot?: (snapshot: Snapshot) => string | undefined;
  readonly listener?: BundleListener;
  /** Default 1000. */
  readonly pollIntervalMs?: number;
}

/** Told once about each change, not at every poll. Must not throw. */
export interface BundleListener {
  loaded?(snapshot: Snapshot, load: BundleLoad): void;
  freshened?(snapshot: Snapshot): void;
  /** The bundle on disk was not taken; what was loaded before stays. */
  refused?(error: BundleError): void;
  freshnessRefused?(error: BundleError): void;
  freshnessIgnored?(why: FreshnessIgnored, statement: FreshnessStatement): void;
}

export interface BundleLoad {
  /** From the file's first byte to the swap. */
  readonly durationMs: number;
  /** Thumbprints of the pinned keys that signed. */
  readonly signers: readonly string[];
}

export interface BundleStatus {
  readonly snapshot: Snapshot | undefined;
  readonly loadedAtSeconds: number | undefined;
  /** Why the bundle on disk is not what is loaded; undefined when it is. */
  readonly problem: BundleProblem | undefined;
  readonly freshnessProblem: BundleProblem | undefined;
  /** Why the statement on disk, well signed as it is, is not applied. */
  readonly freshnessIgnored: FreshnessIgnored | undefined;
}

export interface BundleProblem {
  readonly error: BundleError;
  /** When it was first seen. */
  readonly sinceSeconds: number;
}

/** What a file with this fingerprint came to: until it changes there is nothing to do again. */
interface Settled {
  readonly fingerprint: string;
  readonly problem: BundleError | undefined;
  /** Whether the same files may end otherwise later, so that it is worth trying again. */
  readonly mayPass: boolean;
}

const DEFAULT_POLL_INTERVAL_MS = 1000;
/** Longest time between attempts at files that have not changed. */
const MAX_RETRY_INTERVAL_MS = 60_000;

export class BundleHolder {
  readonly #options: BundleHolderOptions;
  readonly #directory: LocalDirectory;
  readonly #acceptedKeys = new AcceptedKeys();
  readonly #bundlePass = new Coalesced(() => this.#runBundlePass());
  readonly #freshnessPass = new Coalesced(() => this.#runFreshnessPass());
  #watch: DirectoryWatch | undefined;
  #snapshot: Snapshot | undefined;
  #loadedAtSeconds: number | undefined;
  #settledBundle: Settled | undefined;
  readonly #backoff: Backoff;
  #problem: BundleProblem | undefined;
  #freshnessBytes: Buffer | undefined;
  #statement: FreshnessStatement | undefined;
  #freshnessProblem: BundleProblem | undefined;
  #freshnessIgnored: FreshnessIgnored | undefined;

  constructor(options: BundleHolderOptions) {
    this.#options = options;
    this.#directory = new LocalDirectory(options.directory);
    this.#backoff = new Backoff(this.#pollIntervalMs, MAX_RETRY_INTERVAL_MS);
  }

  get #pollIntervalMs(): number {
    return this.#options.pollIntervalMs ?? DEFAULT_POLL_INTERVAL_MS;
  }

  /** What to decide from now. A request keeps the one that it began with. */
  get snapshot(): Snapshot | undefined {
    return this.#snapshot;
  }

  status(): BundleStatus {
    return {
      snapshot: this.#snapshot,
      loadedAtSeconds: this.#loadedAtSeconds,
      problem: this.#problem,
      freshnessProblem: this.#freshnessProblem,
      freshnessIgnored: this.#freshnessIgnored,
    };
  }

  /** Loads once, then keeps watching. Never rejects: see {@link BundleHolder.status}. */
  async start(): Promise<void> {
    this.#watch ??= new DirectoryWatch({
      directory: this.#options.directory,
      pollIntervalMs: this.#pollIntervalMs,
      onTick: () => void this.#look(),
    });
    await this.#look();
  }

  /** Looks at the files now, also at ones that failed a moment ago. Never rejects. */
  async reload(): Promise<void> {
    this.#backoff.reset();
    await this.#look();
  }

  /** Statements are read while a large bundle is still being compiled, lest what is loaded grow stale meanwhile. */
  async #look(): Promise<void> {
    await this.#freshnessPass.run();
    await this.#bundlePass.run();
  }

  close(): void {
    this.#watch?.close();
    this.#watch = undefined;
  }

  async #runBundlePass(): Promise<void> {
    try {
      await this.#directory.read(async (files) => {
        this.#watch?.follow(files.path);
        await this.#readBundle(files);
      });
    } catch (error) {
      this.#setProblem(asBundleError(error, BUNDLE_FILE));
    }
  }

  /** @throws BundleError about files, which may be gone because the directory was just swapped */
  async #readBundle(files: ResolvedDirectory): Promise<void> {
    const fingerprint = await files.bundleFingerprint();
    const settled = this.#settledBundle;
    if (settled?.fingerprint === fingerprint && !(settled.mayPass && this.#backoff.isDue)) {
      this.#setProblem(settled.problem);
      return;
    }
    try {
      await this.#loadBundle(files);
      this.#backoff.reset();
      this.#settledBundle = { fingerprint, problem: undefined, mayPass: false };
      this.#setProblem(undefined);
    } catch (error) {
      const problem = asBundleError(error, BUNDLE_FILE);
      this.#backoff.failed();
      this.#settledBundle = { fingerprint, problem, mayPass: mayPass(problem) };
      throw problem;
    }
  }

  async #loadBundle(files: ResolvedDirectory): Promise<void> {
    const startedMs = performance.now();
    const { authSite, bundleSigners, mark } = this.#options;
    const bytes = await files.readBundle();
    const slice = new TimeSlice();
    const opened = await slice.run(
      openBundleInSteps(bytes, { file: BUNDLE_FILE, signers: bundleSigners, authSite }),
    );
    const step = judgeBundle(await mark.position(), opened.position, BUNDLE_FILE);
    if (step.kind === 'refuse') throw step.error;
    if (step.kind === 'nothing_to_do' && this.#snapshot?.head === opened.position.head) return;
    const snapshot = await this.#compile(opened, files);
    // Before the swap: what was decided from must not be forgotten.
    await mark.raise(opened.position);
    this.#swap(snapshot, { durationMs: performance.now() - startedMs, signers: opened.signers });
  }

  async #compile(opened: OpenedBundle, files: ResolvedDirectory): Promise<Snapshot> {
    const keys = this.#acceptedKeys.begin();
    const snapshot = await compileBundle(opened.content, {
      file: BUNDLE_FILE,
      head: opened.position.head,
      readShard: (file) => files.readShard(file),
      importKey: keys.importKey,
    });
    const refusal = this.#options.acceptSnapshot?.(snapshot);
    if (refusal !== undefined) throw bundleError('refused_by_policy', BUNDLE_FILE, '', refusal);
    keys.succeeded();
    return snapshot;
  }

  #swap(compiled: Snapshot, load: BundleLoad): void {
    const nowSeconds = this.#options.nowSeconds();
    const step = this.#statement && applyFreshness(compiled, this.#statement, nowSeconds);
    const snapshot = step?.kind === 'accept' ? step.snapshot : compiled;
    this.#snapshot = snapshot;
    this.#loadedAtSeconds = nowSeconds;
    this.#setIgnored(step);
    this.#options.listener?.loaded?.(snapshot, load);
  }

  async #runFreshnessPass(): Promise<void> {
    try {
      const bytes = await this.#directory.read((files) => files.readFreshness());
      this.#readStatement(bytes);
      this.#setFreshnessProblem(undefined);
    } catch (error) {
      this.#setFreshnessProblem(asBundleError(error, FRESHNESS_FILE));
    }
    this.#applyStatement();
  }

  /** Verifies bytes that are not those of the statement at hand. A bad file takes nothing back. */
  #readStatement(bytes: Buffer | undefined): void {
    if (bytes === undefined || this.#freshnessBytes?.equals(bytes)) return;
    const { authSite, freshnessSigners: signers } = this.#options;
    this.#statement = openFreshness(bytes, { file: FRESHNESS_FILE, signers, authSite });
    this.#freshnessBytes = bytes;
  }

  /** Again at every pass: one that was ahead of the clock, or of the bundle, may hold by now. */
  #applyStatement(): void {
    if (this.#snapshot === undefined || this.#statement === undefined) return;
    const step = applyFreshness(this.#snapshot, this.#statement, this.#options.nowSeconds());
    if (step.kind === 'accept') this.#snapshot = step.snapshot;
    this.#setIgnored(step);
    if (step.kind === 'accept') this.#options.listener?.freshened?.(step.snapshot);
  }

  #setIgnored(step: ReturnType<typeof applyFreshness> | undefined): void {
    const why = step?.kind === 'ignore' ? step.why : undefined;
    const isNew = why !== this.#freshnessIgnored;
    this.#freshnessIgnored = why;
    if (isNew && why !== undefined && this.#statement !== undefined) {
      this.#options.listener?.freshnessIgnored?.(why, this.#statement);
    }
  }

  #setProblem(error: BundleError | undefined): void {
    if (isSame(error, this.#problem?.error)) return;
    this.#problem = error && { error, sinceSeconds: this.#options.nowSeconds() };
    if (error !== undefined) this.#options.listener?.refused?.(error);
  }

  #setFreshnessProblem(error: BundleError | undefined): void {
    if (isSame(error, this.#freshnessProblem?.error)) return;
    this.#freshnessProblem = error && { error, sinceSeconds: this.#options.nowSeconds() };
    if (error !== undefined) this.#options.listener?.freshnessRefused?.(error);
  }
}

function isSame(a: BundleError | undefined, b: BundleError | undefined): boolean {
  return a?.code === b?.code && a?.message === b?.message;
}

const PASSING: ReadonlySet<BundleErrorCode> = new Set([
  'file_unreadable',
  'file_not_written',
  'mark_corrupt',
  'mark_of_another_site',
  'internal',
]);

function mayPass(problem: BundleError): boolean {
  return PASSING.has(problem.code);
}

/** Nothing that a file holds may bring the verifier down; an error of another class is ours, and its text unsafe. */
function asBundleError(error: unknown, file: string): BundleError {
  if (error instanceof BundleError) return error;
  const name = error instanceof Error ? error.name : typeof error;
  return bundleError('internal', file, '', `unexpected ${name}`);
}
