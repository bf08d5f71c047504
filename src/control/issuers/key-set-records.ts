/**
 * The port through which key sets outlive a process and reach other instances. Source: docs/control.md "Sources and tokens".
 */

import type { Failure } from '../../outbound-fetch/fetch-failures.ts';
import type { SourceFailureCode } from './failures.ts';

/** One revision of a source, as far as its keys are concerned. */
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
  /** Only what was fetched from the revision's present JWKS URI: who edits a draft removes its record. */
  load(source: KeySource): Promise<KeySetRecord | undefined>;
  /** Of two records, the one that was fetched later stays. */
  save(source: KeySource, record: KeySetRecord): Promise<void>;
}

/** What happened to a key set, for logs and metrics. Holds no key and no token. */
export type KeySetEvent =
  | { readonly kind: 'refreshed'; readonly source: KeySource; readonly usableKeys: number }
  | ({ readonly kind: 'refresh_failed'; readonly source: KeySource } & Failure<SourceFailureCode>)
  /** The records could not be read or written; the keys in memory stay. */
  | { readonly kind: 'records_failed'; readonly source: KeySource; readonly while: 'load' | 'save' };
