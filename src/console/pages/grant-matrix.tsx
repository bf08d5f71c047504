/** A table of clients and resources with the granted access. */
import { Group, NativeSelect, Stack, Text, TextInput } from '@mantine/core';
import { useQuery } from '@tanstack/react-query';
import { useState } from 'react';
import { api, bodyOf, type Schemas } from '../api/client';
import { useMay, useSite } from '../api/session';
import { useUrlState } from '../api/url-state';
import { type Because, Dialogue } from '../parts/action';
import { AsCommand } from '../parts/command';
import { Loading } from '../parts/loading';
import { Empty } from '../parts/page';
import { Problem } from '../parts/problem';
import { type Column, ItemTable } from '../parts/table-frame';
import { UntrustedText } from '../parts/values';
import { CreateClient, type DeclaredGrant, DeleteClient, EditClient, readGrants } from './client-forms';

/** Maximum number of pages of grants to read. */
const MAX_PAGES = 10;
type Access = 'none' | Schemas['Grant']['access'];
const LEVELS: readonly Access[] = ['none', 'read', 'write'];

interface Matrix {
  readonly clients: readonly Schemas['Client'][];
  readonly resources: readonly string[];
  /** Access by `<client> <resource>`. */
  readonly access: ReadonlyMap<string, Access>;
  readonly isWhole: boolean;
}

export function GrantMatrix() {
  const { site_id } = useSite();
  const mayOperate = useMay('operate');
  const { values, set } = useUrlState();
  const { client: wanted = '' } = values;
  const { data, error } = useQuery({
    queryKey: ['site', site_id, 'matrix'],
    queryFn: () => readMatrix(site_id),
  });
  if (data === undefined) return error ? <Problem error={error} /> : <Loading height={240} />;
  const clients = data.clients.filter(({ client_id }) => client_id.includes(wanted));
  return (
    <Stack gap="sm">
      {error && <Problem error={error} />}
      <Group align="flex-end" justify="space-between">
        <TextInput
          type="search"
          label="Client"
          value={wanted}
          onChange={({ currentTarget }) => set({ client: currentTarget.value || undefined })}
        />
        {mayOperate && <CreateClient />}
      </Group>
      {!data.isWhole && (
        <Text size="sm" role="status">
          The site has more clients or grants than this table shows. Use the command below for all.
        </Text>
      )}
      {data.clients.length === 0 ? (
        <Empty>There is no client yet. Create one, then grant it resources of routes.</Empty>
      ) : (
        <ItemTable
          label="Grants"
          items={clients}
          idOf={({ client_id }) => client_id}
          columns={mayOperate ? [...columnsOf(data), ACTIONS] : columnsOf(data)}
        />
      )}
      <AsCommand words={['get', 'grants', '--site', site_id]} />
      {mayOperate && data.isWhole && data.clients.length > 0 && (
        <AsCommand
          words={{
            siteFile: { clients: data.clients.map((client) => declared(client, grantsOf(data, client))) },
          }}
        />
      )}
    </Stack>
  );
}

/** A card shows the granted resources, and the others after More. */
function columnsOf(matrix: Matrix): readonly Column<Schemas['Client']>[] {
  const accessOf = ({ client_id }: Schemas['Client'], resource: string) =>
    matrix.access.get(`${client_id} ${resource}`) ?? 'none';
  return [
    {
      title: 'Client',
      cell: ({ client_id }) => (
        <Text size="sm" fw={600}>
          <UntrustedText value={client_id} />
        </Text>
      ),
    },
    { title: 'Subject', isMinor: true, cell: ({ subject }) => <UntrustedText value={subject} /> },
    ...matrix.resources.map((resource) => ({
      title: resource,
      isMinor: (client: Schemas['Client']) => accessOf(client, resource) === 'none',
      cell: (client: Schemas['Client']) => (
        <GrantCell
          client={client}
          grants={matrix.isWhole ? grantsOf(matrix, client) : undefined}
          resource={resource}
          access={accessOf(client, resource)}
        />
      ),
    })),
  ];
}

const ACTIONS: Column<Schemas['Client']> = {
  title: 'Actions',
  isMinor: true,
  cell: (client) => (
    <Group gap="xs" wrap="nowrap">
      <EditClient client={client} />
      <DeleteClient client={client} />
    </Group>
  ),
};

