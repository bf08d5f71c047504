/** Finds the primaries of whatever kind of endpoint it is. */
import { openClusterPrimaries } from './cluster-primaries.ts';
import type { Primaries, PrimariesOptions } from './primaries.ts';
import { openSentinelPrimary } from './sentinel-primary.ts';
import { openSinglePrimary } from './single-primary.ts';

/** Starts to connect at once, and goes on trying until `close`. */
export function openPrimaries(options: PrimariesOptions): Primaries {
  const { endpoint } = options;
  switch (endpoint.kind) {
    case 'single':
      return openSinglePrimary(options, endpoint);
    case 'sentinel':
      return openSentinelPrimary(options, endpoint);
    case 'cluster':
      return openClusterPrimaries(options, endpoint);
  }
}
