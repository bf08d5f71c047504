/** The routes of a site. */
import { Anchor, Group, Stack, Text } from '@mantine/core';
import { Link } from '@tanstack/react-router';
import { api, bodyOf, type Schemas } from '../api/client';
import { useMay, useSite } from '../api/session';
import { AsCommand } from '../parts/command';
import { List, PAGE_ITEMS } from '../parts/list';
import { Empty } from '../parts/page';
import { formatsText } from '../parts/proof-formats';
import type { Column } from '../parts/table-frame';
import { duration, Moment, State, UntrustedText } from '../parts/values';
import { CreateRoute, DeleteRoute, EditRoute } from './route-forms';
import { EditSourceRules } from './route-rules';

type Route = Schemas['Route'];

const isObserved = ({ definition: { enforcement, observe_until = '' } }: Route) =>
  enforcement === 'observe' && Date.parse(observe_until) > Date.now();

const statesOf = (route: Route) => [
  route.published ? 'published' : 'no caller rules',
  ...(isObserved(route) ? ['observed'] : []),
];

const COLUMNS: readonly Column<Route>[] = [
  {
    title: 'Route',
    text: ({ route_id }) => route_id,
    cell: ({ route_id }) => <RouteLink routeId={route_id} />,
  },
  {
    title: 'Requests',
    text: ({ definition }) => `${definition.path_template} ${definition.method}`,
    cell: ({ definition: { method, path_template } }) => (
      <UntrustedText value={`${method} ${path_template}`} />
    ),
  },
  {
    title: 'Resource',
    isMinor: true,
    text: ({ route_id, definition }) => definition.resource ?? route_id,
    cell: ({ route_id, definition }) => <UntrustedText value={definition.resource ?? route_id} />,
  },
  {
    title: 'Freshness',
    isMinor: true,
    text: ({ definition }) => definition.freshness_class,
    cell: ({ definition: { freshness_class, max_staleness_seconds } }) =>
      max_staleness_seconds === undefined
        ? freshness_class
        : `${freshness_class}, ${duration(max_staleness_seconds)}`,
  },
  {
    title: 'Proofs',
    text: ({ definition }) => formatsText(definition),
    cell: ({ definition }) => formatsText(definition),
  },
  {
    title: 'State',
    text: (route) => statesOf(route).join(', '),
    cell: (route) => (
      <Group gap={4}>
        {statesOf(route).map((state) => (
          <State key={state} value={state} />
        ))}
        {isObserved(route) && (
          <Text component="div" size="sm">
            ends <Moment at={route.definition.observe_until} />
          </Text>
        )}
      </Group>
    ),
  },
];

const ACTIONS: Column<Route> = {
  title: 'Actions',
  isMinor: true,
  cell: (route) => (
    <Group gap="xs" wrap="nowrap">
      <EditRoute {...route} />
      <EditSourceRules {...route} />
      <DeleteRoute {...route} />
    </Group>
  ),
};

function RouteLink({ routeId }: { readonly routeId: string }) {
  const { site_id } = useSite();
  const to = `/sites/${encodeURIComponent(site_id)}/routes/${encodeURIComponent(routeId)}`;
  return (
    <Anchor component={Link} to={to} size="sm">
      <UntrustedText value={routeId} />
    </Anchor>
  );
}

export function Routes() {
  const { site_id } = useSite();
  const mayOperate = useMay('operate');
  return (
    <Stack>
      {mayOperate && (
        <Group justify="flex-end">
          <CreateRoute />
        </Group>
      )}
      <List<Route>
        name="routes"
        queryKey={['site', site_id, 'routes']}
        fetch={(cursor) =>
          bodyOf(
            api.GET('/v1/sites/{site_id}/routes', {
              params: {
                path: { site_id },
                query: { limit: PAGE_ITEMS, ...(cursor === undefined ? {} : { cursor }) },
              },
            }),
          )
        }
        idOf={({ route_id }) => route_id}
        columns={mayOperate ? [...COLUMNS, ACTIONS] : COLUMNS}
        empty={
          <Empty>
            There is no route yet, so every request is denied. Create a route for each operation of your API.
          </Empty>
        }
      />
      <AsCommand words={['get', 'routes', '--site', site_id]} />
    </Stack>
  );
}
