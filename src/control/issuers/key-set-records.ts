/**
 * The port that persists key sets and shares them between instances. Source: docs/control.md "Sources and tokens".
 */

import type { Failure } from '../../outbound-fetch/fetch-failures.ts';
import type { SourceFailureCode } from './failures.ts';

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

export interface KeySetRecords {
  /** Returns only a set fetched from the revision's current JWKS URI: editing a draft removes its record. */
  load(source: KeySource): Promise<KeySetRecord | undefined>;
  /** Keeps the later fetched of two records. */
  save(source: KeySource, record: KeySetRecord): Promise<void>;
}

/** Event of a key set, for logs and metrics. Holds no key and no token. */
export type KeySetEvent =
  | { readonly kind: 'refreshed'; readonly source: KeySource; readonly usableKeys: number }
  | ({ readonly kind: 'refresh_failed'; readonly source: KeySource } & Failure<SourceFailureCode>)
  /** Reading or writing the records failed; the cached keys stay. */
  | { readonly kind: 'records_failed'; readonly source: KeySource; readonly while: 'load' | 'save' };
