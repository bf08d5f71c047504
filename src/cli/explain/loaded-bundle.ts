/** What there is to explain by. */
import type { Snapshot } from '../../bundle/snapshot.ts';

export interface LoadedBundle {
  readonly snapshot: Snapshot;
  readonly signatures: 'hold' | 'not_checked';
  /** One line each: what stands in the way of newer content, and what was not looked at. */
  readonly warnings: readonly string[];
}
