/**
 * Follows Control in the background: polls, applies the documents, and acknowledges or rejects them. No request waits
 * for it, and an outage of Control has no effect until freshness expires.
 * Source: docs/design/bundle.md "Distribution".
 */
import { setTimeout as delay } from 'node:timers/promises';
import { asBundleError, type BundleError, cut } from '../../../bundle/format/bundle-error.ts';
import { MAX_WAIT_SECONDS } from '../../../bundle/format/bundle-limits.ts';
import type { ChainPosition } from '../../../bundle/format/chain.ts';
import type { DistributedStep, PollAnswer, PollQuery } from '../../../bundle/format/distribution-contract.ts';
import { BUNDLE_FILE, stepFile } from '../../../bundle/format/file-names.ts';
import type { StepDocument } from '../../../bundle/format/open-document.ts';
import { Backoff } from '../../../process/program/backoff.ts';
import type { BundleLoader } from '../bundle-loader.ts';
import { PASSING, type Problem, ProblemRecord } from '../problem-record.ts';
import type { HighWaterMark } from '../state/high-water-mark.ts';
import type { PersistedBundle } from '../state/persisted-bundle.ts';
import { Acknowledger } from './acknowledger.ts';
import { BaseFetcher } from './base-fetcher.ts';
import { CommonPosition, type LateWorkers, type WorkerPositions } from './common-position.ts';
import type { ControlConnection } from './control-connection.ts';
import { ControlFailure, retryAfterOf } from './control-failure.ts';

export interface RefresherOptions {
  readonly authSite: string;
  readonly connection: ControlConnection;
  readonly loader: BundleLoader;
  readonly persisted: PersistedBundle;
  readonly mark: HighWaterMark;
  /** Whole seconds since the epoch. */
  readonly nowSeconds: () => number;
  readonly listener?: RefreshListener;
  /** Wait that polls request from Control; default {@link MAX_WAIT_SECONDS}. */
  readonly waitSeconds?: number;
  /** Time until the first route is denied as stale; zero or less when it is, or without a bundle. */
  readonly secondsUntilStale: () => number;
  /** First and longest backoff after failures, milliseconds; default 250 and 30,000. */
  readonly retryFirstMs?: number;
  readonly retryMaxMs?: number;
  /** Time after which workers without the loaded position are reported, milliseconds. */
  readonly lateAfterMs?: number;
  /** Resolves after the time, or at once when aborted. Default: the timer of Node.js. */
  readonly sleep?: (waitMs: number, signal: AbortSignal) => Promise<void>;
}

/** Must not throw. */
export interface RefreshListener {
  polled?(outcome: 'changed' | 'unchanged' | 'failed'): void;
  /** Called once for each change of the problem. */
  failed?(activity: RefreshActivity, code: string, text: string): void;
  recovered?(activity: RefreshActivity): void;
  acknowledged?(position: ChainPosition, outcome: 'accepted' | 'refused'): void;
  /** Workers have not loaded what this process has, which is therefore not acknowledged. */
  late?(late: LateWorkers): void;
  /** A base was fetched and replaced the previous one. */
  rebased?(revision: number, bytesFetched: number): void;
}

export interface RefreshStatus {
  /** Time of Control's last valid response; undefined before the first. */
  readonly lastContactSeconds: number | undefined;
  /** The first current problem among polls, fetches and acknowledgements. */
  readonly problem: Problem<ControlFailure | BundleError> | undefined;
  /** Undefined when they follow, and without workers. */
  readonly late: LateWorkers | undefined;
}

export type RefreshActivity = 'poll' | 'fetch' | 'acknowledge';

/** Minimum time between polls without a result, in case Control does not wait as requested. */
const IDLE_ROUND_MS = 250;
/** Maximum number of consecutive useless statements that are followed by another poll at once. */
const MOST_IDLE_STATEMENTS = 8;

export class Refresher {
  readonly #options: RefresherOptions;
  readonly #stop = new AbortController();
  readonly #problems: { readonly [A in RefreshActivity]: ProblemRecord<ControlFailure | BundleError> };
  readonly #backoff: Backoff;
  readonly #acknowledger: Acknowledger;
  readonly #bases: BaseFetcher;
  readonly #common: CommonPosition;
  #running: Promise<void> | undefined;
  #lastContactSeconds: number | undefined;
  /** ETag of the last response that was applied completely. */
  #etag: string | undefined;
  /** Freshness statement of the last response. */
  #lastStatement: string | undefined;
  /** Number of consecutive statements that made nothing fresher. */
  #idleStatements = 0;
  /** Control's steps do not continue the loaded bundle, so polls ask as if nothing were loaded. */
  #needsWhole = false;
  /** End position of a response whose content was rejected; the same position is not tried again. */
  #refusedEnd: ChainPosition | undefined;

