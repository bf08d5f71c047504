/**
 * The keys of one source revision: loaded from the records, refreshed when due and when a token names a key that is not there.
 *
 * A refresh that fails leaves the keys as they were, for at most 24 h after the last good one. A good one replaces them all: a
 * key that its issuer removed is gone at the next refresh, even when none is left.
 *
 * Source: docs/control.md "Sources and tokens".
 */

import type { JsonFetcher } from '../../outbound-fetch/outbound-fetch.ts';
import { MAX_KEY_SET_LEAD_MS } from '../domain/source.ts';
import { FetchBudget } from './fetch-budget.ts';
import { fetchKeySet } from './fetch-key-set.ts';
import { type IssuerKey, parseKeySetText } from './key-set.ts';
import type { KeySetEvent, KeySetRecord, KeySetRecords, KeySource } from './key-set-records.ts';

/** How long keys are used after the last good refresh. */
export const MAX_KEY_AGE_MS = 24 * 3_600_000;
/** Junk must not turn into reads of the database either. */
const RELOAD_SPACING_MS = 1_000;

/** Whether keys that were fetched then may be used now. */
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
  /** Current keys. That the named one is not among them is then certain. */
  | { readonly kind: 'keys'; readonly keys: readonly IssuerKey[] }
  /** `issuer_keys_unavailable`: there are none young enough, or whether there is such a key can't be found out now. */
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
    // A fetch that began before the token came may have missed its key; one that began later tells for certain.
    if (outcome === undefined || earlier !== undefined) {
      await this.#reload();
      if (this.#holds(kid)) return this.#current();
      outcome = await this.#refreshFor(kid);
    }
    return outcome === 'refreshed' || this.#holds(kid) ? this.#current() : this.#unavailable();
  }

  /** Never rejects. Another instance's refresh counts as well as one's own. */
  async refreshIfDue(): Promise<void> {
    await this.#refreshWhenDue();
  }

  /** Undefined when nothing was to be fetched. */
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
    // After a failure, the next try on schedule is an interval away; a clock that was set back does not postpone it.
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

  /** Takes over what another instance, or this one before a restart, has fetched. */
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

  /** Waits for the fetch under way, and starts another only when that one did not bring the key. */
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
    this.#attemptedAtMs = nowMs();
    const fetched = await fetchKeySet(source.jwksUri, fetcher, nowMs);
    if (fetched.kind === 'failed') {
      report({ kind: 'refresh_failed', source, code: fetched.code, detail: fetched.detail });
      return 'failed';
    }
    const { keys, jwks, fetchedAtMs } = fetched;
    this.#held = { keys, fetchedAtMs };
    report({ kind: 'refreshed', source, usableKeys: keys.length });
    await this.#save({ jwks, fetchedAtMs });
    return 'refreshed';
  }

  async #save(record: KeySetRecord): Promise<void> {
    try {
      await this.#options.records.save(this.#source, record);
    } catch {
      this.#options.report({ kind: 'records_failed', source: this.#source, while: 'save' });
    }
  }
}
