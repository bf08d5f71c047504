/**
 * Freshness statements: "this revision with this head was the latest at that moment". A statement makes a snapshot
 * fresher and changes nothing else.
 * Source: docs/bundle.md "Freshness".
 */

import { parseTime } from '../../protocol/rfc3339.ts';
import { hasStarted } from '../../protocol/validity.ts';
import { bundleError, showValue } from '../format/bundle-error.ts';
import {
  DOCUMENT_TYPES,
  MAX_FRESHNESS_BYTES,
  parsePayload,
  type Signers,
  verifyDocument,
} from '../format/documents.ts';
import { checkAuthSite } from '../format/open-bundle.ts';
import { asFreshnessContent } from '../format/shape.ts';
import type { Snapshot } from './snapshot.ts';

export interface FreshnessStatement {
  readonly revision: number;
  /** base64url SHA-256. */
  readonly head: string;
  readonly asOfSeconds: number;
}

export interface FreshnessOptions {
  /** Name of the file, for errors. */
  readonly file: string;
  readonly signers: Signers;
  readonly authSite: string;
}

/** @throws BundleError for bytes that are not a statement for this site, signed by enough of the pinned keys. */
export function openFreshness(bytes: Buffer, options: FreshnessOptions): FreshnessStatement {
  const { file, signers, authSite } = options;
  const document = { file, type: DOCUMENT_TYPES.freshness, bytes, maxBytes: MAX_FRESHNESS_BYTES };
  const { payload } = verifyDocument(document, signers);
  const content = asFreshnessContent(parsePayload(payload, file), file);
  checkAuthSite(content.auth_site, authSite, file);
  const asOfSeconds = parseTime(content.as_of);
  if (asOfSeconds === undefined) {
    throw bundleError('time_invalid', file, '/as_of', `${showValue(content.as_of)} is no moment`);
  }
  return { revision: content.revision, head: content.head, asOfSeconds };
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
