/**
 * Holds the keys of one source revision: loads them from the records, and refreshes them when due or when a token names
 * an unknown key.
 *
 * After a failed refresh the keys stay in use, at most 24 h after the last successful one. A successful refresh replaces
 * all keys, so that a key that the issuer removed is gone, even if none is left.
 *
 * Source: docs/operate/control.md "Sources and tokens".
 */

import type { Failure } from '../../process/outbound-fetch/fetch-failures.ts';
import type { JsonFetcher } from '../../process/outbound-fetch/outbound-fetch.ts';
import { MAX_KEY_SET_LEAD_MS } from '../domain/source-states.ts';
import { TokenBucket } from '../domain/token-bucket.ts';
import type { SourceFailureCode } from './fetch-key-set.ts';
import { fetchKeySet } from './fetch-key-set.ts';
import { type IssuerKey, parseKeySetText } from './key-set.ts';

/** Maximum age of keys after the last successful refresh. */
export const MAX_KEY_AGE_MS = 24 * 3_600_000;
/** Limits database reads that invalid tokens cause. */
const RELOAD_SPACING_MS = 1_000;

/** Whether keys with this fetch time may be used now. */
export function isTimely(fetchedAtMs: number, nowMs: number): boolean {
  const ageMs = nowMs - fetchedAtMs;
  return ageMs >= -MAX_KEY_SET_LEAD_MS && ageMs <= MAX_KEY_AGE_MS;
}

export interface SourceKeysOptions {
  readonly fetcher: JsonFetcher;
  readonly records: KeySetRecords;
  readonly nowMs: () => number;
  readonly refreshIntervalMs: number;
  /** For logs and metrics; must not throw. */
  readonly report: (event: KeySetEvent) => void;
}

export type KeyLookup =
  /** Current keys: if the named key is missing, it does not exist. */
  | { readonly kind: 'keys'; readonly keys: readonly IssuerKey[] }
  /** `issuer_keys_unavailable`: all keys are too old, or it is unknown now whether the named key exists. */
  | { readonly kind: 'unavailable'; readonly retryAfterSeconds: number };

interface HeldKeys {
  readonly keys: readonly IssuerKey[];
  readonly fetchedAtMs: number;
}

type RefreshOutcome = 'refreshed' | 'failed' | 'throttled';

export class SourceKeys {
  readonly #source: KeySource;
  readonly #options: SourceKeysOptions;
  readonly #budget = new FetchBudget();
  #held: HeldKeys | undefined;
  #reloadedAtMs = Number.NEGATIVE_INFINITY;
  #attemptedAtMs = Number.NEGATIVE_INFINITY;
  #reloading: Promise<void> | undefined;
  #refreshing: Promise<RefreshOutcome> | undefined;

  constructor(source: KeySource, options: SourceKeysOptions) {
    this.#source = source;
    this.#options = options;
  }

