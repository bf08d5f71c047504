/** Selects and shows the scope of a role. */
import { Group, Select } from '@mantine/core';
import type { Schemas } from '../api/client';
import { type Places, usePlaces } from '../api/places';
import { UntrustedText } from './values';

type Scope = Schemas['Scope'];

export function ScopeFields({
  scope,
  change,
}: {
  readonly scope: Scope;
  readonly change: (scope: Scope) => void;
}) {
  const { data } = usePlaces();
  const kinds: readonly Scope['kind'][] = ['installation', 'environment', 'fleet', 'site'];
  return (
    <Group grow align="flex-start">
      <Select
        label="Scope"
        data={[...kinds]}
        value={scope.kind}
        allowDeselect={false}
        onChange={(kind: Scope['kind'] | null) => change({ kind: kind ?? 'installation' })}
      />
      {scope.kind !== 'installation' && (
        <Select
          label={`Which ${scope.kind}`}
          data={[...namesOf(data, scope.kind)].map(([value, label]) => ({ value, label }))}
          value={scope.id ?? null}
          onChange={(id) => change({ kind: scope.kind, ...(id === null ? {} : { id }) })}
          searchable
          required
        />
      )}
    </Group>
  );
}

export function ScopeName({ scope }: { readonly scope: Scope }) {
  const { data } = usePlaces();
  if (scope.id === undefined) return scope.kind;
  return (
    <>
      {scope.kind} <UntrustedText value={namesOf(data, scope.kind).get(scope.id) ?? scope.id} />
    </>
  );
}

function namesOf(places: Places | undefined, kind: Scope['kind']): ReadonlyMap<string, string> {
  if (kind === 'environment')
    return new Map(places?.environments.map(({ environment_id, name }) => [environment_id, name]));
  if (kind === 'fleet') return new Map(places?.fleets.map(({ fleet_id, name }) => [fleet_id, name]));
  return new Map(places?.sites.map(({ site_id }) => [site_id, site_id]));
}

/** The scope in the form of `ctl --scope`. */
export function scopeWord({ kind, id }: Scope): string {
  return id === undefined ? kind : `${kind}:${id}`;
}
