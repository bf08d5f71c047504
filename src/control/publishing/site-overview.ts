/** Collects the conditions of an Auth Site that need attention. */
import type { SiteOverviewView } from '../contract/overview-contract.ts';
import { MAX_SHOWN_TARGETS } from '../contract/vocabulary.ts';
import { isNotRenewed } from '../keys/key-renewal.ts';
import { momentOf, requireRow } from '../resource/change.ts';
import type { Transaction } from '../store/transaction.ts';
import { sitePropagation } from './propagation.ts';
import { targetsWithholding, type WithheldMember } from './withheld-members.ts';

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
    ...(await observationOf(tx, siteId, Math.floor(nowMs / 1000))),
    ...(await proofsOf(tx, siteId)),
    publishing_sources: await publishingSources(tx, siteId),
    pending_enrollments: await tx.enrollments.countPending(siteId),
    policies_not_renewed: lastKeys.filter((key) => isNotRenewed(key, Math.floor(nowMs / 1000))).length,
  };
}

async function observationOf(
  tx: Transaction,
  siteId: string,
  nowSeconds: number,
): Promise<Pick<SiteOverviewView, 'observation'>> {
  const { unmatchedUntilSeconds } = requireRow(await tx.sites.find(siteId));
  const routes = await tx.publication.observedRoutes(siteId, nowSeconds);
  const unmatchedUntil = unmatchedUntilSeconds ?? 0;
  const untilSeconds = Math.max(routes.untilSeconds ?? 0, unmatchedUntil);
  if (untilSeconds <= nowSeconds) return {};
  return {
    observation: {
      routes: routes.count,
      unmatched: unmatchedUntil > nowSeconds,
      until: momentOf(untilSeconds * 1000),
      ...(await withheldFor(tx, siteId, 'enforcement')),
    },
  };
}

async function proofsOf(tx: Transaction, siteId: string): Promise<Pick<SiteOverviewView, 'accepted_proofs'>> {
  const { acceptedProofs } = requireRow(await tx.sites.find(siteId));
  if (acceptedProofs === 'none') return {};
  return { accepted_proofs: await withheldFor(tx, siteId, 'accepted_proofs') };
}

async function withheldFor(tx: Transaction, siteId: string, member: WithheldMember) {
  const targets = (await targetsWithholding(tx, siteId, member)).slice(0, MAX_SHOWN_TARGETS);
  return targets.length === 0
    ? {}
    : { withheld_for: targets.map(({ id, name }) => ({ target_id: id, name })) };
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
