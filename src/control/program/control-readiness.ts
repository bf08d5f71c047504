/** Readiness of Control: a timer checks the database, so that a probe reads a cached result. */

import type { ReadinessCheck } from '../../process/admin/admin-server.ts';
import type { SitePropagationView } from '../contract/targets-contract.ts';
import { ApiProblem } from '../domain/api-problem.ts';
import { isNotRenewed } from '../keys/key-renewal.ts';
import { sitePropagation } from '../publishing/propagation.ts';
import type { ControlStore } from '../store/port.ts';
import type { OAuthKeysReading, PropagationReading, RenewalReading } from './control-metrics.ts';

const PING_EVERY_MS = 1000;
/** A write costs a disk sync, so most rounds only ping; after a failed write every round writes. */
const PINGS_PER_WRITE = 5;

export interface ControlReadiness {
  checks(): readonly ReadinessCheck[];
  isReady(): boolean;
  /** Reports "draining" from now on, so that load balancers stop sending requests. */
  leave(): void;
  stop(): void;
}

export async function watchReadiness(store: ControlStore): Promise<ControlReadiness> {
  let problem: string | undefined;
  let leaving = false;
  let isAsking = false;
  let pingsUntilWrite = 0;
  const problemNow = async () => {
    if (!(await succeeds(store.ping()))) return 'the database does not answer';
    pingsUntilWrite -= 1;
    if (pingsUntilWrite > 0) return undefined;
    if (!(await succeeds(store.tryWrite()))) return 'the database takes no writes: is its disk full?';
    pingsUntilWrite = PINGS_PER_WRITE;
    return undefined;
  };
  const ask = async () => {
    if (isAsking) return;
    isAsking = true;
    problem = await problemNow();
    isAsking = false;
  };
  await ask();
  const timer = setInterval(() => void ask(), PING_EVERY_MS).unref();
  const checks = () => [
    { name: 'database', problem },
    { name: 'listener', problem: leaving ? 'draining: no new requests are taken' : undefined },
  ];
  return {
    checks,
    isReady: () => checks().every((check) => check.problem === undefined),
    leave: () => {
      leaving = true;
    },
    stop: () => clearInterval(timer),
  };
}

function succeeds(asked: Promise<void>): Promise<boolean> {
  return asked.then(
    () => true,
    () => false,
  );
}

/** One reading for each site that has a policy with a last key. */
export async function readRenewals(
  store: ControlStore,
  nowMs: () => number,
): Promise<readonly RenewalReading[]> {
  const keys = await store.read((tx) => tx.policies.lastKeys());
  const counts = new Map<string, number>();
  for (const key of keys) {
    const late = isNotRenewed(key, Math.floor(nowMs() / 1000)) ? 1 : 0;
    counts.set(key.siteId, (counts.get(key.siteId) ?? 0) + late);
  }
  return [...counts].map(([siteId, policiesNotRenewed]) => ({ siteId, policiesNotRenewed }));
}

export async function readOAuthKeys(
  store: ControlStore,
  nowMs: () => number,
): Promise<readonly OAuthKeysReading[]> {
  const oldest = await store.read((tx) => tx.oauthIssuers.oldestFetches());
  return oldest.map(({ fetchedAtMs, siteId }) => ({ siteId, ageSeconds: (nowMs() - fetchedAtMs) / 1000 }));
}

/** Reads how far targets are behind, from the database at each metrics scrape. */

const SITES_AT_ONCE = 100;

/** Reads each site in its own transaction, so that a scrape does not block writers. */
export async function readPropagation(
  store: ControlStore,
  nowMs: () => number,
): Promise<readonly PropagationReading[]> {
  const readings: PropagationReading[] = [];
  for await (const siteId of siteIds(store)) {
    const site = await propagationOf(store, siteId, nowMs());
    if (site === undefined) continue;
    const { expected_replay_stores: expectedReplayStores, replay_stores: replayStores, targets } = site;
    // A target that is ahead does not have the newest revision either.
    const behind = targets.filter(({ state, behind_revisions }) => state === 'ahead' || behind_revisions > 0);
    const sinceMs = behind
      .map(({ ahead_since, behind_since }) => Date.parse(ahead_since ?? behind_since ?? ''))
      .filter(Number.isFinite);
    const lagMs = sinceMs.length === 0 ? 0 : Math.max(0, nowMs() - Math.min(...sinceMs));
    const lagSeconds = lagMs / 1000;
    const targetsBehind = behind.length;
    readings.push({ siteId, lagSeconds, targetsBehind, replayStores, expectedReplayStores });
  }
  return readings;
}

/** Undefined for a site that was deleted after it was listed. */
async function propagationOf(
  store: ControlStore,
  siteId: string,
  nowMs: number,
): Promise<SitePropagationView | undefined> {
  try {
    return await store.read((tx) => sitePropagation(tx, siteId, nowMs));
  } catch (error) {
    if (error instanceof ApiProblem && error.code === 'not_found') return undefined;
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
