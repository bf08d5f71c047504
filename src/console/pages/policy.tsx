/** One enrollment policy, and the commands with which workloads enroll under it. */
import { Group, Tabs, Text } from '@mantine/core';
import { useQuery } from '@tanstack/react-query';
import { useNavigate, useParams } from '@tanstack/react-router';
import { ApiError, api, bodyOf, type Schemas, versionedBodyOf } from '../api/client';
import { useMay, useSite } from '../api/session';
import { useSources } from '../api/site-lists';
import { Action } from '../parts/action';
import { AsCommand, CopyText, renaming } from '../parts/command';
import { Edit } from '../parts/edit';
import { bodyOfValues, type Values } from '../parts/fields';
import { Loading } from '../parts/loading';
import { SourceLink } from '../parts/named-link';
import { Empty, Facts, Page, Section } from '../parts/page';
import { Problem } from '../parts/problem';
import { Unread } from '../parts/unread';
import { duration, Moment, State, UntrustedText } from '../parts/values';
import { POLICY_TERMS } from './policy-terms';
import { Rebind } from './rebind';

type Policy = Schemas['EnrollmentPolicy'];

const read = (policy_id: string) =>
  versionedBodyOf(api.GET('/v1/enrollment-policies/{policy_id}', { params: { path: { policy_id } } }));

export default function PolicyPage() {
  const { site_id } = useSite();
  const { policyId = '' } = useParams({ strict: false });
  const { data, error } = useQuery({
    queryKey: ['site', site_id, 'policy', policyId],
    queryFn: () => read(policyId),
  });
  const mayOperate = useMay('operate');
  if (data === undefined) return <Unread kind="Policy" title={policyId} error={error} />;
  const { body: policy, etag } = data;
  return (
    <Page
      kind="Policy"
      title={policy.display_name}
      id={policyId}
      question="Which workload may enroll, and how?"
      actions={mayOperate && policy.state !== 'deleted' && <PolicyActions policy={policy} etag={etag} />}
    >
      {error && <Problem error={error} />}
      <Section title="What it allows">
        <PolicyFacts policy={policy} />
        <AsCommand words={['get', 'policy', policyId]} />
      </Section>
      <Section title="How a workload enrolls">
        <CommandGenerator policy={policy} />
      </Section>
    </Page>
  );
}

function PolicyFacts({ policy }: { readonly policy: Policy }) {
  const { refuses_with } = policy;
  return (
    <Facts
      rows={[
        ['State', <State key="state" value={policy.state} />],
        ...(refuses_with === undefined
          ? []
          : [['Refuses every enrollment with', <code key="refuses">{refuses_with}</code>] as const]),
        [
          'Source',
          <span key="source">
            <SourceLink id={policy.source_id} />, revision {policy.source_revision}
          </span>,
        ],
        ['Issuer of the token', <UntrustedText key="issuer" value={policy.verified_issuer} />],
        ['Subject of the token', <UntrustedText key="subject" value={policy.verified_subject} />],
        ['Client', <UntrustedText key="client" value={policy.client_id} />],
        ['Approval', policy.approval],
        ['Key lifetime', `at most ${duration(policy.max_key_lifetime_seconds)}`],
        ['Keys per token', `at most ${policy.max_keys_per_token}`],
        ['Changed', <Moment key="changed" at={policy.updated_at} />],
      ]}
    />
  );
}

function PolicyActions({ policy, etag }: { readonly policy: Policy; readonly etag: string }) {
  const { policy_id, site_id, display_name, state } = policy;
  const params = { path: { policy_id } };
  const navigate = useNavigate();
  const { data: waiting } = useQuery({
    queryKey: ['site', site_id, 'enrollments', { policy_id }],
    queryFn: () =>
      bodyOf(
        api.GET('/v1/sites/{site_id}/enrollments', {
          params: { path: { site_id }, query: { policy_id, state: 'pending_approval', limit: 100 } },
        }),
      ),
  });
  const source = useSources(site_id)?.find(({ source_id }) => source_id === policy.source_id);
  const { client_id: client, verified_subject, approval } = policy;
  const declared = { source: source?.display_name, client, verified_subject };
  const denied = `Enrollments that wait are denied (${countOf(waiting)}). Issued keys stay valid.`;
  return (
    <Group gap="xs">
      <Edit
        consequence="Issued keys stay as they are. Source, identity and client stay; rebind it to change the source."
        fields={[{ name: 'display_name', label: 'Name' }, ...POLICY_TERMS]}
        command={(changes, { display_name: name = '', ...terms }) => ({
          ...renaming('policy', policy_id, changes.display_name),
          siteFile: { enrollment_policies: [{ name, ...declared, ...bodyOfValues(POLICY_TERMS, terms) }] },
        })}
        load={async () => {
          const current = await read(policy_id);
          return { draft: valuesOf(current.body), etag: current.etag };
        }}
        asksReason
        admits={(now, draft) => admitsMore(policy, now, draft)}
        save={(body, version, query) =>
          bodyOf(
            api.PATCH('/v1/enrollment-policies/{policy_id}', {
              params: { ...params, query, header: { 'if-match': version } },
              // Control validates the body.
              body: body as Schemas['EnrollmentPolicyChange'],
            }),
          )
        }
      />
      <Rebind policy={policy} etag={etag} />
      {state === 'deactivated' ? (
        <Action
          key="reactivate"
          label="Reactivate"
          command={['reactivate', policy_id]}
          confirm={{
            asksReason: true,
            consequence: (
              <>
                Workloads with the subject <UntrustedText value={verified_subject} /> can enroll keys of
                client <UntrustedText value={client} /> again, with the commands that are deployed
                {approval === 'manual' ? ', when an operator approves each' : ', without an operator'}.
              </>
            ),
          }}
          run={(query) =>
            bodyOf(
              api.POST('/v1/enrollment-policies/{policy_id}/reactivate', { params: { ...params, query } }),
            )
          }
        />
      ) : (
        <Action
          key="deactivate"
          label="Deactivate"
          command={['deactivate', policy_id]}
          confirm={{
            asksReason: true,
            consequence: `No workload can enroll under it until it is reactivated. ${denied}`,
          }}
          run={(query) =>
            bodyOf(
              api.POST('/v1/enrollment-policies/{policy_id}/deactivate', { params: { ...params, query } }),
            )
          }
        />
      )}
      <Action
        label="Delete"
        command={['delete', 'policy', policy_id, '--yes']}
        confirm={{
          finalFor: display_name,
          asksReason: true,
          consequence: `For good: its enroll command stops working, in every pod that starts from now on. ${denied}`,
        }}
        run={(query) =>
          bodyOf(
            api.DELETE('/v1/enrollment-policies/{policy_id}', {
              params: { ...params, query, header: { 'if-match': etag } },
            }),
          )
        }
        onDone={() => void navigate({ to: `/sites/${encodeURIComponent(site_id)}/policies` })}
      />
    </Group>
  );
}

