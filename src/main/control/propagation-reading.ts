/** Reads how far targets are behind, from the database at each metrics scrape. */
import type { SitePropagationView } from '../../api-contract/target-distribution-contract.ts';
import { Refusal } from '../../control/domain/refusal.ts';
import { sitePropagation } from '../../control/publishing/propagation.ts';
import type { ControlStore } from '../../control/store/port.ts';
import type { PropagationReading } from '../../telemetry/control-metrics.ts';

const SITES_AT_ONCE = 100;

/** Reads each site in its own transaction, so that a scrape does not block writers. */
export async function readPropagation(
  store: ControlStore,
  nowMs: () => number,
): Promise<readonly PropagationReading[]> {
  const readings: PropagationReading[] = [];
  for await (const siteId of siteIds(store)) {
    const targets = await targetsOf(store, siteId, nowMs());
    // A target that is ahead does not have the newest revision either.
    const behind = targets.filter(({ state, behind_revisions }) => state === 'ahead' || behind_revisions > 0);
    const sinceMs = behind
      .map(({ ahead_since, behind_since }) => Date.parse(ahead_since ?? behind_since ?? ''))
      .filter(Number.isFinite);
    const lagMs = sinceMs.length === 0 ? 0 : Math.max(0, nowMs() - Math.min(...sinceMs));
    readings.push({ siteId, lagSeconds: lagMs / 1000, targetsBehind: behind.length });
  }
  return readings;
}

async function targetsOf(
  store: ControlStore,
  siteId: string,
  nowMs: number,
): Promise<SitePropagationView['targets']> {
  try {
    return (await store.read((tx) => sitePropagation(tx, siteId, nowMs))).targets;
  } catch (error) {
    // The site was deleted after it was listed.
    if (error instanceof Refusal && error.code === 'not_found') return [];
    throw error;
  }
}

async function* siteIds(store: ControlStore): AsyncGenerator<string> {
  for (let after: string | undefined; ; ) {
    const page = { after, limit: SITES_AT_ONCE };
    const sites = await store.read((tx) => tx.hierarchy.reachedSites({ kind: 'everything' }, page));
    for (const { id } of sites) yield id;
    after = sites.at(-1)?.id;
    if (sites.length < SITES_AT_ONCE) return;
  }
}
