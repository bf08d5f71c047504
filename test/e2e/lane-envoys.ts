/** Envoy versions by lane: the newest in `make test`, the others in `make test-extended`. */

import { envoyVersions } from '../support/harness/envoy.ts';
import { byLane } from '../support/lane.ts';

const newest = envoyVersions.slice(-1);

/** For a suite that runs once for each version. */
export const LANE_ENVOYS: readonly string[] = byLane({ fast: newest, extended: envoyVersions.slice(0, -1) });

/** For a suite that sends through several versions at the same time. */
export const ENVOYS_AT_ONCE: readonly string[] = byLane<readonly string[]>({
  fast: newest,
  extended: envoyVersions,
});
