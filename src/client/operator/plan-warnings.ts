/** Warnings about the effect of a plan on requests. */
import type { CurrentSite, SiteFile } from './site-file.ts';

export interface PlanWarning {
  readonly code: 'skew_raised';
  readonly text: string;
  /** How long verifiers with a single Redis server deny every request. */
  readonly deniedSeconds: number;
}

export function planWarnings({ site }: SiteFile, current: CurrentSite): readonly PlanWarning[] {
  const [from, to] = [current.site?.skew_seconds, site.skew_seconds];
  if (typeof from !== 'number' || to === undefined || to <= from) return [];
  const isSingle = (site.single_verifier ?? current.site?.single_verifier) === true;
  const deniedSeconds = fenceSeconds(to);
  const text =
    `raising skew_seconds from ${from} to ${to} makes verifiers deny every request for ${deniedSeconds} s after they load it` +
    ` (replay_store_unavailable, fenced); with Sentinels or a Cluster at least ${LEAST_MARGIN_SECONDS} s longer` +
    (isSingle ? `; with --replay memory for ${to + 1} s` : '');
  return [{ code: 'skew_raised', text, deniedSeconds }];
}

/** F of the table in docs/replay.md "Fences", where replicas may be promoted. */
const LEAST_MARGIN_SECONDS = 12;

/** Source: docs/replay.md "Fences", with F = 0. */
function fenceSeconds(skewSeconds: number): number {
  return 2 * skewSeconds + 1;
}
