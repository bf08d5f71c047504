/** The keys with which Control signs a site's bundles and statements, and the floor of its revisions. */
import { Group, NumberInput, Select } from '@mantine/core';
import { useQuery } from '@tanstack/react-query';
import { useState } from 'react';
import { api, bodyOf, type Schemas } from '../api/client';
import { nameWord } from '../api/ctl-command';
import { useMay, useSite } from '../api/session';
import { Action } from '../parts/action';
import { AsCommand } from '../parts/command';
import { Section } from '../parts/page';
import { Problem } from '../parts/problem';
import { type Column, ItemTable } from '../parts/table-frame';
import { Id, Moment, State } from '../parts/values';
import { signingKeysQuery } from '../parts/verifier-start';

type SigningKey = Schemas['SigningKey'];

const SIGNS: { readonly [P in SigningKey['purpose']]: string } = {
  bundle: 'bundles',
  freshness: 'freshness statements',
  receipt: 'revocation receipts',
};

const COLUMNS: readonly Column<SigningKey>[] = [
  { title: 'Signs', cell: ({ purpose }) => SIGNS[purpose] },
  { title: 'State', cell: ({ state }) => <State value={state} /> },
  {
    title: 'Key and thumbprint',
    cell: ({ signing_key_id, thumbprint }) => (
      <>
        <Id value={signing_key_id} />
        <Id value={thumbprint} />
      </>
    ),
  },
  { title: 'Created', cell: ({ created_at }) => <Moment at={created_at} /> },
  { title: 'Stops signing', cell: ({ retire_at }) => retire_at !== undefined && <Moment at={retire_at} /> },
];

const ACTIONS: Column<SigningKey> = {
  title: 'Actions',
  cell: (key) => key.state === 'retiring' && <Retire {...key} />,
};

export function SigningKeys() {
  const { site_id } = useSite();
  const mayAdminister = useMay('administer');
  const { data, error } = useQuery(signingKeysQuery(site_id));
  return (
    <Section title="Signing keys">
      {error && <Problem error={error} />}
      <ItemTable
        label="Signing keys"
        isLoading={data === undefined}
        items={data?.items ?? []}
        idOf={({ signing_key_id }) => signing_key_id}
        columns={mayAdminister ? [...COLUMNS, ACTIONS] : COLUMNS}
      />
      <Group>
        <AsCommand words={['signing-keys', '--site', site_id, '--out-dir', 'pins']} />
        {mayAdminister && <Rotate />}
      </Group>
    </Section>
  );
}

const PURPOSES = ['bundle', 'freshness'] as const;

function Rotate() {
  const { site_id } = useSite();
  const [purpose, setPurpose] = useState<SigningKey['purpose']>('bundle');
  const [hours, setHours] = useState(24);
  return (
    <Action
      label="Rotate"
      command={['rotate-signing-key', nameWord(site_id), '--purpose', purpose, '--retiring', `${hours}h`]}
      confirm={{
        consequence:
          'Control creates another key and signs with both. Pin the new key in every verifier before the old one stops, or the verifiers reject every later bundle.',
        fields: (
          <>
            <Select
              label="Purpose"
              data={[...PURPOSES]}
              value={purpose}
              allowDeselect={false}
              onChange={(value: SigningKey['purpose'] | null) => setPurpose(value ?? purpose)}
            />
            <NumberInput
              label="Hours that the old key also signs"
              value={hours}
              min={1}
              onChange={(value) => setHours(Number(value))}
            />
          </>
        ),
      }}
      run={() =>
        bodyOf(
          api.POST('/v1/sites/{site_id}/signing-keys/rotate', {
            params: { path: { site_id } },
            body: { purpose, retiring_seconds: hours * 3_600 },
          }),
        )
      }
    />
  );
}

function Retire({ signing_key_id, purpose }: SigningKey) {
  const { site_id } = useSite();
  return (
    <Action
      label="Retire now"
      command={['retire-signing-key', nameWord(site_id), signing_key_id]}
      confirm={{
        finalFor: signing_key_id,
        consequence: `For good. Verifiers that pin only this ${purpose} key deny every request from now on: first pin the new key in all of them.`,
      }}
      run={() =>
        bodyOf(
          api.POST('/v1/sites/{site_id}/signing-keys/{signing_key_id}/retire', {
            params: { path: { site_id, signing_key_id } },
            body: {},
          }),
        )
      }
    />
  );
}

export function RaiseFloor({ publication }: { readonly publication: Schemas['SitePropagation'] }) {
  const { site_id, revision, targets } = publication;
  const highest = Math.max(revision, ...targets.map(({ ahead_revision }) => ahead_revision ?? 0));
  const [above, setAbove] = useState<number>();
  const value = above ?? highest;
  return (
    <Action
      label="Raise floor"
      command={['raise-floor', nameWord(site_id), '--above', String(value)]}
      confirm={{
        finalFor: site_id,
        consequence:
          'For good. From now on every revision of this site is above this one. Only needed when targets stay ahead after a database was restored.',
        fields: (
          <NumberInput
            label="Above revision"
            description="The highest revision that a verifier has."
            value={value}
            min={0}
            onChange={(entered) => setAbove(Number(entered))}
          />
        ),
      }}
      run={() =>
        bodyOf(
          api.POST('/v1/sites/{site_id}/raise-floor', {
            params: { path: { site_id } },
            body: { above_revision: value },
          }),
        )
      }
    />
  );
}
