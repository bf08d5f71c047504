/** What keys of a client may call. */
import { List, Text } from '@mantine/core';
import { useQuery } from '@tanstack/react-query';
import { Fragment } from 'react';
import { api, bodyOf } from '../api/client';
import { useSite } from '../api/session';
import { Loading } from '../parts/loading';
import { PageLink } from '../parts/named-link';
import { Problem } from '../parts/problem';
import { UntrustedText } from '../parts/values';

const MAX_ROUTES = 100;

/** What the client is granted, and the routes that its keys may call by that. */
export function Allowed({ clientId }: { readonly clientId: string }) {
  const { site_id } = useSite();
  const { data, error } = useQuery({
    queryKey: ['site', site_id, 'profiles', { clientId }],
    queryFn: () =>
      bodyOf(
        api.GET('/v1/sites/{site_id}/signing-profiles', {
          params: { path: { site_id }, query: { client_id: clientId, limit: MAX_ROUTES } },
        }),
      ),
  });
  const { data: grants } = useQuery({
    queryKey: ['site', site_id, 'client-grants', clientId],
    queryFn: () =>
      bodyOf(
        api.GET('/v1/sites/{site_id}/clients/{client_id}/grants', {
          params: { path: { site_id, client_id: clientId }, query: { limit: MAX_ROUTES } },
        }),
      ),
  });
  if (data === undefined) return error ? <Problem error={error} /> : <Loading height={60} />;
  const routes = data.items.filter(({ state }) => state === 'active');
  if (routes.length === 0) return <Text size="sm">Nothing yet: its client has no grant for a route.</Text>;
  return (
    <>
      {grants !== undefined && grants.items.length > 0 && (
        <Text size="sm">
          Grants of client <UntrustedText value={clientId} />:{' '}
          {grants.items.map(({ access, resource }, place) => (
            <Fragment key={resource}>
              {place > 0 && ', '}
              {access} <UntrustedText value={resource} />
            </Fragment>
          ))}
          {grants.next_cursor !== undefined && ', and more'}
        </Text>
      )}
      <List size="sm">
        {routes.map(({ route_id, method, path_template, origins }) => (
          <List.Item key={route_id}>
            <UntrustedText value={`${method} ${origins[0]}${path_template}`} />, route{' '}
            <PageLink page={`routes/${encodeURIComponent(route_id)}`} name={route_id} />
          </List.Item>
        ))}
        {data.next_cursor !== undefined && <List.Item>and more: the first {MAX_ROUTES} are shown</List.Item>}
      </List>
    </>
  );
}
