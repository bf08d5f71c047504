/** Where roles apply: environments, fleets and sites. */
import { useQuery } from '@tanstack/react-query';
import { api, bodyOf, type Schemas } from './client';

export interface Places {
  readonly environments: readonly Schemas['Environment'][];
  readonly fleets: readonly Schemas['Fleet'][];
  readonly sites: readonly Schemas['Site'][];
}

/** All places that the operator may read. */
export function usePlaces() {
  return useQuery({ queryKey: ['all', 'places'], queryFn: readPlaces });
}

async function readPlaces(): Promise<Places> {
  const query = { limit: 200 };
  const [environments, sites] = await Promise.all([
    bodyOf(api.GET('/v1/environments', { params: { query } })),
    bodyOf(api.GET('/v1/sites', { params: { query } })),
  ]);
  const fleets = await Promise.all(
    environments.items.map(({ environment_id }) =>
      bodyOf(
        api.GET('/v1/environments/{environment_id}/fleets', {
          params: { path: { environment_id }, query },
        }),
      ),
    ),
  );
  return {
    environments: environments.items,
    sites: sites.items,
    fleets: fleets.flatMap(({ items }) => items),
  };
}
