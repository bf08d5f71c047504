/**
 * Keeps a holder key and its passports current: renews them after two thirds of their lifetime, and at once when the
 * caller's credential changes. A set is replaced as a whole, so a request in flight keeps the set that it began with.
 * After a failure the current set stays in use until it expires.
 * Source: docs/operate/workloads.md "With a broker".
 */
import { boundedWaitMs, exponentialWaitMs } from '../../protocol/retry-wait.ts';
import { BrokerError, type BrokerFault } from './broker-error.ts';

export interface Moment {
  readonly wallMs: number;
  readonly monotonicMs: number;
}

/** Times of a set that the keeper needs. */
export interface Kept {
  /** End of the first passport to expire. */
  readonly endsAtMs: number;
  /** Shortest lifetime of its passports. */
  readonly lifetimeMs: number;
}

export interface KeepFailure {
  readonly kind: BrokerFault | 'internal';
  readonly code: string;
  /** One line, without secrets. */
  readonly text: string;
}

export type KeepEvent<S> =
  | { readonly kind: 'renewed'; readonly set: S }
  | { readonly kind: 'failed'; readonly failure: KeepFailure; readonly waitMs: number };

export interface PassportKeeperPorts<S extends Kept> {
  /** Gets and installs a new set. @throws any error: the old set stays */
  readonly issue: (stop: AbortSignal) => Promise<S>;
  /** Subscribes to changes of the caller's credential. */
  readonly onChange: (listener: () => void) => () => void;
  readonly failureOf: (error: unknown) => KeepFailure;
  readonly now: () => Moment;
  /** Resolves after the time, or at once when aborted. */
  readonly sleep: (waitMs: number, stop: AbortSignal) => Promise<void>;
  /** A random number from 0 to below 1. */
  readonly random: () => number;
  readonly report: (event: KeepEvent<S>) => void;
}

/** Maximum sleep, so that a step of the wall clock is noticed. */
const MAX_SLEEP_MS = 5000;
const FIRST_RETRY_MS = 1000;
const MAX_RETRY_MS = 10_000;
/** A broker that refused will mostly refuse again, and each attempt causes an audit event. */
const MAX_REFUSED_RETRY_MS = 60_000;
const JITTER_SHARE = 0.25;
/** Share of a passport's lifetime after which it is renewed. */
const RENEW_AFTER = 2 / 3;

export class PassportKeeper<S extends Kept> {
  readonly #ports: PassportKeeperPorts<S>;
  #current: S | undefined;
  #failure: KeepFailure | undefined;
  #failures = 0;
  #renewAt: Moment | undefined;
  #retryAtMonotonicMs = 0;
  #woken = new AbortController();

  /** @param found an earlier set that is still in place; it is replaced at once */
  constructor(ports: PassportKeeperPorts<S>, found?: S) {
    this.#ports = ports;
    this.#current = found;
  }

  get current(): S | undefined {
    return this.#current;
  }

  /** What prevents the next set; undefined when nothing does. */
  get failure(): KeepFailure | undefined {
    return this.#failure;
  }

