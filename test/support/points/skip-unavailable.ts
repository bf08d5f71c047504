/** Skips the suite of a point that cannot be started on this machine. */
import { it } from '@jest/globals';
import type { EnforcementPointDriver } from './enforcement-point.ts';

/** @returns whether the suite is skipped; the skipped test says why */
export function skipUnavailable(driver: EnforcementPointDriver): boolean {
  const reason = driver.unavailable?.();
  if (reason === undefined) return false;
  it.skip(`${driver.name} cannot be started here: ${reason}`, () => undefined);
  return true;
}
