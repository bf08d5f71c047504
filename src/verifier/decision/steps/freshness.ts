/** Step 3: the bundle is fresh enough for the route (docs/design/bundle.md "Freshness"). */
import { isBreakGlassInForce } from '../../../bundle/compile/break-glass-statement.ts';
import type { FreshnessGroup, FreshnessRule, Snapshot } from '../../../bundle/compile/snapshot.ts';
import { type Denial, deny } from '../../../protocol/reasons.ts';
import { hasEnded, hasStarted } from '../../../protocol/validity.ts';

/**
 * Ignores break-glass statements, so that an observed route lets no unverified request pass because of one. Step 3 honours
 * them: {@link isAgeSuspended}.
 * @param realtimeStalenessSeconds maximum age of the bundle for `realtime` routes (`--realtime-staleness`)
 */
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

/** Whether a break-glass statement overrides this result of {@link checkFreshness}: only a denial for age. */
export function isAgeSuspended(denial: Denial | undefined, snapshot: Snapshot, nowSeconds: number): boolean {
  const isForAge = denial?.reason === 'stale_bundle_fail_closed' && denial.detail === 'stale';
  return isForAge && isBreakGlassInForce(snapshot, nowSeconds);
}

/** The groups of routes that step 3 denies now. */
export function staleGroups(
  snapshot: Snapshot,
  nowSeconds: number,
  realtimeStalenessSeconds: number,
): readonly FreshnessGroup[] {
  return snapshot.routesByFreshness.filter(({ rule }) => {
    const denial = checkFreshness(rule, snapshot, nowSeconds, realtimeStalenessSeconds);
    return denial !== undefined && !isAgeSuspended(denial, snapshot, nowSeconds);
  });
}

/** Maximum age of the bundle on the route, seconds. */
export function mostAgeSeconds(
  rule: Exclude<FreshnessRule, { kind: 'unknown' }>,
  realtimeStalenessSeconds: number,
): number {
  if (rule.kind === 'bounded') return rule.maxStalenessSeconds;
  return Math.min(rule.maxStalenessSeconds ?? realtimeStalenessSeconds, realtimeStalenessSeconds);
}

/**
 * Seconds until the bundle is too old for the first route, or expires; zero or less when it is, or without a bundle. Ignores
 * break-glass statements: a verifier that one opens is as urgent.
 */
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
