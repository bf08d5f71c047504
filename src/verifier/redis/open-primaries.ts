/** Opens the adapter for the kind of endpoint. */
import { openClusterPrimaries } from './cluster-primaries.ts';
import type { Primaries, PrimariesOptions } from './primaries.ts';
import { openSentinelPrimary } from './sentinel-primary.ts';
import { openSinglePrimary } from './single-primary.ts';

/** Starts to connect at once and retries until `close`. */
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