  constructor(options: RefresherOptions) {
    const { connection, listener, nowSeconds, sleep = pause } = options;
    this.#options = options;
    this.#backoff = newBackoff(options);
    const recordOf = (activity: RefreshActivity) =>
      new ProblemRecord<ControlFailure | BundleError>(nowSeconds, ({ code, message }) =>
        listener?.failed?.(activity, code, message),
      );
    this.#problems = {
      poll: recordOf('poll'),
      fetch: recordOf('fetch'),
      acknowledge: recordOf('acknowledge'),
    };
    const { signal } = this.#stop;
    this.#acknowledger = new Acknowledger({
      connection,
      sleep,
      signal,
      backoff: newBackoff(options),
      onFailure: (error) => this.#failed('acknowledge', error),
      onSent: ({ revision, head, outcome }) => {
        this.#succeeded('acknowledge');
        listener?.acknowledged?.({ revision, head }, outcome);
      },
    });
    this.#common = new CommonPosition({
      onRaised: (position) => this.#acknowledger.send({ ...position, outcome: 'accepted' }),
      onLate: (late) => listener?.late?.(late),
      lateAfterMs: options.lateAfterMs,
    });
    this.#bases = new BaseFetcher({
      ...options,
      sleep,
      signal,
      backoff: newBackoff(options),
      onFailure: (error) => this.#failed('fetch', error),
      onFetched: (revision, bytesFetched) => {
        this.#succeeded('fetch');
        listener?.rebased?.(revision, bytesFetched);
      },
    });
  }

  status(): RefreshStatus {
    const { poll, fetch, acknowledge } = this.#problems;
    return {
      lastContactSeconds: this.#lastContactSeconds,
      problem: poll.current ?? fetch.current ?? acknowledge.current,
      late: this.#common.late(),
    };
  }

  /** Of the worker processes that follow this one: a position is acknowledged when all that run hold it. */
  get workers(): WorkerPositions {
    return this.#common;
  }

  /**
   * Returns at once. Acknowledges the bundle that is loaded at the start.
   * @param mark that workers find before this process has loaded anything
   */
  start(mark?: ChainPosition): void {
    const { position } = this.#options.loader;
    if (position !== undefined) this.#common.own(position);
    else if (mark !== undefined) this.#common.begin(mark);
    this.#running ??= this.#run();
  }

  /** Call it when no more requests are decided. */
  async close(): Promise<void> {
    this.#stop.abort();
    this.#common.close();
    await Promise.all([this.#running, this.#acknowledger.idle(), this.#bases.idle()]);
    await this.#sayEnd();
    await this.#options.connection.close();
  }

  /** Once: a Control that is not there waits for this instance's last possible freshness. */
  async #sayEnd(): Promise<void> {
    const { connection, loader } = this.#options;
    if (loader.position === undefined || this.#lastContactSeconds === undefined) return;
    await connection.end(loader.position, AbortSignal.timeout(END_TIMEOUT_MS)).catch(() => undefined);
  }

  async #run(): Promise<void> {
    const { signal } = this.#stop;
    const { sleep = pause } = this.#options;
    while (!signal.aborted) {
      let waitMs = 0;
      const startedMs = performance.now();
      try {
        const isIdle = await this.#round();
        this.#backoff.reset();
        if (isIdle) waitMs = IDLE_ROUND_MS - (performance.now() - startedMs);
      } catch (error) {
        if (signal.aborted) return;
        this.#etag = undefined;
        this.#options.listener?.polled?.('failed');
        this.#failed('poll', error);
        waitMs = this.#backoff.failed(retryAfterOf(error));
      }
      if (waitMs > 0) await sleep(waitMs, signal);
    }
  }

  /** Polls once and handles the response. @returns whether it contained nothing new */
  async #round(): Promise<boolean> {
    const { connection, loader, listener, mark, waitSeconds = MAX_WAIT_SECONDS } = this.#options;
    // When no bundle is loaded, the query sends the high-water mark, so that Control publishes a higher revision. While the mark cannot be
    // read, nothing can be loaded, so nothing is fetched either.
    const standing = loader.position ?? (await mark.position());
    const sentPosition = this.#needsWhole ? undefined : standing;
    const query: PollQuery = {
      // Control counts it as what this instance decides by, so a worker that is behind counts.
      ...(sentPosition && this.#common.orOlder(sentPosition)),
      ...this.#baseRevision(),
      wait_seconds: this.#etag === undefined ? 0 : waitSeconds,
    };
    const result = await connection.poll(query, this.#etag, this.#stop.signal);
    this.#lastContactSeconds = this.#options.nowSeconds();
    this.#succeeded('poll');
    listener?.polled?.(result.kind === 'answer' ? 'changed' : 'unchanged');
    if (result.kind === 'unchanged') return true;
    return this.#take(result.answer, result.etag, sentPosition);
  }

  #baseRevision(): Pick<PollQuery, 'base_revision'> {
    const base = this.#needsWhole ? undefined : this.#options.persisted.base;
    return base === undefined ? {} : { base_revision: base.revision };
  }

  async #take(
    answer: PollAnswer,
    etag: string | undefined,
    sentPosition: ChainPosition | undefined,
  ): Promise<boolean> {
    const { authSite, loader } = this.#options;
    if (answer.auth_site !== authSite) {
      throw new ControlFailure('control_answer_invalid', 'it speaks for another Auth Site');
    }
    const before = loader.position;
    // Another source may have changed the bundle during the poll.
    const isStale = before !== undefined && !this.#needsWhole && !isSame(before, sentPosition);
    const isNew = !isStale && !isSame(answer, before) && !isSame(answer, this.#refusedEnd);
    const isRefused = isNew && (await this.#follow(answer, before));
    const after = loader.position;
    if (after !== undefined && !isSame(after, before) && !isRefused) {
      this.#common.own(after);
    }
    const { freshness } = answer;
    const isNews = await this.#offerStatement(freshness);
    const isSettled = isSame(answer, after) || isSame(answer, this.#refusedEnd);
    this.#etag = isSettled ? etag : undefined;
    if (isSame(answer, after)) this.#bases.offer(answer.whole);
    return isSame(after, before) && !isNews;
  }

  /** @returns whether the next poll may follow at once; false for a repeated statement, and after too many useless ones */
  async #offerStatement(freshness: string | undefined): Promise<boolean> {
    const { loader } = this.#options;
    const before = loader.snapshot?.freshAsOfSeconds;
    if (freshness !== undefined) await loader.offerStatement(Buffer.from(freshness));
    const isYounger = loader.snapshot?.freshAsOfSeconds !== before;
    this.#idleStatements = isYounger ? 0 : this.#idleStatements + 1;
    const isAnother = freshness !== this.#lastStatement;
    this.#lastStatement = freshness;
    return isYounger || (isAnother && this.#idleStatements <= MOST_IDLE_STATEMENTS);
  }

  /**
   * Takes the shortest way to the position of the response.
   * @returns whether any of it was rejected
   * @throws ControlFailure, BundleError when it could not be tried
   */
  async #follow(answer: PollAnswer, from: ChainPosition | undefined): Promise<boolean> {
    const { whole } = answer;
    // Polls send what the last worker holds, so that the first steps may be known.
    const steps = answer.steps.filter(({ revision }) => revision > (from?.revision ?? 0));
    const needsWhole = from === undefined || this.#needsWhole || whole?.required === true;
    if (!needsWhole && steps.length === 0 && answer.steps.length > 0) return false;
    if (!needsWhole && steps.length > 0) {
      const refused = await this.#options.loader.advance(steps.map(asDocument));
      if (refused !== undefined) this.#refused(answer, refused, 'steps');
      return refused !== undefined;
    }
    if (whole === undefined) {
      if (this.#needsWhole) throw new ControlFailure('control_answer_invalid', 'it offers no whole bundle');
      this.#needsWhole = true;
      return false;
    }
    const refused = await this.#bases.replace(whole, whole.steps.map(asDocument));
    this.#needsWhole = false;
    if (refused !== undefined) this.#refused(answer, refused, 'whole');
    return refused !== undefined;
  }

  /** @throws BundleError of a transient kind, so that the same is tried again */
  #refused(answer: PollAnswer, error: BundleError, what: 'steps' | 'whole'): void {
    const { revision, head } = answer;
    // Control takes neither half a character nor control characters.
    const detail = cut(error.message, MOST_DETAIL_CHARACTERS).replaceAll(/[\p{Cs}\p{Cc}]/gu, '\ufffd');
    this.#acknowledger.send({ revision, head, outcome: 'refused', code: error.code, detail });
    if (PASSING.has(error.code)) throw error;
    if (what === 'steps') this.#needsWhole = true;
    else this.#refusedEnd = { revision, head };
  }

  #succeeded(activity: RefreshActivity): void {
    if (this.#problems[activity].clear()) this.#options.listener?.recovered?.(activity);
  }

  #failed(activity: RefreshActivity, error: unknown): void {
    const isOurs = error instanceof ControlFailure;
    this.#problems[activity].set(isOurs ? error : asBundleError(error, BUNDLE_FILE));
  }
}

const MOST_DETAIL_CHARACTERS = 512;
const END_TIMEOUT_MS = 1000;
/** Time of a poll and of loading its result, plus a second, because statements have whole seconds. */
const RENEW_MS = 2000;
/** Maximum wait while a route is denied as stale, or nothing is loaded. */
const LATE_MS = 2000;

async function pause(waitMs: number, signal: AbortSignal): Promise<void> {
  await delay(waitMs, undefined, { signal }).catch(() => undefined);
}

function newBackoff(options: RefresherOptions): Backoff {
  const { retryFirstMs = 250, retryMaxMs = 30_000, secondsUntilStale } = options;
  return new Backoff({
    firstMs: retryFirstMs,
    maxMs: retryMaxMs,
    urgency: () => ({ leftMs: secondsUntilStale() * 1000, renewMs: RENEW_MS, lateMs: LATE_MS }),
  });
}

function asDocument({ kind, revision, document }: DistributedStep): StepDocument {
  return { kind, file: stepFile(kind, revision), bytes: Buffer.from(document) };
}

function isSame(a: ChainPosition | undefined, b: ChainPosition | undefined): boolean {
  return a?.revision === b?.revision && a?.head === b?.head;
}
