/**
 * The mark that a site's verifiers share: a copy of the high-water mark outside any verifier's state directory. With it, a
 * new verifier, or one that lost its state, rejects old bundles. {@link MirroredMark} copies a verifier's own mark to it.
 * Adapter: `src/verifier/redis/redis-shared-mark.ts`.
 * Source: docs/design/bundle.md "Revision and head" and "The shared mark".
 */
import { setTimeout as sleep } from 'node:timers/promises';
import { type BundleError, bundleError } from '../../../bundle/format/bundle-error.ts';
import type { ChainPosition } from '../../../bundle/format/chain.ts';
import { Backoff, NO_JITTER } from '../../../process/program/backoff.ts';
import { type HighWaterMark, MARK_FILE } from './high-water-mark.ts';

/** The highest revision that any verifier of a site ever accepted, with its head. */
export type Mark = ChainPosition;

/**
 * Contract of every adapter: one shared mark for each Auth Site, which never expires, changed by an atomic
 * compare-and-maximum. The adapter does not retry; the caller does. All rejections are {@link SharedMarkError}.
 */
export interface SharedMark {
  /**
   * Waits for a pending connection, but always settles within `timeoutMs`.
   * @returns undefined only when the store answered that it has no mark for the site
   */
  read(authSite: string, timeoutMs: number): Promise<Mark | undefined>;
  /**
   * Stores the mark when its revision is higher than the stored one; otherwise changes nothing, whatever the heads.
   * Settles within `timeoutMs`.
   * @returns the stored mark after the call. The same revision with another head means that two verifiers of the site
   *   accepted different bundles.
   */
  raise(authSite: string, mark: Mark, timeoutMs: number): Promise<Mark>;
  /**
   * Deletes the site's mark, even if it is unreadable. Settles within `timeoutMs`.
   * @returns the deleted mark, `unreadable` for an invalid one, undefined when there was none
   */
  reset(authSite: string, timeoutMs: number): Promise<Mark | 'unreadable' | undefined>;
  /** The random ID of the store that keeps the site's mark, created if it has none. Settles within `timeoutMs`. */
  storeId(authSite: string, timeoutMs: number): Promise<string>;
  /** Ends pending operations. Never rejects. */
  close(): Promise<void>;
}

/**
 * `unavailable`: the store is unreachable, or did not answer in time. `corrupt`: the stored value is not a mark.
 * `raise` must not overwrite it either, because it may have been a high one.
 */
export type SharedMarkFault = 'unavailable' | 'corrupt';

/** The message is one line without secrets. */
export class SharedMarkError extends Error {
  override readonly name = 'SharedMarkError';
  readonly fault: SharedMarkFault;

  constructor(fault: SharedMarkFault, message: string) {
    super(message);
    this.fault = fault;
  }
}

/** Each is called once for each change, not at every attempt. Must not throw. */
export interface MirroredMarkListener {
  /** This verifier has no mark of its own and uses the shared one until it has loaded a bundle. */
  bound?(position: ChainPosition): void;
  /** The shared mark could not be raised; the verifier retries. */
  raiseFailed?(error: SharedMarkError): void;
  raiseWorksAgain?(): void;
  /** Another verifier of the site accepted different content for this revision. */
  disagrees?(own: ChainPosition, shared: ChainPosition): void;
}

export interface MirroredMarkOptions {
  readonly own: HighWaterMark;
  readonly shared: SharedMark;
  readonly authSite: string;
  readonly listener?: MirroredMarkListener;
  /** Timeout of a load's read of the shared mark, and of one raise. Default 2000. */
  readonly timeoutMs?: number;
  /** Minimum interval between raises, which combines many steps a second. Default 1000. */
  readonly raiseIntervalMs?: number;
  /** Interval after which the shared mark is raised again without a change. Default 60,000. */
  readonly repeatIntervalMs?: number;
}

const DEFAULT_TIMEOUT_MS = 2000;
const DEFAULT_RAISE_INTERVAL_MS = 1000;
const DEFAULT_REPEAT_INTERVAL_MS = 60_000;
const MAX_RETRY_INTERVAL_MS = 30_000;
/** Polling interval during the backoff. */
const LOOK_INTERVAL_MS = 250;

/**
 * A verifier's own mark, mirrored to the shared one. The own mark always counts. The shared mark binds only a verifier without
 * its own. It is raised in the background after each change, so nothing waits for it. It is also repeated from time to time,
 * so that a lost one comes back.
 */
export class MirroredMark implements HighWaterMark {
  readonly #options: MirroredMarkOptions;
  readonly #backoff: Backoff;
  readonly #stop = new AbortController();
  /** Position that the shared mark does not have yet. */
  #pending: ChainPosition | undefined;
  #raising: Promise<void> | undefined;
  #repeat: NodeJS.Timeout | undefined;
  #boundTo: ChainPosition | undefined;
  #raiseProblem: string | undefined;
  #disagreesAbout: string | undefined;

