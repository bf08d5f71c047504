/**
 * Prunes published documents. It keeps the two newest whole bundles and any that a target may still be fetching. It also
 * keeps the steps after the oldest of these, for targets that are slightly behind. Others load the whole bundle.
 */
import type { Transaction } from '../store/transaction.ts';

/** Longer than a target needs to fetch a bundle's files. */
const FETCHING_MS = 5 * 60_000;
const KEPT_BASES = 2;

export async function pruneDocuments(tx: Transaction, siteId: string, nowMs: number): Promise<void> {
  const bases = await tx.publication.bases(siteId);
  const kept = bases.filter(
    // Absolute distance: a bundle with a future timestamp must not be kept until then.
    ({ publishedAtMs }, index) => index < KEPT_BASES || Math.abs(nowMs - (publishedAtMs ?? 0)) < FETCHING_MS,
  );
  const oldest = kept.at(-1);
  if (oldest === undefined || kept.length === bases.length) return;
  await tx.distribution.pruneSteps(siteId, oldest.revision);
  await tx.distribution.pruneFiles(siteId, oldest.revision);
}
