/**
 * What of a site's published documents is done with. Kept are the newest whole bundle, the one before, and any that a
 * target may still be fetching; the steps from the oldest of these on, so that targets which are a little behind can
 * follow. One that is further behind takes the whole bundle.
 */
import type { Transaction } from '../store/transaction.ts';

/** Longer than a target takes to fetch the files of a bundle that it was told of. */
const FETCHING_MS = 5 * 60_000;
const KEPT_BASES = 2;

export async function pruneDocuments(tx: Transaction, siteId: string, nowMs: number): Promise<void> {
  const bases = await tx.publication.bases(siteId);
  const kept = bases.filter(
    // The distance in either direction: one from the future is not kept until then.
    ({ publishedAtMs }, index) => index < KEPT_BASES || Math.abs(nowMs - (publishedAtMs ?? 0)) < FETCHING_MS,
  );
  const oldest = kept.at(-1);
  if (oldest === undefined || kept.length === bases.length) return;
  await tx.distribution.pruneSteps(siteId, oldest.revision);
  await tx.distribution.pruneFiles(siteId, oldest.revision);
}
