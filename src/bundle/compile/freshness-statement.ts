/**
 * Freshness statements: "this revision with this head was the latest at that moment". A statement makes a snapshot
 * fresher and changes nothing else.
 * Source: docs/design/bundle.md "Freshness".
 */

import { hasStarted } from '../../protocol/validity.ts';
import { type OpenForSiteOptions, openContent, secondsOf } from '../format/open-document.ts';
import type { Snapshot } from './snapshot.ts';

export interface FreshnessStatement {
  readonly revision: number;
  /** base64url SHA-256. */
  readonly head: string;
  readonly asOfSeconds: number;
}

/** @throws BundleError for bytes that are not a statement for this site, signed by enough of the pinned keys. */
export function openFreshness(bytes: Buffer, options: OpenForSiteOptions): FreshnessStatement {
  const { as_of: asOf, head, revision } = openContent('freshness', bytes, options).content;
  return { revision, head, asOfSeconds: secondsOf(asOf, '/as_of', options.file) };
}

/** Why a validly signed statement does not apply to a snapshot now. */
export type FreshnessIgnored = 'other_revision' | 'other_head' | 'ahead_of_clock';

export type FreshnessStep =
  | { readonly kind: 'accept'; readonly freshAsOfSeconds: number }
  | { readonly kind: 'nothing_to_do' }
  | { readonly kind: 'ignore'; readonly why: FreshnessIgnored };

/**
 * Determines the effect of a statement on a snapshot.
 * @param nowSeconds whole seconds since the epoch, rounded down
 */
export function applyFreshness(
  snapshot: Snapshot,
  statement: FreshnessStatement,
  nowSeconds: number,
): FreshnessStep {
  if (statement.revision !== snapshot.revision) return { kind: 'ignore', why: 'other_revision' };
  if (statement.head !== snapshot.head) return { kind: 'ignore', why: 'other_head' };
  if (!hasStarted(statement.asOfSeconds, nowSeconds, snapshot.skewSeconds)) {
    return { kind: 'ignore', why: 'ahead_of_clock' };
  }
  if (statement.asOfSeconds <= snapshot.freshAsOfSeconds) return { kind: 'nothing_to_do' };
  return { kind: 'accept', freshAsOfSeconds: statement.asOfSeconds };
}
