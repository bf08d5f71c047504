/** Enrollments that wait for an operator, and those that were decided. */
import { Anchor, Select, Stack, Text } from '@mantine/core';
import { Link } from '@tanstack/react-router';
import { useState } from 'react';
import { api, bodyOf, type Schemas } from '../api/client';
import { useMay, useSite } from '../api/session';
import { useUrlState } from '../api/url-state';
import { AsCommand } from '../parts/command';
import { List, PAGE_ITEMS } from '../parts/list';
import { Empty, Page } from '../parts/page';
import { Id, Moment, State, UntrustedText } from '../parts/values';
import { Decide, provenanceName } from './decide';

type Enrollment = Schemas['Enrollment'];

const STATES = ['pending_approval', 'issued', 'denied', 'expired'] as const;
type EnrollmentState = (typeof STATES)[number];
const WAITING: EnrollmentState = 'pending_approval';

export default function Approvals() {
  const { site_id } = useSite();
  const { values, set } = useUrlState();
  const [selected, setSelected] = useState<readonly Enrollment[]>([]);
  const mayDecide = useMay('decide_enrollments');
  const state =
    values.state === 'all' ? undefined : (STATES.find((each) => each === values.state) ?? WAITING);
  const isWaiting = state === WAITING;
  return (
    <Page
      title="Approvals"
      question="Which workloads ask for a key, and what proves who they are?"
      actions={mayDecide && isWaiting && <Decide enrollments={selected} onDone={() => setSelected([])} />}
    >
      <List<Enrollment>
        name="enrollments"
        queryKey={['site', site_id, 'enrollments', { state }]}
        fetch={(cursor) =>
          bodyOf(
            api.GET('/v1/sites/{site_id}/enrollments', {
              params: {
                path: { site_id },
                query: {
                  limit: PAGE_ITEMS,
                  ...(cursor === undefined ? {} : { cursor }),
                  ...(state === undefined ? {} : { state }),
                },
              },
            }),
          )
        }
        idOf={({ enrollment_id }) => enrollment_id}
        isFiltered={!isWaiting}
        {...(mayDecide && isWaiting
          ? {
              selection: {
                items: selected,
                change: setSelected,
                nameOf: ({ verified_subject }: Enrollment) => verified_subject,
              },
            }
          : {})}
        filters={
          <Select
            label="State"
            allowDeselect={false}
            data={[
              ...STATES.map((each) => ({ value: each, label: each.replaceAll('_', ' ') })),
              { value: 'all', label: 'all' },
            ]}
            value={state ?? 'all'}
            onChange={(value) => {
              setSelected([]);
              set({ state: value === WAITING ? undefined : (value ?? undefined) });
            }}
          />
        }
        columns={[
          {
            title: 'Workload',
            text: ({ verified_subject, verified_issuer }) => `${verified_subject} ${verified_issuer}`,
            cell: ({ enrollment_id, verified_subject, verified_issuer }) => (
              <Stack gap={2} miw={240}>
                <Anchor
                  component={Link}
                  to={`/sites/${encodeURIComponent(site_id)}/approvals/${enrollment_id}`}
                  size="sm"
                >
                  <UntrustedText value={verified_subject} />
                </Anchor>
                <Text size="xs" c="dimmed">
                  by <UntrustedText value={verified_issuer} />
                </Text>
              </Stack>
            ),
          },
          {
            title: 'Runs in',
            isMinor: !isWaiting,
            text: ({ provenance }) => Object.values(provenance).join(' '),
            cell: ({ provenance }) => <Provenance provenance={provenance} />,
          },
          {
            title: 'Client',
            text: ({ client_id }) => client_id,
            cell: ({ client_id }) => <UntrustedText value={client_id} />,
          },
          {
            title: 'Key fingerprint',
            isMinor: true,
            text: ({ fingerprint }) => fingerprint,
            cell: ({ fingerprint }) => <Id value={fingerprint} />,
          },
          ...(isWaiting
            ? [
                {
                  title: 'Decide before',
                  text: ({ key_expires_at }: Enrollment) => key_expires_at,
                  cell: ({ key_expires_at }: Enrollment) => <Moment at={key_expires_at} />,
                },
              ]
            : [
                {
                  title: 'Asked',
                  text: ({ created_at }: Enrollment) => created_at,
                  cell: ({ created_at }: Enrollment) => <Moment at={created_at} />,
                },
                {
                  title: 'State',
                  text: ({ state: its }: Enrollment) => its,
                  cell: ({ state: its }: Enrollment) => <State value={its} />,
                },
              ]),
        ]}
        empty={
          <Empty>
            No workload waits. A policy with manual approval makes workloads wait here; the others get their
            keys at once.
          </Empty>
        }
      />
      <AsCommand words={['get', 'enrollments', '--site', site_id]} />
    </Page>
  );
}

/** Attributes that operators recognize. The enrollment's page shows all of them. */
const SHOWN = ['kubernetes_namespace', 'kubernetes_pod', 'kubernetes_node'];

function Provenance({ provenance }: Pick<Enrollment, 'provenance'>) {
  const shown = Object.entries(provenance).filter(([name]) => SHOWN.includes(name));
  if (shown.length === 0)
    return (
      <Text c="dimmed" size="sm">
        The token does not say
      </Text>
    );
  return shown.map(([name, value]) => (
    <Text size="sm" key={name}>
      <Text span c="dimmed">
        {provenanceName(name)}
      </Text>{' '}
      <UntrustedText value={value} />
    </Text>
  ));
}
