/** Whose keys run out without another one, for the metrics: asked of the database when somebody scrapes. */
import type { ControlStore } from '../../control/store/port.ts';
import type { LastEnd } from '../../control/store/repositories/policies.ts';
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
  const ends = await store.read((tx) => tx.policies.lastEnds());
  const counts = new Map<string, number>();
  for (const end of ends) {
    const late = isNotRenewed(end, Math.floor(nowMs() / 1000)) ? 1 : 0;
    counts.set(end.siteId, (counts.get(end.siteId) ?? 0) + late);
  }
  return [...counts].map(([siteId, policiesNotRenewed]) => ({ siteId, policiesNotRenewed }));
}

/** Whether the last key has less left than anybody who renews it would let it come to, or ended within the hour. */
export function isNotRenewed(
  { lastEndSeconds, maxKeyLifetimeSeconds }: Omit<LastEnd, 'siteId'>,
  nowSeconds: number,
): boolean {
  const leftSeconds = lastEndSeconds - nowSeconds;
  const endingSeconds = Math.min(ENDING_SECONDS, ENDING_SHARE * maxKeyLifetimeSeconds);
  return leftSeconds <= endingSeconds && leftSeconds > -ENDED_SECONDS;
}
