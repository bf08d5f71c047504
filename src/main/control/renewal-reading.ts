/** Whose keys run out without another one, for the metrics: asked of the database when somebody scrapes. */
import type { ControlStore } from '../../control/store/port.ts';
import type { LastKey } from '../../control/store/repositories/policies.ts';
import type { RenewalReading } from '../../telemetry/control-metrics.ts';

/** Agents enroll again before this share of a key's life is left, and `enroll` before its default skew. */
const ENDING_SHARE = 0.05;
const ENDING_SECONDS = 120;
/** Then whoever had it is taken to be gone. */
const ENDED_SECONDS = 3600;

/** Of every site that has such a policy, and of no other. */
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

/** Whether the last key has less left than anybody who renews it would let it come to, or ended within the hour. */
export function isNotRenewed(
  { createdAtMs, expiresAtSeconds }: Omit<LastKey, 'siteId'>,
  nowSeconds: number,
): boolean {
  const leftSeconds = expiresAtSeconds - nowSeconds;
  // Its own life, which its token or its approval may have made shorter than its policy allows.
  const lifeSeconds = expiresAtSeconds - createdAtMs / 1000;
  return leftSeconds <= Math.min(ENDING_SECONDS, ENDING_SHARE * lifeSeconds) && leftSeconds > -ENDED_SECONDS;
}
