/** The derived keys of a site. */
import { Anchor, Select, Text } from '@mantine/core';
import { Link } from '@tanstack/react-router';
import { useState } from 'react';
import { api, bodyOf, type Schemas } from '../api/client';
import { useMay, useSite } from '../api/session';
import { useUrlState } from '../api/url-state';
import { AsCommand } from '../parts/command';
import { FilterText } from '../parts/filter';
import { List, PAGE_ITEMS } from '../parts/list';
import { Empty, Page } from '../parts/page';
import { Moment, State, UntrustedText } from '../parts/values';
import { Revoke, Revoked } from './revoke';

const STATUSES = ['active', 'revoked', 'expired'] as const;
type Status = (typeof STATUSES)[number];

export default function Keys() {
  const { site_id } = useSite();
  const { values, set } = useUrlState();
  const status = STATUSES.find((known) => known === values.status);
  const { client, subject, fingerprint } = values;
  const [selected, setSelected] = useState<readonly Schemas['DerivedKey'][]>([]);
  const [revoked, setRevoked] = useState<readonly Schemas['DerivedKey'][]>([]);
  const mayRevoke = useMay('operate');
  const active = selected.filter(({ status: state }) => state === 'active');
  return (
    <Page
      title="Keys"
      question="Which keys are valid, until when, and does every target (the verifiers with one token) know them?"
      actions={
        mayRevoke && (
          <Revoke
            keys={active}
            onDone={() => {
              setRevoked(active);
              setSelected([]);
            }}
          />
        )
      }
    >
      {revoked.length > 0 && <Revoked keys={revoked} onClose={() => setRevoked([])} />}
      <List<Schemas['DerivedKey']>
        name="keys"
        queryKey={['site', site_id, 'keys', { status, client, subject, fingerprint }]}
        fetch={(cursor) =>
          bodyOf(
            api.GET('/v1/sites/{site_id}/derived-keys', {
              params: {
                path: { site_id },
                query: {
                  limit: PAGE_ITEMS,
                  ...(cursor === undefined ? {} : { cursor }),
                  ...(status === undefined ? {} : { status }),
                  ...(client === undefined ? {} : { client_id: client }),
                  ...(subject === undefined ? {} : { subject }),
                  ...(fingerprint === undefined ? {} : { fingerprint }),
                },
              },
            }),
          )
        }
        idOf={({ key_id }) => key_id}
        {...(mayRevoke
          ? {
              selection: {
                items: selected,
                change: setSelected,
                nameOf: ({ key_id }: Schemas['DerivedKey']) => key_id,
              },
            }
          : {})}
        isFiltered={[status, client, subject, fingerprint].some((filter) => filter !== undefined)}
        filters={
          <>
            <Select
              label="State"
              placeholder="all"
              clearable
              data={[...STATUSES]}
              value={status ?? null}
              onChange={(value: Status | null) => set({ status: value ?? undefined })}
            />
            <FilterText name="client" label="Client" />
            <FilterText name="subject" label="Subject contains" />
            <FilterText name="fingerprint" label="Fingerprint" />
          </>
        }
        columns={[
          {
            title: 'Key',
            text: ({ key_id, verified_subject }) => `${verified_subject} ${key_id}`,
            cell: ({ key_id, verified_subject }) => (
              <Anchor component={Link} to={`/sites/${encodeURIComponent(site_id)}/keys/${key_id}`} size="sm">
                <UntrustedText value={verified_subject} />{' '}
                <Text span size="xs" c="dimmed" display="block">
                  {key_id}
                </Text>
              </Anchor>
            ),
          },
          {
            title: 'State',
            text: ({ status: state }) => state,
            cell: ({ status: state }) => <State value={state} />,
          },
          {
            title: 'Client',
            text: ({ client_id }) => client_id,
            cell: ({ client_id }) => <UntrustedText value={client_id} />,
          },
          {
            title: 'Expires',
            text: ({ expires_at, revoked_at }) => revoked_at ?? expires_at,
            cell: ({ expires_at, revoked_at }) =>
              revoked_at === undefined ? (
                <Moment at={expires_at} />
              ) : (
                <Text c="dimmed" span size="sm">
                  revoked <Moment at={revoked_at} />
                </Text>
              ),
          },
          {
            title: 'Last used',
            isMinor: true,
            text: ({ last_used_at: at }) => at ?? '',
            cell: ({ last_used_at: at }) =>
              at === undefined ? (
                <Text c="dimmed" span size="sm">
                  not reported
                </Text>
              ) : (
                <Moment at={at} />
              ),
          },
        ]}
        empty={
          <Empty>
            No workload has enrolled yet. Create an enrollment policy, and run its command in a pod.
          </Empty>
        }
      />
      <AsCommand words={['get', 'keys', '--site', site_id]} />
    </Page>
  );
}