/** Describes which workloads a change of terms admits. */
function admitsMore({ verified_subject, client_id }: Policy, now: Values, draft: Values) {
  const isHigher = (name: string) => Number(draft[name]) > Number(now[name]);
  const admitted = [
    ...(now.approval === 'manual' && draft.approval === 'automatic' ? ['keys without an operator'] : []),
    ...(isHigher('max_key_lifetime_seconds')
      ? [
          `keys that live ${duration(Number(draft.max_key_lifetime_seconds))}, not ${duration(Number(now.max_key_lifetime_seconds))}`,
        ]
      : []),
    ...(isHigher('max_keys_per_token')
      ? [`${draft.max_keys_per_token} keys for one token, not ${now.max_keys_per_token}`]
      : []),
  ];
  return admitted.map((what) => ({
    key: what,
    shown: (
      <>
        <UntrustedText value={verified_subject} /> gets {what}, of client <UntrustedText value={client_id} />
      </>
    ),
  }));
}

function countOf(page: Schemas['EnrollmentPage'] | undefined): string {
  if (page === undefined) return 'their number is not known';
  return page.next_cursor === undefined ? `now ${page.items.length}` : `now more than ${page.items.length}`;
}

function valuesOf(policy: Policy): Values {
  const { display_name, approval, max_key_lifetime_seconds, max_keys_per_token } = policy;
  return {
    display_name,
    approval,
    max_key_lifetime_seconds: String(max_key_lifetime_seconds),
    max_keys_per_token: String(max_keys_per_token),
  };
}

/** Forms of the command, each with its purpose. */
const FORMS = [
  ['command', 'Enroll command', 'For a job: run this in the workload. It enrolls one key.'],
  ['init_container', 'Init container', 'For a job in Kubernetes: add these parts to the pod template.'],
  ['agent_command', 'Agent command', 'For a service: keeps a key, and replaces it before it expires.'],
  [
    'native_sidecar',
    'Native sidecar',
    'For a service in Kubernetes 1.29 and later: the agent beside the application.',
  ],
  [
    'signer_command',
    'Signer command',
    'For a program that does not sign itself: the signer signs what it sends.',
  ],
  ['signer_sidecar', 'Signer sidecar', 'The signer beside the application, Kubernetes 1.29 and later.'],
] as const;

function CommandGenerator({ policy: { policy_id, site_id } }: { readonly policy: Policy }) {
  const { data, error } = useQuery({
    queryKey: ['site', site_id, 'policy', policy_id, 'command'],
    queryFn: () =>
      bodyOf(api.GET('/v1/enrollment-policies/{policy_id}/command', { params: { path: { policy_id } } })),
  });
  if (error instanceof ApiError && error.code === 'policy_not_active')
    return <Empty>The policy accepts no enrollments. Reactivate it to get its commands.</Empty>;
  if (data === undefined) return error ? <Problem error={error} /> : <Loading height={240} />;
  const forms = FORMS.filter(([member]) => data[member] !== undefined);
  return (
    <>
      <Tabs defaultValue="command" keepMounted={false}>
        <Tabs.List>
          {forms.map(([member, title]) => (
            <Tabs.Tab key={member} value={member}>
              {title}
            </Tabs.Tab>
          ))}
        </Tabs.List>
        {forms.map(([member, , purpose]) => (
          <Tabs.Panel key={member} value={member} pt="sm">
            <Text size="sm" mb="xs">
              {purpose}
            </Text>
            <CopyText text={data[member] ?? ''} />
          </Tabs.Panel>
        ))}
      </Tabs>
      {data.signer_command === undefined && (
        <Text size="sm" c="dimmed">
          There is no signer command yet: the client may call no route.
        </Text>
      )}
      <AsCommand words={['get', 'command', policy_id]} />
    </>
  );
}
