/** The enrollment policies of a site. */
import { Anchor, Text } from '@mantine/core';
import { Link, useNavigate } from '@tanstack/react-router';
import { useState } from 'react';
import { api, bodyOf, type Schemas } from '../api/client';
import { useMay, useSite } from '../api/session';
import { useClientIds, useSources } from '../api/site-lists';
import { Action } from '../parts/action';
import { AsCommand } from '../parts/command';
import { bodyOfValues, Fields, type Values } from '../parts/fields';
import { List, PAGE_ITEMS } from '../parts/list';
import { Empty, Page } from '../parts/page';
import { State, UntrustedText } from '../parts/values';
import { activeRevisions, POLICY_TERMS, SERVICE_ACCOUNT, SPIFFE_ID, subjectFault } from './policy-terms';

type Policy = Schemas['EnrollmentPolicy'];

export default function Policies() {
  const { site_id } = useSite();
  const mayOperate = useMay('operate');
  const site = `/sites/${encodeURIComponent(site_id)}`;
  return (
    <Page
      title="Policies"
      question="Which workloads may enroll, for which client, and who approves?"
      actions={mayOperate && <CreatePolicy />}
    >
      <List<Policy>
        name="policies"
        queryKey={['site', site_id, 'policies']}
        fetch={(cursor) =>
          bodyOf(
            api.GET('/v1/sites/{site_id}/enrollment-policies', {
              params: {
                path: { site_id },
                query: { limit: PAGE_ITEMS, ...(cursor === undefined ? {} : { cursor }) },
              },
            }),
          )
        }
        idOf={({ policy_id }) => policy_id}
        columns={[
          {
            title: 'Policy',
            text: ({ display_name }) => display_name,
            cell: ({ policy_id, display_name }) => (
              <Anchor component={Link} to={`${site}/policies/${policy_id}`} size="sm">
                <UntrustedText value={display_name} />
              </Anchor>
            ),
          },
          {
            title: 'State',
            text: ({ state, refuses_with }) => `${state} ${refuses_with ?? ''}`,
            cell: ({ state, refuses_with }) => (
              <>
                <State value={state} />
                {refuses_with !== undefined && <Text size="xs">refuses with {refuses_with}</Text>}
              </>
            ),
          },
          {
            title: 'Workload',
            text: ({ verified_subject }) => verified_subject,
            cell: ({ verified_subject }) => <UntrustedText value={verified_subject} />,
          },
          {
            title: 'Client',
            text: ({ client_id }) => client_id,
            cell: ({ client_id }) => <UntrustedText value={client_id} />,
          },
          {
            title: 'Approval',
            text: ({ approval }) => approval,
            cell: ({ approval }) => approval,
          },
        ]}
        empty={
          <Empty>
            No workload can enroll yet.{' '}
            {mayOperate
              ? 'Create a policy: it binds one identity of a cluster to one client.'
              : 'An operator can create a policy.'}
          </Empty>
        }
      />
      <AsCommand words={['get', 'policies', '--site', site_id]} />
    </Page>
  );
}

const DEFAULTS: Values = { approval: 'automatic', max_key_lifetime_seconds: '3600' };

function CreatePolicy() {
  const { site_id } = useSite();
  const site = `/sites/${encodeURIComponent(site_id)}`;
  const navigate = useNavigate();
  const [values, setValues] = useState<Values>(DEFAULTS);
  const sources = useSources(site_id);
  const clients = useClientIds(site_id);
  const revisions = activeRevisions(sources ?? []);
  const chosen = revisions.find(({ value }) => value === values.revision) ?? revisions[0];
  const fields = [
    { name: 'display_name', label: 'Name', placeholder: 'billing in prod' },
    {
      name: 'revision',
      label: 'Source and revision',
      description: 'The cluster whose tokens it accepts. Only active revisions can be chosen.',
      options: revisions.map(({ value, label }) => ({ value, label })),
    },
    {
      name: 'verified_subject',
      label: 'Subject of the workload token, exactly',
      description: `Kubernetes: ${SERVICE_ACCOUNT}. SPIRE: ${SPIFFE_ID}. Other issuers: the sub of their tokens.`,
      placeholder: 'system:serviceaccount:prod:billing',
      faultOf: subjectFault,
    },
    {
      name: 'client_id',
      label: 'Client',
      description: 'Its keys get the grants of this client.',
      suggestions: clients,
    },
    ...POLICY_TERMS,
  ];
  const { revision: _, display_name, client_id, ...terms } = bodyOfValues(fields, values);
  const { verified_subject: subject } = values;
  if (sources !== undefined && chosen === undefined) {
    return (
      <Text size="sm" maw={320}>
        A policy needs an active source.{' '}
        <Anchor component={Link} to={`${site}/sources`} size="sm" underline="always">
          Activate one first
        </Anchor>
      </Text>
    );
  }
  return (
    <Action
      label="Create policy"
      isPrimary
      isDisabled={chosen === undefined}
      command={{
        siteFile: {
          enrollment_policies: [
            { name: display_name, source: chosen?.source.display_name, client: client_id, ...terms },
          ],
        },
      }}
      onOpen={() => setValues(DEFAULTS)}
      confirm={{
        submit: 'Create',
        asksReason: true,
        consequence: (
          <>
            Workloads with the subject <UntrustedText value={subject || '…'} /> in tokens of{' '}
            <UntrustedText value={chosen?.revision.issuer ?? '…'} /> can enroll keys of client{' '}
            <UntrustedText value={values.client_id || '…'} /> as soon as it exists
            {values.approval === 'manual' ? ', when an operator approves each' : ', without an operator'}.
          </>
        ),
        fields: <Fields fields={fields} values={values} onChange={setValues} />,
      }}
      run={async (query) => {
        if (chosen === undefined) return;
        const { policy_id } = await bodyOf(
          api.POST('/v1/sites/{site_id}/enrollment-policies', {
            params: { path: { site_id }, query },
            // Control validates the body.
            body: {
              ...terms,
              display_name,
              client_id,
              source_id: chosen.source.source_id,
              source_revision: chosen.revision.revision,
              verified_issuer: chosen.revision.issuer,
            } as Schemas['EnrollmentPolicyCreation'],
          }),
        );
        await navigate({ to: `${site}/policies/${policy_id}` });
      }}
    />
  );
}