  async run(stop: AbortSignal): Promise<void> {
    const unsubscribe = this.#ports.onChange(() => {
      this.#renewAt = undefined;
      this.#woken.abort();
    });
    try {
      while (!stop.aborted) await this.check(stop);
    } finally {
      unsubscribe();
    }
  }

  /** Renews the set if that is due, otherwise sleeps until the next check. */
  async check(stop: AbortSignal): Promise<void> {
    const waitMs = this.#waitMs();
    if (!(waitMs > 0)) return this.#renew(stop);
    this.#woken = new AbortController();
    const until = AbortSignal.any([stop, this.#woken.signal]);
    await this.#ports.sleep(Math.min(waitMs, MAX_SLEEP_MS), until);
  }

  #waitMs(): number {
    const { monotonicMs, wallMs } = this.#ports.now();
    const retryMs = this.#retryAtMonotonicMs - monotonicMs;
    if (this.#renewAt === undefined) return retryMs;
    // Uses both clocks: the monotonic clock stops during machine sleep, the wall clock may be set back.
    const dueMs = Math.min(this.#renewAt.monotonicMs - monotonicMs, this.#renewAt.wallMs - wallMs);
    return Math.max(dueMs, retryMs);
  }

  async #renew(stop: AbortSignal): Promise<void> {
    const { issue, now, report } = this.#ports;
    const begin = now();
    // Set before the call, so that a credential that changes during the call causes another renewal.
    this.#renewAt = { monotonicMs: Number.POSITIVE_INFINITY, wallMs: Number.POSITIVE_INFINITY };
    try {
      const set = await issue(stop);
      this.#current = set;
      this.#failure = undefined;
      this.#failures = 0;
      this.#retryAtMonotonicMs = 0;
      if (this.#renewAt !== undefined) this.#renewAt = dueAt(set, begin);
      report({ kind: 'renewed', set });
    } catch (error) {
      this.#renewAt = undefined;
      if (!stop.aborted) this.#recordFailure(error);
    }
  }

  #recordFailure(error: unknown): void {
    const { failureOf, now, random, report } = this.#ports;
    const failure = failureOf(error);
    this.#failures = this.#failure?.code === failure.code ? this.#failures + 1 : 1;
    this.#failure = failure;
    const retryAfterMs = error instanceof BrokerError ? error.retryAfterMs : undefined;
    const waitMs = retryWaitMs(
      failure,
      { count: this.#failures, retryAfterMs, kept: this.#current },
      { nowMs: now().wallMs, random: random() },
    );
    this.#retryAtMonotonicMs = now().monotonicMs + waitMs;
    report({ kind: 'failed', failure, waitMs });
  }
}

function dueAt({ endsAtMs, lifetimeMs }: Kept, begin: Moment): Moment {
  return {
    monotonicMs: begin.monotonicMs + lifetimeMs * RENEW_AFTER,
    // The minimum prevents endless renewals when the clocks of broker and caller differ much.
    wallMs: Math.max(endsAtMs - lifetimeMs * (1 - RENEW_AFTER), begin.wallMs + lifetimeMs / 10),
  };
}

interface Retry {
  /** Number of consecutive failures with the same code, including this one. */
  readonly count: number;
  readonly retryAfterMs: number | undefined;
  readonly kept: Kept | undefined;
}

/** Time that the renewal of passports takes. */
const RENEW_MS = 10_000;
/** Maximum wait when less than {@link RENEW_MS} is left of the passports. */
const LATE_MS = 2000;
/** Maximum wait that `Retry-After` may request without passports. */
const MAX_RETRY_AFTER_MS = 10_000;

/**
 * The wait after a failure: exponential backoff from one second, at most a tenth of the passports' lifetime.
 * `Retry-After` extends it as far as the passports allow; without passports, only if it is short.
 * @param random 0 to below 1
 */
export function retryWaitMs(
  { kind }: KeepFailure,
  { count, kept, retryAfterMs = 0 }: Retry,
  { nowMs, random }: { readonly nowMs: number; readonly random: number },
): number {
  const maxMs = kind === 'refused' ? MAX_REFUSED_RETRY_MS : MAX_RETRY_MS;
  const limitMs = Math.min(maxMs, Math.max(FIRST_RETRY_MS, (kept?.lifetimeMs ?? Infinity) / 10));
  const backOffMs = exponentialWaitMs(count, {
    firstMs: FIRST_RETRY_MS,
    maxMs: limitMs,
    jitterShare: JITTER_SHARE,
    random: () => random,
  });
  const wantedMs = Math.max(backOffMs, retryAfterMs * (1 + JITTER_SHARE * random));
  const leftMs = (kept?.endsAtMs ?? 0) - nowMs;
  const lateMs = leftMs > 0 ? Math.min(limitMs, LATE_MS) : Math.max(backOffMs, MAX_RETRY_AFTER_MS);
  return boundedWaitMs(wantedMs, { leftMs, renewMs: RENEW_MS, lateMs });
}
