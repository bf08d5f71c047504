/** The verifier process of points that ask `proofgate verifier`, or `proofgate proxy`, which has one. */

import type { PointOptions } from '../support/points/enforcement-point.ts';
import { startVerifier, type VerifierOptions, type VerifierProcess } from '../support/site/verifier.ts';

/**
 * @param flags of the point, such as `--http-listen`
 * @param program default: the verifier on a Unix socket
 */
export function startPointVerifier(
  { site, bundleDirectory, replay, audit, holderQuota, becomesReady, flags: more = [] }: PointOptions,
  flags: readonly string[] = [],
  program: Pick<VerifierOptions, 'program' | 'listen'> = {},
): Promise<VerifierProcess> {
  const quota = holderQuota === undefined ? [] : ['--holder-quota', String(holderQuota)];
  // The shipped time-out is for machines that are not busy testing.
  const redis = replay === 'memory' ? [] : ['--redis-timeout', '400ms'];
  return startVerifier(site, {
    ...program,
    bundleDirectory,
    replay,
    audit,
    awaited: becomesReady ? 'readyz' : 'livez',
    flags: [...quota, ...redis, ...flags, ...more],
  });
}
