/**
 * The keys of all source revisions that tokens are checked against, and their refreshing on schedule.
 * Source: docs/control.md "Sources and tokens".
 */
import { setTimeout as pause } from 'node:timers/promises';
import { LRUCache } from 'lru-cache';
import type { KeySource } from './key-set-records.ts';
import { type KeyLookup, SourceKeys, type SourceKeysOptions } from './source-keys.ts';

export const DEFAULT_REFRESH_INTERVAL_MS = 300_000;
/** Revisions whose keys are held in memory; the records have all. */
const MAX_SOURCES = 10_000;
/** Scheduled refreshes at the same time. */
const CONCURRENT_REFRESHES = 4;

export interface KeySetCacheOptions extends Omit<SourceKeysOptions, 'refreshIntervalMs' | 'report'> {
  readonly refreshIntervalMs?: number;
  readonly report?: SourceKeysOptions['report'];
}

export class KeySetCache {
  readonly #options: SourceKeysOptions;
  readonly #sources = new LRUCache<string, SourceKeys>({ max: MAX_SOURCES });

  constructor(options: KeySetCacheOptions) {
    this.#options = {
      ...options,
      refreshIntervalMs: options.refreshIntervalMs ?? DEFAULT_REFRESH_INTERVAL_MS,
      report: options.report ?? (() => {}),
    };
  }

  /**
   * The revision's keys, looked for anew when `kid` is not among those known. Never rejects.
   * At most three fetches of one revision in any 60 s, one at a time.
   */
  keysFor(source: KeySource, kid: string): Promise<KeyLookup> {
    return this.#of(source).keysFor(kid);
  }

  /** One round of the schedule: fetches the keys of those sources that are due. Never rejects. */
  async refreshDue(sources: readonly KeySource[]): Promise<void> {
    const waiting = [...sources];
    const work = async () => {
      for (let source = waiting.shift(); source !== undefined; source = waiting.shift()) {
        await this.#of(source).refreshIfDue();
      }
    };
    await Promise.all(Array.from({ length: CONCURRENT_REFRESHES }, work));
  }

  /** Frees a revision that is retired or removed. */
  forget(source: KeySource): void {
    this.#sources.delete(keyOf(source));
  }

  #of(source: KeySource): SourceKeys {
    const key = keyOf(source);
    const known = this.#sources.get(key);
    if (known !== undefined) return known;
    const made = new SourceKeys(source, this.#options);
    this.#sources.set(key, made);
    return made;
  }
}

/** With the URI: a draft that is edited keeps its revision, but not its keys. */
function keyOf({ sourceId, revision, jwksUri }: KeySource): string {
  return JSON.stringify([sourceId, revision, jwksUri]);
}

export interface RefreshSchedule {
  readonly cache: KeySetCache;
  /** Revisions whose keys tokens may be checked against now. */
  readonly liveSources: () => Promise<readonly KeySource[]>;
  /** Between two rounds. */
  readonly roundMs: number;
  /** Ends the schedule; a round that is under way is finished first. */
  readonly signal: AbortSignal;
  /** The sources could not be listed; the next round tries again. */
  readonly listingFailed: (error: unknown) => void;
}

/** Runs until the signal ends it; never rejects. One instance does this for all: the others read the records. */
export async function refreshOnSchedule(schedule: RefreshSchedule): Promise<void> {
  const { cache, liveSources, roundMs, signal, listingFailed } = schedule;
  while (!signal.aborted) {
    try {
      await cache.refreshDue(await liveSources());
    } catch (error) {
      listingFailed(error);
    }
    await pause(roundMs, undefined, { signal, ref: false }).catch(() => {});
  }
}
