/**
 * Writes freshness statements: "this revision with this head was the latest at that time". The time never lies after an
 * unpublished change, so a stuck revocation lets freshness run out and verifiers fail closed.
 * Source: docs/bundle.md "Freshness".
 */
import { signFreshness } from '../../bundle/authoring/publishing-documents.ts';
import { formatTime } from '../../protocol/rfc3339.ts';
import type { SigningKey } from '../../protocol/signing.ts';
import type { RowOf } from '../store/repositories/records.ts';
import type { Transaction } from '../store/transaction.ts';
import type { SiteSigningKeys } from './bundle-signing-keys.ts';

export interface Statement {
  readonly siteId: string;
  readonly revision: number;
  readonly head: string;
  readonly nowMs: number;
  /** Time of the oldest unpublished change; undefined when there is none. */
  readonly oldestPendingMs: number | undefined;
}

/** Signs and stores a statement, and notifies those who wait for one. */
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

/** Calls {@link writeStatement} under the lock of a site that is being published. */
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
