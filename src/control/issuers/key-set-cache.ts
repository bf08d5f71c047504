/**
 * Caches the key sets of all source revisions and refreshes them on schedule.
 * Source: docs/operate/control.md "Sources and tokens".
 */
import { LRUCache } from 'lru-cache';
import type { KeySource } from './source-keys.ts';
import { type KeyLookup, SourceKeys, type SourceKeysOptions } from './source-keys.ts';

export const DEFAULT_REFRESH_INTERVAL_MS = 300_000;
/** Maximum number of cached revisions; the records hold all. */
const MAX_SOURCES = 10_000;
/** Maximum number of concurrent scheduled refreshes. */
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
   * The revision's keys; fetches them again when `kid` is unknown. Never rejects.
   * At most three fetches of one revision in any 60 s, one at a time.
   */
  keysFor(source: KeySource, kid: string): Promise<KeyLookup> {
    return this.#of(source).keysFor(kid);
  }

  /** Runs one round of the schedule: refreshes the sources that are due. Never rejects. */
  async refreshDue(sources: readonly KeySource[]): Promise<void> {
    const waiting = [...sources];
    const work = async () => {
      for (let source = waiting.shift(); source !== undefined; source = waiting.shift()) {
        await this.#of(source).refreshIfDue();
      }
    };
    await Promise.all(Array.from({ length: CONCURRENT_REFRESHES }, work));
  }

  /** Drops a retired or removed revision. */
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

/** Includes the URI, because an edited draft keeps its revision number but not its keys. */
function keyOf({ sourceId, revision, jwksUri }: KeySource): string {
  return JSON.stringify([sourceId, revision, jwksUri]);
}
