/** What Control says of a site at a glance; all parts of a page share one request. */
import { queryOptions } from '@tanstack/react-query';
import { api, bodyOf, type Schemas } from './client';

/** What Control says, and when: all parts of a page must agree on how long a trouble has lasted. */
export type SiteOverview = Schemas['SiteOverview'] & { readonly readAtMs: number };

export const overviewQuery = (siteId: string) =>
  queryOptions({
    queryKey: ['site', siteId, 'overview'],
    queryFn: async () => {
      const path = { site_id: siteId };
      const overview = await bodyOf(api.GET('/v1/sites/{site_id}/overview', { params: { path } }));
      return { ...overview, readAtMs: Date.now() };
    },
    staleTime: 4_000,
    refetchInterval: 30_000,
  });