  constructor(options: MirroredMarkOptions) {
    this.#options = options;
    this.#backoff = new Backoff({
      firstMs: this.#raiseIntervalMs,
      maxMs: MAX_RETRY_INTERVAL_MS,
      random: NO_JITTER,
    });
  }

  /**
   * Starts to keep the shared mark up to date with the own one, also without changes. Does not report an own mark that
   * cannot be read, because loads report that.
   */
  async start(): Promise<void> {
    const { own, repeatIntervalMs = DEFAULT_REPEAT_INTERVAL_MS } = this.#options;
    const offerOwn = async () => {
      const position = await own.position().catch(() => undefined);
      if (position !== undefined) this.#offer(position);
    };
    this.#repeat ??= setInterval(() => void offerOwn(), repeatIntervalMs).unref();
    await offerOwn();
  }

  /**
   * The own mark. Without one, the shared mark, read at each call because it may have been reset.
   * @throws BundleError `mark_unavailable` while it cannot be read: without either mark nothing may be loaded;
   *   `mark_corrupt`, `mark_of_another_site`
   */
  async position(): Promise<ChainPosition | undefined> {
    const own = await this.#options.own.position();
    if (own !== undefined) return own;
    const shared = await this.#readShared();
    if (shared !== undefined && shared.head !== this.#boundTo?.head) this.#options.listener?.bound?.(shared);
    this.#boundTo = shared;
    return shared;
  }

  /** Returns when the own mark is stored; the shared one follows. @throws BundleError `file_not_written` */
  async raise(position: ChainPosition): Promise<void> {
    await this.#options.own.raise(position);
    this.#offer(position);
  }

  /** Sends a pending position to the shared mark, once, unless that failed a moment ago. Never rejects. */
  async close(): Promise<void> {
    clearInterval(this.#repeat);
    this.#stop.abort();
    await this.#raising;
    if (this.#pending !== undefined && this.#raiseProblem === undefined) {
      await this.#raiseShared(this.#pending);
    }
    this.#pending = undefined;
  }

  get #raiseIntervalMs(): number {
    return this.#options.raiseIntervalMs ?? DEFAULT_RAISE_INTERVAL_MS;
  }

  get #timeoutMs(): number {
    return this.#options.timeoutMs ?? DEFAULT_TIMEOUT_MS;
  }

  async #readShared(): Promise<ChainPosition | undefined> {
    const { authSite, shared } = this.#options;
    try {
      return await shared.read(authSite, this.#timeoutMs);
    } catch (error) {
      throw asMarkError(error);
    }
  }

  #offer({ revision, head }: ChainPosition): void {
    if (this.#stop.signal.aborted) return;
    if (this.#pending === undefined || revision > this.#pending.revision) this.#pending = { revision, head };
    this.#raising ??= this.#raisePending().finally(() => {
      this.#raising = undefined;
    });
  }

  async #raisePending(): Promise<void> {
    const { signal } = this.#stop;
    while (this.#pending !== undefined && !signal.aborted) {
      const position = this.#pending;
      const isDone = this.#backoff.isDue && (await this.#raiseShared(position));
      if (isDone && this.#pending === position) this.#pending = undefined;
      const pauseMs = isDone ? this.#raiseIntervalMs : Math.min(LOOK_INTERVAL_MS, this.#raiseIntervalMs);
      await sleep(pauseMs, undefined, { signal, ref: false }).catch(() => undefined);
    }
  }

  /** @returns whether the shared mark is at the position, or above it */
  async #raiseShared(position: ChainPosition): Promise<boolean> {
    const { authSite, listener, shared } = this.#options;
    try {
      const kept = await shared.raise(authSite, position, this.#timeoutMs);
      this.#backoff.reset();
      if (this.#raiseProblem !== undefined) listener?.raiseWorksAgain?.();
      this.#raiseProblem = undefined;
      this.#compare(position, kept);
      return true;
    } catch (error) {
      this.#backoff.failed();
      const problem = asSharedMarkError(error);
      if (problem.message !== this.#raiseProblem) listener?.raiseFailed?.(problem);
      this.#raiseProblem = problem.message;
      return false;
    }
  }

  #compare(own: ChainPosition, shared: ChainPosition): void {
    if (own.revision !== shared.revision || own.head === shared.head) return;
    if (this.#disagreesAbout !== own.head) this.#options.listener?.disagrees?.(own, shared);
    this.#disagreesAbout = own.head;
  }
}

/** Any other error is an internal one, and its text may contain anything. */
function asSharedMarkError(error: unknown): SharedMarkError {
  if (error instanceof SharedMarkError) return error;
  const name = error instanceof Error ? error.name : typeof error;
  return new SharedMarkError('unavailable', `unexpected ${name}`);
}

function asMarkError(error: unknown): BundleError {
  const { fault, message } = asSharedMarkError(error);
  if (fault === 'corrupt') {
    const text = `the shared mark: ${message}; nothing is loaded until it is reset (proofgate bundle reset-mark)`;
    return bundleError('mark_corrupt', MARK_FILE, '', text);
  }
  const text = `there is none, and the shared one cannot be asked for: ${message}; nothing is loaded until it can`;
  return bundleError('mark_unavailable', MARK_FILE, '', text);
}
