/**
 * Applies a delta or link to a snapshot. The new snapshot shares its tables with the previous one: see `key-table.ts`.
 * Source: docs/bundle.md "Deltas" and "Freshness".
 */

import type { OpenedStep } from '../format/open-step.ts';
import type { TimeSlice } from '../format/time-slice.ts';
import type { LiveSnapshot } from './compile.ts';
import { type CompileDeltaOptions, compileDeltaInSteps } from './compile-delta.ts';
import type { TableChange } from './key-table.ts';

/** A step that has been checked against its snapshot and not applied yet. */
export interface PreparedStep {
  /** Applies the step at once; cannot fail. @returns the new snapshot */
  commit(): LiveSnapshot;
}

/**
 * The caller has checked that the step continues the snapshot's position.
 * @throws BundleError with every fault found; then nothing has changed
 */
export async function prepareStep(
  snapshot: LiveSnapshot,
  step: OpenedStep,
  { slice, ...options }: CompileDeltaOptions & { readonly slice: TimeSlice },
): Promise<PreparedStep> {
  const after = { ...snapshot, ...step.position, ...timesAfter(step) };
  if (step.kind === 'link') return { commit: () => after };
  const change: TableChange = await slice.run(compileDeltaInSteps(step, snapshot.keys, options));
  return {
    commit: () => {
      snapshot.keys.apply(change);
      return after;
    },
  };
}

/** Freshness statements about the previous revision do not apply to this one. */
function timesAfter(step: OpenedStep) {
  const { issuedAtSeconds } = step;
  const times = { issuedAtSeconds, freshAsOfSeconds: issuedAtSeconds };
  return step.kind === 'link' ? { ...times, expiresAtSeconds: step.expiresAtSeconds } : times;
}
