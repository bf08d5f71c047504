/** Adapter for a single server, which is always the primary. */
import type { SingleEndpoint } from './endpoint.ts';
import { ONLY_TAG, openPrimaryLink, type Primaries, type PrimariesOptions } from './primaries.ts';

export function openSinglePrimary(options: PrimariesOptions, endpoint: SingleEndpoint): Primaries {
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