function grantsOf({ resources, access }: Matrix, { client_id }: Schemas['Client']): readonly DeclaredGrant[] {
  return resources.flatMap((resource) => {
    const level = access.get(`${client_id} ${resource}`);
    return level === undefined || level === 'none' ? [] : [{ resource, access: level }];
  });
}

function declared({ client_id, subject, context }: Schemas['Client'], grants: readonly DeclaredGrant[]) {
  return { client_id, subject, context, grants };
}

interface CellProps {
  readonly client: Schemas['Client'];
  /** All grants of the client, if they are known. */
  readonly grants: readonly DeclaredGrant[] | undefined;
  readonly resource: string;
  readonly access: Access;
}

/** Asks for confirmation, because more access allows requests and less access denies them. */
function GrantCell({ client, grants, resource, access }: CellProps) {
  const { client_id: clientId } = client;
  const { site_id } = useSite();
  const mayOperate = useMay('operate');
  const [asked, setAsked] = useState<Access>();
  if (!mayOperate) return access;
  const isMore = asked !== undefined && LEVELS.indexOf(asked) > LEVELS.indexOf(access);
  return (
    <>
      <NativeSelect
        size="xs"
        aria-label={`Access of ${clientId} to ${resource}`}
        data={[...LEVELS]}
        value={access}
        onChange={({ currentTarget }) =>
          setAsked(LEVELS.find((level) => level === currentTarget.value && level !== access))
        }
      />
      <Dialogue
        opened={asked !== undefined}
        onClose={() => setAsked(undefined)}
        title={isMore ? 'Grant access' : 'Reduce access'}
        command={
          grants === undefined
            ? { none: 'The site has more grants than the page has read. Change it in the site file.' }
            : { siteFile: { clients: [declared(client, granted(grants, resource, asked ?? access))] } }
        }
        confirm={{
          submit: isMore ? `Grant ${asked}` : asked === 'none' ? 'Remove access' : `Reduce to ${asked}`,
          asksReason: true,
          consequence: (
            <>
              <UntrustedText value={clientId} /> has {access} access to <UntrustedText value={resource} />.
              With {asked === 'none' ? 'no' : asked} access,{' '}
              {isMore
                ? 'every key of it may call the routes of that resource that need it'
                : 'requests of its keys that need more are denied'}{' '}
              as soon as each target has the next revision.
            </>
          ),
        }}
        run={async (because) => asked && putGrant({ site_id, client_id: clientId, resource }, asked, because)}
      />
    </>
  );
}

function granted(
  grants: readonly DeclaredGrant[],
  resource: string,
  access: Access,
): readonly DeclaredGrant[] {
  const others = grants.filter((grant) => grant.resource !== resource);
  return access === 'none' ? others : [...others, { resource, access }];
}

function putGrant(
  path: { readonly site_id: string; readonly client_id: string; readonly resource: string },
  access: Access,
  query: Because,
): Promise<unknown> {
  const url = '/v1/sites/{site_id}/clients/{client_id}/grants/{resource}';
  return access === 'none'
    ? bodyOf(api.DELETE(url, { params: { path, query } }))
    : bodyOf(api.PUT(url, { params: { path, query }, body: { access } }));
}

async function readMatrix(siteId: string): Promise<Matrix> {
  const path = { site_id: siteId };
  const query = { limit: 200 };
  const [clients, routes] = await Promise.all([
    bodyOf(api.GET('/v1/sites/{site_id}/clients', { params: { path, query } })),
    bodyOf(api.GET('/v1/sites/{site_id}/routes', { params: { path, query } })),
  ]);
  const access = new Map<string, Access>();
  const resources = new Set(routes.items.map(({ route_id, definition }) => definition.resource ?? route_id));
  const grants = await readGrants(
    (page) => bodyOf(api.GET('/v1/sites/{site_id}/grants', { params: { path, query: page } })),
    MAX_PAGES,
  );
  for (const { client_id, resource, access: level } of grants.items) {
    access.set(`${client_id} ${resource}`, level);
    resources.add(resource);
  }
  return {
    clients: clients.items,
    resources: [...resources].sort(),
    access,
    isWhole: grants.isWhole && clients.next_cursor === undefined && routes.next_cursor === undefined,
  };
}
