/** Choices for forms: the first 200 items of a site. */
import { useQuery } from '@tanstack/react-query';
import { api, bodyOf, type Schemas } from './client';

const QUERY = { limit: 200 };

export function useSources(siteId: string): readonly Schemas['Source'][] | undefined {
  return useQuery({
    queryKey: ['site', siteId, 'sources', 'choice'],
    queryFn: () =>
      bodyOf(api.GET('/v1/sites/{site_id}/sources', { params: { path: { site_id: siteId }, query: QUERY } })),
  }).data?.items;
}

export function useClientIds(siteId: string): readonly string[] {
  const { data } = useQuery({
    queryKey: ['site', siteId, 'clients', 'choice'],
    queryFn: () =>
      bodyOf(api.GET('/v1/sites/{site_id}/clients', { params: { path: { site_id: siteId }, query: QUERY } })),
  });
  return data?.items.map(({ client_id }) => client_id) ?? [];
}

export function usePolicies(siteId: string): readonly Schemas['EnrollmentPolicy'][] {
  const { data } = useQuery({
    queryKey: ['site', siteId, 'policies', 'choice'],
    queryFn: () =>
      bodyOf(
        api.GET('/v1/sites/{site_id}/enrollment-policies', {
          params: { path: { site_id: siteId }, query: QUERY },
        }),
      ),
  });
  return data?.items ?? [];
}
