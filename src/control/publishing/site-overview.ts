/** Collects the conditions of an Auth Site that need attention. */
import type { SiteOverviewView } from '../contract/overview-contract.ts';
import { isNotRenewed } from '../keys/key-renewal.ts';
import { momentOf } from '../resource/change.ts';
import type { Transaction } from '../store/transaction.ts';
import { sitePropagation } from './propagation.ts';

/** @throws ApiProblem `not_found` */
export async function siteOverview(
  tx: Transaction,
  siteId: string,
  nowMs: number,
): Promise<SiteOverviewView> {
  const { targets, ...propagation } = await sitePropagation(tx, siteId, nowMs);
  const { revision, published_at: publishedAt, unpublished_since: unpublishedSince } = propagation;
  const freshness = await tx.distribution.freshness(siteId);
  const lastKeys = await tx.policies.lastKeys(siteId);
  const current = targets.filter(({ state }) => state === 'current').length;
  const [behindSince] = targets.flatMap(({ behind_since: since }) => since ?? []).sort();
  return {
    site_id: siteId,
    revision,
    ...(publishedAt === undefined ? {} : { published_at: publishedAt }),
    ...(unpublishedSince === undefined ? {} : { unpublished_since: unpublishedSince }),
    ...(freshness === undefined ? {} : { fresh_at: momentOf(freshness.asOfSeconds * 1000) }),
    targets: {
      attached: targets.length,
      current,
      behind: targets.length - current,
      silent: targets.filter(({ silent }) => silent).length,
      ...(behindSince === undefined ? {} : { behind_since: behindSince }),
    },
    publishing_sources: await publishingSources(tx, siteId),
    pending_enrollments: await tx.enrollments.countPending(siteId),
    policies_not_renewed: lastKeys.filter((key) => isNotRenewed(key, Math.floor(nowMs / 1000))).length,
  };
}

async function publishingSources(
  tx: Transaction,
  siteId: string,
): Promise<SiteOverviewView['publishing_sources']> {
  const found: SiteOverviewView['publishing_sources'] = [];
  for (const { sourceId, revision, stateSinceMs } of await tx.sources.inStates(siteId, ['publishing'])) {
    const source = await tx.sources.find(sourceId);
    const displayName = source?.displayName ?? '';
    found.push({ source_id: sourceId, display_name: displayName, revision, since: momentOf(stateSinceMs) });
  }
  return found;
}
