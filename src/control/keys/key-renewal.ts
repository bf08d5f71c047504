/** Whether the keys of a policy run out because nothing renews them. */
import type { LastKey } from '../store/repositories/policies-repository.ts';

/** Agents renew before this share of a key's lifetime is left; `enroll` renews before its default skew. */
const ENDING_SHARE = 0.05;
const ENDING_SECONDS = 120;
/** An hour after expiry the workload counts as decommissioned. */
const ENDED_SECONDS = 3600;

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
