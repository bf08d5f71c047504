/**
 * Until when a verifier may use what was signed for a site. A verifier uses a head until it expires, or until its newest
 * `issued_at` or `as_of` is older than its routes accept. The greatest of each value, over every head that was signed, bounds
 * all of them in one row: no later publication lowers it. A revision that revokes keys gets a copy of the row of before: it
 * bounds every head without the revocation.
 * Source: docs/operate/control.md "Revocation receipts"; docs/design/bundle.md "Freshness".
 */

import { MAX_SKEW_SECONDS } from '../../bundle/format/revocation-receipt.ts';
import type { BundleContent } from '../../bundle/format/schema.ts';
import { requireRow } from '../resource/change.ts';
import type { RowOf } from '../store/repositories/records.ts';
import type { Transaction } from '../store/transaction.ts';

type SignedBound = RowOf<'signedBound'>;
/** The part of {@link SignedBound} that bounds heads. */
export type SignedEnds = Omit<RowOf<'revocationBound'>, 'siteId' | 'revision'>;

/** More than any limit; sums with it are exact. */
const UNLIMITED_SECONDS = 10_000_000_000;
/** Of a bundle that another version of Control signed: the longest that Control allows. */
const MAX_LIFETIME_SECONDS = 366 * 86_400;

/** How long a bundle may be used after it was last known to be the latest, seconds; 0 without such routes. */
interface Staleness {
  readonly boundedSeconds: number;
  readonly realtimeSeconds: number;
}

export interface SignedHead {
  readonly revision: number;
  readonly issuedAtSeconds: number;
  /** Of a whole bundle, which alone has them. */
  readonly whole?: WholeLimits | undefined;
}

export interface WholeLimits extends Staleness {
  readonly expiresAtSeconds: number;
  readonly skewSeconds: number;
}

/** Limits of the longest-lived routes. A route of another class denies every request. */
export function stalenessOf({ routes }: Pick<BundleContent, 'routes'>): Staleness {
  const longest = { boundedSeconds: 0, realtimeSeconds: 0 };
  for (const { freshness_class: freshness, max_staleness_seconds: seconds = UNLIMITED_SECONDS } of routes) {
    if (freshness === 'bounded') longest.boundedSeconds = Math.max(longest.boundedSeconds, seconds);
    if (freshness === 'realtime') longest.realtimeSeconds = Math.max(longest.realtimeSeconds, seconds);
  }
  return longest;
}

/**
 * Records a head before anyone can read it. Call it under the site's lock, in the transaction that publishes the head.
 * @param site as it was before
 * @returns the bound of every earlier head
 */
export async function noteSigned(
  tx: Transaction,
  site: RowOf<'site'>,
  head: SignedHead,
): Promise<SignedEnds> {
  const before = await knownBefore(tx, site.id, site.revision, head.issuedAtSeconds);
  await tx.signedBounds.put(withHead(before, head));
  return endsOf(before);
}

/**
 * Keeps the bound of every head without what the revision revokes. It is removed with the site alone: revoked keys stay as long, and
 * a receipt of each may be asked for at any time.
 */
export async function noteRevoked(
  tx: Transaction,
  siteId: string,
  revision: number,
  before: SignedEnds,
): Promise<void> {
  await tx.signedBounds.putOfRevocation({ siteId, revision, ...before });
}

/**
 * Records a freshness statement before anyone can read it. Waits for a publication that is being committed.
 * @returns false when a later head was published: the statement must not be signed
 */
export async function noteStatement(
  tx: Transaction,
  siteId: string,
  { revision, asOfSeconds }: { readonly revision: number; readonly asOfSeconds: number },
): Promise<boolean> {
  const known = await heldBound(tx, siteId);
  if (known.revision > revision) return false;
  const row = known.revision === revision ? known : unknownHeads(revision, asOfSeconds, known);
  await tx.signedBounds.put(withFresh(row, asOfSeconds));
  return true;
}

async function knownBefore(
  tx: Transaction,
  siteId: string,
  revision: number,
  nowSeconds: number,
): Promise<SignedBound> {
  const known = await heldBound(tx, siteId);
  return known.revision === revision ? known : unknownHeads(revision, nowSeconds, known);
}

/** The site's row, which other transactions wait for. */
export async function heldBound(tx: Transaction, siteId: string): Promise<SignedBound> {
  const known = await tx.signedBounds.hold(siteId);
  if (known !== undefined) return known;
  await tx.signedBounds.addIfNone(nothingSigned(siteId));
  return requireRow(await tx.signedBounds.hold(siteId));
}

function nothingSigned(siteId: string): SignedBound {
  return {
    ...{ siteId, revision: 0, lifetimeSeconds: 0, boundedSeconds: 0, realtimeSeconds: 0 },
    ...{ expiresEndSeconds: 0, boundedEndSeconds: 0, realtimeEndSeconds: 0, freshSeconds: 0, skewSeconds: 0 },
    ...{ longestRealtimeSeconds: 0, unlimitedSeenSeconds: 0 },
  };
}

/** Another version of Control signed heads and recorded nothing: they may be of any length that Control allows. */
function unknownHeads(revision: number, nowSeconds: number, known: SignedBound): SignedBound {
  const limits = {
    expiresAtSeconds: nowSeconds + MAX_SKEW_SECONDS + MAX_LIFETIME_SECONDS,
    skewSeconds: MAX_SKEW_SECONDS,
    boundedSeconds: UNLIMITED_SECONDS,
    realtimeSeconds: UNLIMITED_SECONDS,
  };
  return withHead(known, { revision, issuedAtSeconds: nowSeconds + MAX_SKEW_SECONDS, whole: limits });
}

function withHead(row: SignedBound, { issuedAtSeconds, revision, whole }: SignedHead): SignedBound {
  if (whole === undefined) return withFresh({ ...row, revision }, issuedAtSeconds);
  const { boundedSeconds, expiresAtSeconds, realtimeSeconds, skewSeconds } = whole;
  const next = {
    ...row,
    ...{ revision, boundedSeconds, realtimeSeconds },
    expiresEndSeconds: Math.max(row.expiresEndSeconds, expiresAtSeconds + skewSeconds),
    skewSeconds: Math.max(row.skewSeconds, skewSeconds),
    lifetimeSeconds: Math.max(row.lifetimeSeconds, expiresAtSeconds - issuedAtSeconds),
  };
  return withFresh(next, issuedAtSeconds);
}

function withFresh(row: SignedBound, freshSeconds: number): SignedBound {
  const { boundedSeconds, realtimeSeconds } = row;
  const end = (before: number, staleness: number) =>
    staleness === 0 ? before : Math.max(before, freshSeconds + staleness);
  return {
    ...row,
    boundedEndSeconds: end(row.boundedEndSeconds, boundedSeconds),
    realtimeEndSeconds: end(row.realtimeEndSeconds, realtimeSeconds),
    freshSeconds: Math.max(row.freshSeconds, freshSeconds),
  };
}

export function endsOf(row: SignedEnds): SignedEnds {
  const { boundedEndSeconds, expiresEndSeconds, freshSeconds, realtimeEndSeconds, skewSeconds } = row;
  return { boundedEndSeconds, expiresEndSeconds, freshSeconds, realtimeEndSeconds, skewSeconds };
}

/** As in a receipt. */
export function boundMembers(ends: SignedEnds) {
  return {
    ...{ expires_until: ends.expiresEndSeconds, bounded_until: ends.boundedEndSeconds },
    ...{ realtime_until: ends.realtimeEndSeconds, fresh_as_of: ends.freshSeconds },
    skew_seconds: ends.skewSeconds,
  };
}
