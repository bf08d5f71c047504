/** Builds poll answers: nothing, steps from the target's position, or a whole bundle. Source: docs/design/bundle.md "Distribution". */

import { MAX_STEPS } from '../../bundle/format/bundle-limits.ts';
import type { ChainPosition } from '../../bundle/format/chain.ts';
import type { DistributedBundle, PollAnswer, PollQuery } from '../../bundle/format/distribution-contract.ts';
import type { SiteFeed, SiteState } from './site-feed.ts';

export function positionOf({ revision, head }: PollQuery): ChainPosition | undefined {
  return revision === undefined || head === undefined ? undefined : { revision, head };
}

/** Covers revision, head and freshness statement. */
export function etagOf({ revision, head, freshness }: SiteState): string {
  return `"${revision}.${head ?? ''}.${freshness?.asOfSeconds ?? ''}"`;
}

/** Limits the part of a whole bundle that an answer includes for a target that does not need one. */
type Offer = 'none' | 'files' | 'files_and_steps';

/**
 * A target with a base gets a new base only when its own is {@link MAX_STEPS} behind. Listing many shards in every answer
 * would outweigh the delta.
 */
export function offerOf({ base }: SiteState, { revision, base_revision: kept }: PollQuery): Offer {
  if (revision === undefined || kept === undefined) return 'files_and_steps';
  return base !== undefined && base.revision - kept >= MAX_STEPS ? 'files' : 'none';
}

interface Place {
  readonly position: ChainPosition;
  readonly offer: Offer;
  /** Shared answer for every position that nothing continues from. */
  readonly whole: () => Promise<PollAnswer | undefined>;
}

/** @returns undefined while there is nothing that the target can accept */
export async function answerTo(
  feed: SiteFeed,
  state: SiteState,
  { position, offer, whole }: Place,
): Promise<PollAnswer | undefined> {
  const { base } = state;
  const common = answerOf(state);
  if (common === undefined || base === undefined) return undefined;
  const steps = await feed.stepsFrom(state, position);
  if (steps === undefined) return base.revision <= position.revision ? undefined : whole();
  if (offer === 'none') return { ...common, steps: [...steps] };
  const offered = await wholeOf(feed, state, base, { offer, required: false });
  return { ...common, steps: [...steps], whole: offered };
}

/** The answer for a target without a usable position. */
export async function wholeAnswer(feed: SiteFeed, state: SiteState): Promise<PollAnswer | undefined> {
  const { base } = state;
  const common = answerOf(state);
  if (common === undefined || base === undefined) return undefined;
  const whole = await wholeOf(feed, state, base, { offer: 'files_and_steps', required: true });
  return { ...common, steps: [], whole };
}

/** Members of every answer. Undefined before the first publication. */
function answerOf({ siteId, revision, head, freshness }: SiteState) {
  if (head === null) return undefined;
  const statement = freshness === undefined ? {} : { freshness: freshness.document };
  return { auth_site: siteId, revision, head, ...statement };
}

async function wholeOf(
  feed: SiteFeed,
  state: SiteState,
  { revision, head, files }: NonNullable<SiteState['base']>,
  { offer, required }: { readonly offer: Offer; readonly required: boolean },
): Promise<DistributedBundle> {
  const steps = offer === 'files_and_steps' ? await feed.stepsFrom(state, { revision, head }) : [];
  return { revision, head, files: [...files], steps: [...(steps ?? [])], required };
}

/** Whether the position is certainly not on the site's chain. */
export async function isElsewhere(
  feed: SiteFeed,
  state: SiteState,
  position: ChainPosition,
): Promise<boolean> {
  if (position.revision === state.revision) return position.head !== state.head;
  const row = state.window.find(({ revision }) => revision === position.revision);
  if (row !== undefined) return row.head !== position.head;
  const { base } = state;
  return base !== undefined && position.revision >= base.revision
    ? (await feed.stepsFrom(state, position)) === undefined
    : false;
}
