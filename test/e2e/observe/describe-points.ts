/** The suite of observed routes at several points; one that cannot be started here is skipped, and says why. */
import { describe, it } from '@jest/globals';
import type { EnforcementPointDriver } from '../../support/points/enforcement-point.ts';
import { observedSuite } from './observed-points.ts';

export function describePoints(points: readonly EnforcementPointDriver[], workers?: number): void {
  for (const driver of points) {
    const unavailable = driver.unavailable?.();
    if (unavailable === undefined)
      describe(`observe at ${driver.name}${workers === undefined ? '' : `, ${workers} workers`}`, () =>
        observedSuite(driver, workers));
    else it.skip(`observe at ${driver.name}: ${unavailable}`, () => undefined);
  }
}
