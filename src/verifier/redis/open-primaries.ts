/** Opens the adapter for the kind of endpoint. */
import { openClusterPrimaries } from './cluster-primaries.ts';
import type { SingleEndpoint } from './endpoint.ts';
import { ONLY_TAG, openPrimaryLink, type Primaries, type PrimariesOptions } from './primaries.ts';
import { openSentinelPrimary } from './sentinel-primary.ts';

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

/** Adapter for a single server, which is always the primary. */
function openSinglePrimary(options: PrimariesOptions, endpoint: SingleEndpoint): Primaries {
  const link = openPrimaryLink(options, endpoint.address, () => undefined);
  const shards = [0];
  return {
    tags: [ONLY_TAG],
    linkOf: () => link,
    shardsOf: () => shards,
    links: () => [link],
    problem: () => undefined,
    // The link checks its server by itself.
    suspect: () => undefined,
    close: () => link.close(),
  };
}
