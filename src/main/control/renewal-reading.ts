/** Counts policies whose last key expires without a renewal, from the database at each metrics scrape. */
import type { ControlStore } from '../../control/store/port.ts';
import type { LastKey } from '../../control/store/repositories/policies.ts';
import type { RenewalReading } from '../../telemetry/control-metrics.ts';

/** Agents renew before this share of a key's lifetime is left; `enroll` renews before its default skew. */
const ENDING_SHARE = 0.05;
const ENDING_SECONDS = 120;
/** An hour after expiry the workload counts as decommissioned. */
const ENDED_SECONDS = 3600;

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

/** Whether the last key is past the time at which every client renews, or expired less than an hour ago. */
export function isNotRenewed(
  { createdAtMs, expiresAtSeconds }: Omit<LastKey, 'siteId'>,
  nowSeconds: number,
): boolean {
  const leftSeconds = expiresAtSeconds - nowSeconds;
  // The key's own lifetime: its token or its approval may have made it shorter than the policy allows.
  const lifeSeconds = expiresAtSeconds - createdAtMs / 1000;
  return leftSeconds <= Math.min(ENDING_SECONDS, ENDING_SHARE * lifeSeconds) && leftSeconds > -ENDED_SECONDS;
}
