/** "Who may call this?" and "What may this key call?" */
import { Select, Stack, Text, TextInput } from '@mantine/core';
import { useQuery } from '@tanstack/react-query';
import { useState } from 'react';
import { api, bodyOf, type Schemas } from '../api/client';
import { nameWord } from '../api/ctl-command';
import { useSite } from '../api/session';
import { useUrlState } from '../api/url-state';
import { AsCommand } from '../parts/command';
import { List, PAGE_ITEMS } from '../parts/list';
import { Empty, Section } from '../parts/page';
import { Problem } from '../parts/problem';
import { ItemTable } from '../parts/table-frame';
import { State, UntrustedText } from '../parts/values';
import { readRules } from './route-rules';

export function Callers() {
  return (
    <Stack>
      <WhoMayCall />
      <WhatMayKeyCall />
    </Stack>
  );
}

function WhoMayCall() {
  const { site_id } = useSite();
  const { values, set } = useUrlState();
  const { route } = values;
  const path = { site_id };
  const { data: routes } = useQuery({
    queryKey: ['site', site_id, 'routes', 'names'],
    queryFn: () => bodyOf(api.GET('/v1/sites/{site_id}/routes', { params: { path, query: { limit: 200 } } })),
  });
  return (
    <Section title="Who may call this route?">
      <Select
        label="Route"
        placeholder="Choose a route"
        searchable
        data={routes?.items.map(({ route_id }) => route_id) ?? []}
        value={route ?? null}
        onChange={(next) => set({ route: next ?? undefined })}
        maw={420}
      />
      {route !== undefined && <RouteCallers route={route} />}
      <AsCommand words={['get', 'profiles', '--site', site_id]} />
    </Section>
  );
}

/** Clients that are granted the route, and callers that need no grant. */
export function RouteCallers({ route }: { readonly route: string }) {
  const { site_id, issuer_url } = useSite();
  return (
    <>
      <List<Schemas['SigningProfile']>
        name="clients"
        queryKey={['site', site_id, 'profiles', { route }]}
        fetch={(cursor) =>
          bodyOf(
            api.GET('/v1/sites/{site_id}/signing-profiles', {
              params: {
                path: { site_id },
                query: {
                  limit: PAGE_ITEMS,
                  route_id: route,
                  ...(cursor === undefined ? {} : { cursor }),
                },
              },
            }),
          )
        }
        idOf={({ client_id }) => client_id}
        columns={[
          {
            title: 'Client',
            text: ({ client_id }) => client_id,
            cell: ({ client_id }) => <UntrustedText value={client_id} />,
          },
          {
            title: 'Its keys may call it',
            text: ({ state }) => state,
            cell: ({ state }) => <State value={state} />,
          },
          {
            title: 'Blocked by',
            text: ({ blocked_by }) => blocked_by ?? '',
            cell: ({ blocked_by }) => <UntrustedText value={blocked_by ?? ''} />,
          },
        ]}
        empty={<Empty>No client was granted the resource of this route.</Empty>}
      />
      <OtherCallers route={route} ownIssuer={issuer_url} />
    </>
  );
}

/** Callers with a broker's passport, which need no grant. */
function OtherCallers({ route, ownIssuer }: { readonly route: string; readonly ownIssuer: string }) {
  const { site_id } = useSite();
  const { data } = useQuery({
    queryKey: ['site', site_id, 'source-rules', route],
    queryFn: () => readRules({ site_id, route_id: route }),
  });
  const others = data?.rules.filter(({ issuer }) => issuer !== ownIssuer) ?? [];
  if (others.length === 0) return null;
  return (
    <Stack gap={4}>
      <Text size="sm">Also callers with passports of a broker, without a grant:</Text>
      {others.map(({ issuer, subject_exact, subject_prefix, required_key_binding }) => (
        <Text
          key={`${issuer} ${subject_exact ?? ''} ${subject_prefix ?? ''} ${required_key_binding}`}
          size="sm"
        >
          <UntrustedText value={subject_exact ?? `${subject_prefix ?? ''}…`} />, vouched for by{' '}
          <UntrustedText value={issuer} />
        </Text>
      ))}
    </Stack>
  );
}

function WhatMayKeyCall() {
  const { site_id } = useSite();
  const { values, set } = useUrlState();
  const [typed, setTyped] = useState(values.key ?? '');
  const { key } = values;
  const { data, error } = useQuery({
    queryKey: ['site', site_id, 'key-grants', key],
    queryFn: () =>
      bodyOf(api.GET('/v1/derived-keys/{key_id}/grants', { params: { path: { key_id: key ?? '' } } })),
    enabled: key !== undefined,
  });
  return (
    <Section title="What may this key call?">
      <form
        onSubmit={(event) => {
          event.preventDefault();
          set({ key: typed.trim() || undefined });
        }}
      >
        <TextInput
          label="Key ID"
          description="As in the list of keys. Press Enter."
          value={typed}
          onChange={({ currentTarget }) => setTyped(currentTarget.value)}
          maw={420}
        />
      </form>
      {error && <Problem error={error} />}
      {data !== undefined && data.items.length === 0 && (
        <Empty>Nothing: its client has no grant for a resource of a route.</Empty>
      )}
      {data !== undefined && data.items.length > 0 && (
        <ItemTable
          label="Routes of the key"
          items={data.items}
          idOf={({ route_id }) => route_id}
          columns={[
            { title: 'Route', cell: ({ route_id }) => <UntrustedText value={route_id} /> },
            { title: 'State', cell: ({ state }) => <State value={state} /> },
            { title: 'Blocked by', cell: ({ blocked_by }) => <UntrustedText value={blocked_by ?? ''} /> },
            { title: 'Granted', cell: ({ granted }) => granted },
            { title: 'Needs', cell: ({ needed }) => needed },
            { title: 'Resource', cell: ({ resource }) => <UntrustedText value={resource} /> },
          ]}
        />
      )}
      {key !== undefined && <AsCommand words={['get', 'readiness', nameWord(key)]} />}
    </Section>
  );
}
