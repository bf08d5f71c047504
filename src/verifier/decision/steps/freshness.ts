/** Step 3: the bundle is fresh enough for the route (docs/design/bundle.md "Freshness"). */
import type { FreshnessGroup, FreshnessRule, Snapshot } from '../../../bundle/compile/snapshot.ts';
import { type Denial, deny } from '../../../protocol/reasons.ts';
import { hasEnded, hasStarted } from '../../../protocol/validity.ts';

/** @param realtimeStalenessSeconds maximum age of the bundle for `realtime` routes (`--realtime-staleness`) */
export function checkFreshness(
  rule: FreshnessRule,
  snapshot: Snapshot,
  nowSeconds: number,
  realtimeStalenessSeconds: number,
): Denial | undefined {
  if (rule.kind === 'unknown') return deny('bundle_freshness_unknown');
  const { expiresAtSeconds, freshAsOfSeconds, skewSeconds } = snapshot;
  // A clock that was set back would otherwise keep a bundle fresh for as long.
  if (!hasStarted(freshAsOfSeconds, nowSeconds, skewSeconds))
    return deny('stale_bundle_fail_closed', 'clock');
  if (hasEnded(expiresAtSeconds, nowSeconds, skewSeconds)) return deny('stale_bundle_fail_closed', 'expired');
  const ageSeconds = nowSeconds - freshAsOfSeconds;
  return ageSeconds <= mostAgeSeconds(rule, realtimeStalenessSeconds)
    ? undefined
    : deny('stale_bundle_fail_closed', 'stale');
}

/** The groups of routes that {@link checkFreshness} denies now. */
export function staleGroups(
  snapshot: Snapshot,
  nowSeconds: number,
  realtimeStalenessSeconds: number,
): readonly FreshnessGroup[] {
  return snapshot.routesByFreshness.filter(
    ({ rule }) => checkFreshness(rule, snapshot, nowSeconds, realtimeStalenessSeconds) !== undefined,
  );
}

/** Maximum age of the bundle on the route, seconds. */
export function mostAgeSeconds(
  rule: Exclude<FreshnessRule, { kind: 'unknown' }>,
  realtimeStalenessSeconds: number,
): number {
  if (rule.kind === 'bounded') return rule.maxStalenessSeconds;
  return Math.min(rule.maxStalenessSeconds ?? realtimeStalenessSeconds, realtimeStalenessSeconds);
}

/** Seconds until the first route is denied as stale or the bundle expires; zero or less when it is, or without a bundle. */
export function secondsUntilStale(
  snapshot: Snapshot | undefined,
  nowSeconds: number,
  realtimeStalenessSeconds: number,
): number {
  if (snapshot === undefined) return 0;
  const { expiresAtSeconds, freshAsOfSeconds, routesByFreshness } = snapshot;
  const endSeconds = routesByFreshness.reduce(
    (end, { rule }) => Math.min(end, freshAsOfSeconds + mostAgeSeconds(rule, realtimeStalenessSeconds)),
    expiresAtSeconds,
  );
  return endSeconds - nowSeconds;
}
