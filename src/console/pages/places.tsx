/** Environments and their fleets, to which sites belong. */
import { api, bodyOf, versionedBodyOf } from '../api/client';
import { may, type Place } from '../api/permissions';
import { usePlaces } from '../api/places';
import { useSession } from '../api/session';
import { AsCommand } from '../parts/command';
import { Loading } from '../parts/loading';
import { Section } from '../parts/page';
import { Problem } from '../parts/problem';
import { Rename } from '../parts/rename';
import { ItemTable } from '../parts/table-frame';
import { UntrustedText } from '../parts/values';

export default function Places() {
  const session = useSession();
  const administers = (place: Place) => may(session, 'administer', place);
  const { data, error } = usePlaces();
  if (data === undefined) return error ? <Problem error={error} /> : <Loading height={160} />;
  const rows = data.environments.flatMap(({ environment_id, name: environment }) => [
    {
      key: environment_id,
      environment,
      fleet: '',
      rename: administers({ environment_id }) && <RenameEnvironment id={environment_id} />,
    },
    ...data.fleets
      .filter((fleet) => fleet.environment_id === environment_id)
      .map(({ fleet_id, name }) => ({
        key: fleet_id,
        environment,
        fleet: name,
        rename: administers({ environment_id, fleet_id }) && <RenameFleet id={fleet_id} />,
      })),
  ]);
  if (rows.length === 0) return null;
  return (
    <Section title="Environments and fleets">
      <ItemTable
        label="Environments and fleets"
        items={rows}
        idOf={({ key }) => key}
        columns={[
          { title: 'Environment', cell: ({ environment }) => <UntrustedText value={environment} /> },
          { title: 'Fleet', cell: ({ fleet }) => <UntrustedText value={fleet} /> },
          { title: 'Actions', cell: ({ rename }) => rename },
        ]}
      />
      <AsCommand
        words={[
          ['get', 'environments'],
          ['get', 'fleets'],
        ]}
      />
    </Section>
  );
}

function RenameEnvironment({ id }: { readonly id: string }) {
  const path = { environment_id: id };
  const url = '/v1/environments/{environment_id}';
  return (
    <Rename
      label="Rename environment"
      kind="environment"
      id={id}
      read={() => versionedBodyOf(api.GET(url, { params: { path } }))}
      save={(body, etag) => bodyOf(api.PATCH(url, { params: { path, header: { 'if-match': etag } }, body }))}
    />
  );
}

function RenameFleet({ id }: { readonly id: string }) {
  const path = { fleet_id: id };
  const url = '/v1/fleets/{fleet_id}';
  return (
    <Rename
      label="Rename fleet"
      kind="fleet"
      id={id}
      read={() => versionedBodyOf(api.GET(url, { params: { path } }))}
      save={(body, etag) => bodyOf(api.PATCH(url, { params: { path, header: { 'if-match': etag } }, body }))}
    />
  );
}