  /** Never rejects. */
  async keysFor(kid: string): Promise<KeyLookup> {
    const earlier = this.#refreshing;
    let outcome = await this.#refreshWhenDue();
    if (this.#holds(kid)) return this.#current();
    // A fetch that began before the token arrived may have missed its key; a later fetch is conclusive.
    if (outcome === undefined || earlier !== undefined) {
      await this.#reload();
      if (this.#holds(kid)) return this.#current();
      outcome = await this.#refreshFor(kid);
    }
    return outcome === 'refreshed' || this.#holds(kid) ? this.#current() : this.#unavailable();
  }

  /** Never rejects. A refresh by another instance counts too. */
  async refreshIfDue(): Promise<void> {
    await this.#refreshWhenDue();
  }

  /** Undefined when no fetch was needed. */
  async #refreshWhenDue(): Promise<RefreshOutcome | undefined> {
    if (!this.#isDue()) return undefined;
    await this.#reload();
    return this.#isDue() ? this.#refresh() : undefined;
  }

  #isDue(): boolean {
    const nowMs = this.#options.nowMs();
    if (!this.#isUsable()) return true;
    const { refreshIntervalMs } = this.#options;
    const ageMs = nowMs - (this.#held?.fetchedAtMs ?? 0);
    // After a failure, wait a full interval. A clock that was set back does not postpone the next attempt.
    return ageMs >= refreshIntervalMs && Math.abs(nowMs - this.#attemptedAtMs) >= refreshIntervalMs;
  }

  #isUsable(): boolean {
    return this.#held !== undefined && this.#isTimely(this.#held.fetchedAtMs);
  }

  #isTimely(fetchedAtMs: number): boolean {
    return isTimely(fetchedAtMs, this.#options.nowMs());
  }

  #holds(kid: string): boolean {
    return this.#isUsable() && this.#held?.keys.some((key) => key.kid === kid) === true;
  }

  #current(): KeyLookup {
    if (this.#held === undefined || !this.#isUsable()) return this.#unavailable();
    return { kind: 'keys', keys: this.#held.keys };
  }

  #unavailable(): KeyLookup {
    const waitMs = this.#budget.waitMs(this.#options.nowMs());
    return { kind: 'unavailable', retryAfterSeconds: Math.max(1, Math.ceil(waitMs / 1000)) };
  }

  /** Loads what another instance, or this one before a restart, has fetched. */
  #reload(): Promise<void> {
    const nowMs = this.#options.nowMs();
    if (this.#reloading === undefined && Math.abs(nowMs - this.#reloadedAtMs) >= RELOAD_SPACING_MS) {
      this.#reloadedAtMs = nowMs;
      this.#reloading = this.#loadRecord().finally(() => {
        this.#reloading = undefined;
      });
    }
    return this.#reloading ?? Promise.resolve();
  }

  async #loadRecord(): Promise<void> {
    try {
      const record = await this.#options.records.load(this.#source);
      if (record === undefined || !this.#isNews(record)) return;
      const keys = parseKeySetText(record.jwks);
      if (keys !== undefined) this.#held = { keys, fetchedAtMs: record.fetchedAtMs };
    } catch {
      this.#options.report({ kind: 'records_failed', source: this.#source, while: 'load' });
    }
  }

  #isNews({ fetchedAtMs }: KeySetRecord): boolean {
    if (!this.#isTimely(fetchedAtMs)) return false;
    return this.#held === undefined || !this.#isUsable() || fetchedAtMs > this.#held.fetchedAtMs;
  }

  /** Waits for the running fetch, and starts another one only if that did not bring the key. */
  async #refreshFor(kid: string): Promise<RefreshOutcome> {
    if (this.#refreshing !== undefined) {
      const outcome = await this.#refreshing;
      if (this.#holds(kid)) return outcome;
    }
    return this.#refresh();
  }

  #refresh(): Promise<RefreshOutcome> {
    this.#refreshing ??= this.#fetchAndKeep().finally(() => {
      this.#refreshing = undefined;
    });
    return this.#refreshing;
  }

  async #fetchAndKeep(): Promise<RefreshOutcome> {
    const { fetcher, nowMs, report } = this.#options;
    const source = this.#source;
    if (!this.#budget.take(nowMs())) return 'throttled';
    const attemptedAtMs = nowMs();
    this.#attemptedAtMs = attemptedAtMs;
    const fetched = await fetchKeySet(source.jwksUri, fetcher, nowMs);
    if (fetched.kind === 'failed') {
      const { code, detail } = fetched;
      report({ kind: 'refresh_failed', source, code, detail });
      await this.#save((records) => records.saveFailure(source, { code, attemptedAtMs }));
      return 'failed';
    }
    const { keys, jwks, fetchedAtMs } = fetched;
    this.#held = { keys, fetchedAtMs };
    report({ kind: 'refreshed', source, usableKeys: keys.length });
    await this.#save((records) => records.save(source, { jwks, fetchedAtMs }));
    return 'refreshed';
  }

  async #save(save: (records: KeySetRecords) => Promise<void>): Promise<void> {
    try {
      await save(this.#options.records);
    } catch {
      this.#options.report({ kind: 'records_failed', source: this.#source, while: 'save' });
    }
  }
}

/**
 * Rate limit on fetches of one key set: a burst of two, then one every 40 s, so at most three in any 60 s.
 * Source: docs/operate/control.md "Sources and tokens".
 */
export class FetchBudget extends TokenBucket {
  constructor() {
    super({ burst: 2, refillMs: 40_000 });
  }
}

/**
 * The port that persists key sets and shares them between instances. Source: docs/operate/control.md "Sources and tokens".
 */

/** The facts about a source revision that its keys depend on. */
export interface KeySource {
  readonly sourceId: string;
  readonly revision: number;
  readonly jwksUri: string;
}

export interface KeySetRecord {
  /** The key set's JSON text as fetched. */
  readonly jwks: string;
  /** When the fetch began. */
  readonly fetchedAtMs: number;
}

/** A fetch that failed, for operators. */
export interface KeySetFailure {
  readonly code: SourceFailureCode;
  readonly attemptedAtMs: number;
}

export interface KeySetRecords {
  /** Returns only a set fetched from the revision's current JWKS URI: editing a draft removes its record. */
  load(source: KeySource): Promise<KeySetRecord | undefined>;
  /** Keeps the later fetched of two records. */
  save(source: KeySource, record: KeySetRecord): Promise<void>;
  /** Changes no key. Does nothing when there is no record. */
  saveFailure(source: KeySource, failure: KeySetFailure): Promise<void>;
}

/** Event of a key set, for logs and metrics. Holds no key and no token. */
export type KeySetEvent =
  | { readonly kind: 'refreshed'; readonly source: KeySource; readonly usableKeys: number }
  | ({ readonly kind: 'refresh_failed'; readonly source: KeySource } & Failure<SourceFailureCode>)
  /** Reading or writing the records failed; the cached keys stay. */
  | { readonly kind: 'records_failed'; readonly source: KeySource; readonly while: 'load' | 'save' };
