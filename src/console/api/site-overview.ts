/** What Control says of a site at a glance; all parts of a page share one request. */
import { queryOptions } from '@tanstack/react-query';
import { api, bodyOf } from './client';

export const overviewQuery = (siteId: string) =>
  queryOptions({
    queryKey: ['site', siteId, 'overview'],
    queryFn: () => bodyOf(api.GET('/v1/sites/{site_id}/overview', { params: { path: { site_id: siteId } } })),
    staleTime: 4_000,
    refetchInterval: 30_000,
  });
