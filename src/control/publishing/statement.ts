/**
 * Freshness statements: "this revision with this head was the latest at that moment". Never for a moment after a change
 * that is not published: a revocation that is stuck lets freshness run out, and verifiers close.
 * Source: docs/bundle.md "Freshness".
 */
import { signFreshness } from '../../bundle/authoring/publishing-documents.ts';
import { formatTime } from '../../bundle/format/times.ts';
import type { SigningKey } from '../../protocol/signing.ts';
import type { RowOf } from '../store/repositories/records.ts';
import type { Transaction } from '../store/transaction.ts';
import type { SiteSigningKeys } from './signing-keys.ts';

export interface Statement {
  readonly siteId: string;
  readonly revision: number;
  readonly head: string;
  readonly nowMs: number;
  /** Moment of the oldest change that is not published; undefined when there is none. */
  readonly oldestPendingMs: number | undefined;
}

/** Signs and keeps a statement, and tells those who wait for one. */
export async function writeStatement(
  tx: Transaction,
  { siteId, revision, head, nowMs, oldestPendingMs }: Statement,
  signers: readonly SigningKey[],
): Promise<void> {
  const asOfSeconds = Math.floor(Math.min(nowMs, oldestPendingMs ?? nowMs) / 1000);
  const content = { auth_site: siteId, revision, head, as_of: formatTime(asOfSeconds) };
  const document = signFreshness(content, signers).toString('utf8');
  await tx.distribution.putFreshness({ siteId, revision, head, asOfSeconds, document });
  tx.notify({ topic: 'site_published', reference: siteId });
}

/** As {@link writeStatement}, in the lock of a site whose publication it belongs to. */
export async function statePublished(
  tx: Transaction,
  { id: siteId, revision, head }: RowOf<'site'>,
  signingKeys: SiteSigningKeys,
  nowMs: number,
): Promise<void> {
  if (head === null) return;
  const signers = await signingKeys.signers(tx, siteId, 'freshness', nowMs);
  const oldestPendingMs = await tx.changes.oldestPendingMs(siteId);
  await writeStatement(tx, { siteId, revision, head, nowMs, oldestPendingMs }, signers);
}
