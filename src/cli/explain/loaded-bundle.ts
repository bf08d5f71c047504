/** What there is to explain by. */
import type { Snapshot } from '../../bundle/snapshot.ts';
import { describeFault } from '../bundle/errors.ts';

export interface LoadedBundle {
  readonly snapshot: Snapshot;
  readonly signatures: 'hold' | 'not_checked';
  /** One line each: what stands in the way of newer content, what was not looked at, and what matches nothing. */
  readonly warnings: readonly string[];
}

export function warningsOf({ warnings }: Snapshot): readonly string[] {
  return warnings.map((fault) => `${fault.code}: ${describeFault(fault)}`);
}
