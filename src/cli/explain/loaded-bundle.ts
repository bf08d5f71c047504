/** A loaded bundle for `explain`, with its warnings. */
import type { Snapshot } from '../../bundle/compile/snapshot.ts';
import { describeFault } from '../library-errors.ts';

export interface LoadedBundle {
  readonly snapshot: Snapshot;
  readonly signatures: 'hold' | 'not_checked';
  /** Warnings, one line each: what blocks newer content, what was not checked, and which rules match nothing. */
  readonly warnings: readonly string[];
}

export function warningsOf({ warnings }: Snapshot): readonly string[] {
  return warnings.map((fault) => `${fault.code}: ${describeFault(fault)}`);
}
