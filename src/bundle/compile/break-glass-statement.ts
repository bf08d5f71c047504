/**
 * Break-glass statements: a key made offline lets one revision serve although no freshness statement arrives. A statement
 * suspends the maximum age of the bundle and changes nothing else.
 * Source: docs/design/bundle.md "Freshness".
 */
import { bundleError } from '../format/bundle-error.ts';
import { type OpenForSiteOptions, openContent, secondsOf } from '../format/open-document.ts';
import type { BreakGlassStatement, Snapshot } from './snapshot.ts';

export const MAX_BREAK_GLASS_SECONDS = 24 * 3600;

export interface OpenedBreakGlass extends BreakGlassStatement {
  /** Thumbprints of the keys that signed. */
  readonly signers: readonly string[];
}

/**
 * @throws BundleError for bytes that are not a statement for this site, signed by enough of the pinned keys; `time_order`
 *   when `until` is not after `from`, or more than 24 hours after it
 */
export function openBreakGlass(bytes: Buffer, options: OpenForSiteOptions): OpenedBreakGlass {
  const { file } = options;
  const { content, signers } = openContent('breakGlass', bytes, options);
  const { head, revision } = content;
  const fromSeconds = secondsOf(content.from, '/from', file);
  const untilSeconds = secondsOf(content.until, '/until', file);
  const durationSeconds = untilSeconds - fromSeconds;
  if (!(durationSeconds > 0 && durationSeconds <= MAX_BREAK_GLASS_SECONDS)) {
    throw bundleError('time_order', file, '/until', 'not after from, or more than 24 hours after it');
  }
  return { revision, head, fromSeconds, untilSeconds, signers };
}

/** Why a validly signed statement does not apply to a snapshot now. */
export type BreakGlassIgnored = 'other_revision' | 'other_head' | 'not_started' | 'ended' | 'superseded';

/**
 * Compares a statement with the snapshot, without skew: the verifier's own clock decides. `superseded`: a freshness
 * statement newer than `from` has arrived, so its source was back.
 * @param nowSeconds whole seconds since the epoch, rounded down
 * @returns undefined when the statement applies
 */
export function whyIgnored(
  { fromSeconds, head, revision, untilSeconds }: BreakGlassStatement,
  snapshot: Snapshot,
  nowSeconds: number,
): BreakGlassIgnored | undefined {
  if (revision !== snapshot.revision) return 'other_revision';
  if (head !== snapshot.head) return 'other_head';
  if (!(fromSeconds <= nowSeconds)) return 'not_started';
  if (!(nowSeconds < untilSeconds)) return 'ended';
  return snapshot.freshAsOfSeconds <= fromSeconds ? undefined : 'superseded';
}

/** Whether the maximum age of the bundle is suspended now. */
export function isBreakGlassInForce(snapshot: Snapshot, nowSeconds: number): boolean {
  const { breakGlass } = snapshot;
  return breakGlass !== undefined && whyIgnored(breakGlass, snapshot, nowSeconds) === undefined;
}
