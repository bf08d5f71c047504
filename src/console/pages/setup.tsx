/** The steps from a new site to its first allowed request. */
import { Anchor, Group, Stack, Text } from '@mantine/core';
import { useQuery } from '@tanstack/react-query';
import { Link } from '@tanstack/react-router';
import type { ReactNode } from 'react';
import { api, bodyOf, controlUrl, type Schemas } from '../api/client';
import { nameWord, shellWord } from '../api/ctl-command';
import { readDecisions } from '../api/decisions';
import { useMay, useSite } from '../api/session';
import { AsCommand, CopyText } from '../parts/command';
import { Page } from '../parts/page';
import { Problem } from '../parts/problem';
import { CONDITIONS } from '../parts/readiness';
import { type Step, Steps } from '../parts/steps';
import { Unread } from '../parts/unread';
import { Moment, UntrustedText } from '../parts/values';
import { VerifierStart } from '../parts/verifier-start';
import { CreateClient } from './client-forms';
import { CreateTarget } from './create-target';
import { CreateRoute } from './route-forms';
import { DeleteSite, EditSite } from './site-forms';

export default function SetUp() {
  const site = useSite();
  const { site_id } = site;
  const { data, error } = useQuery({
    queryKey: ['site', site_id, 'setup'],
    queryFn: () => readProgress(site_id),
    refetchInterval: 5_000,
  });
  const mayOperate = useMay('operate');
  const mayAdminister = useMay('administer');
  if (data === undefined) return <Unread title="Set-up" error={error} />;
  const given: Given = { site, mayOperate, mayAdminister, ...data };
  return (
    <Page
      title="Set-up"
      question="What is missing until the first allowed request?"
      actions={
        mayAdminister && (
          <Group gap="xs">
            <EditSite />
            <DeleteSite />
          </Group>
        )
      }
    >
      {error && <Problem error={error} />}
      <Steps
        steps={[
          ...sourceSteps(given),
          ...clientSteps(given),
          policyStep(given),
          targetStep(given),
          ...keySteps(given),
          propagatedStep(given),
          requestStep(given),
        ]}
      />
      <AsCommand words={['get', 'overview', nameWord(site_id)]} />
    </Page>
  );
}

interface Progress {
  readonly sources: readonly Schemas['Source'][];
  readonly clients: readonly Schemas['Client'][];
  readonly routes: readonly Schemas['Route'][];
  readonly grants: readonly Schemas['Grant'][];
  readonly policies: readonly Schemas['EnrollmentPolicy'][];
  readonly enrollments: readonly Schemas['Enrollment'][];
  readonly keys: readonly Schemas['DerivedKey'][];
  readonly propagation: Schemas['SitePropagation'];
  /** Readiness of the last key in the list. */
  readonly readiness: Schemas['KeyReadiness'] | undefined;
  readonly profile: Schemas['SigningProfile'] | undefined;
  /** In the last seven days, as targets reported. */
  readonly allowedRequests: number;
}

interface Given extends Progress {
  readonly site: Schemas['Site'];
  readonly mayOperate: boolean;
  readonly mayAdminister: boolean;
}

/** Page size for checking whether any item exists. */
const FEW = 20;

async function readProgress(siteId: string): Promise<Progress> {
  const params = { path: { site_id: siteId }, query: { limit: FEW } };
  const [sources, clients, routes, grants, policies, enrollments, keys, propagation, decisions] =
    await Promise.all([
      bodyOf(api.GET('/v1/sites/{site_id}/sources', { params })),
      bodyOf(api.GET('/v1/sites/{site_id}/clients', { params })),
      bodyOf(api.GET('/v1/sites/{site_id}/routes', { params })),
      bodyOf(api.GET('/v1/sites/{site_id}/grants', { params })),
      bodyOf(api.GET('/v1/sites/{site_id}/enrollment-policies', { params })),
      bodyOf(api.GET('/v1/sites/{site_id}/enrollments', { params })),
      bodyOf(
        api.GET('/v1/sites/{site_id}/derived-keys', {
          params: { ...params, query: { limit: FEW, status: 'active' } },
        }),
      ),
      bodyOf(api.GET('/v1/sites/{site_id}/propagation', { params: { path: params.path } })),
      readDecisions(siteId, { by: 'outcome', period: 'week' }),
    ]);
  const key = keys.items.at(-1);
  const path = key === undefined ? undefined : { key_id: key.key_id };
  const [readiness, profiles] =
    path === undefined
      ? []
      : await Promise.all([
          bodyOf(api.GET('/v1/derived-keys/{key_id}/readiness', { params: { path } })),
          bodyOf(api.GET('/v1/derived-keys/{key_id}/signing-profiles', { params: { path } })),
        ]);
  const profile = profiles?.items.find(({ state }) => state === 'active');
  return {
    sources: sources.items,
    clients: clients.items,
    routes: routes.items,
    grants: grants.items,
    policies: policies.items,
    enrollments: enrollments.items,
    keys: keys.items,
    propagation,
    readiness,
    profile,
    allowedRequests: decisions.series.find(({ name }) => name === 'allowed')?.total ?? 0,
  };
}

const VALIDATED: readonly string[] = ['validated', 'activating', 'publishing', 'active', 'suspended'];

function sourceSteps({ site, sources }: Given): readonly Step[] {
  const revisions = sources.flatMap((source) => source.revisions);
  const failure = revisions.findLast((revision) => revision.failure !== undefined)?.failure;
  const publishing = revisions.find(({ state }) => state === 'publishing');
  const isActive = revisions.some(({ state }) => state === 'active');
  const isValidated = revisions.some(({ state }) => VALIDATED.includes(state));
  const first = sources[0];
  const open = (
    <PageLink
      site={site}
      page={first === undefined ? 'sources' : `sources/${first.source_id}`}
      label={first === undefined ? 'Create a source' : 'Open the source'}
    />
  );
  const why = failure && (
    <>
      The last check failed: <UntrustedText value={failure.code} />, <UntrustedText value={failure.detail} />
    </>
  );
  return [
    {
      title: 'Source',
      isDone: sources.length > 0,
      text: 'The cluster, or another issuer of tokens, that proves who a workload is.',
      todo: open,
    },
    {
      title: 'Source validated',
      isDone: isValidated,
      text: 'Control fetches the key set, and shows which cluster it is.',
      ...(first === undefined ? {} : { todo: open }),
      ...(why && !isValidated ? { blockedBy: why } : {}),
    },
    {
      title: 'Source active',
      isDone: isActive,
      text: 'You confirm that it is the cluster that you mean. From then on its tokens count.',
      ...(first === undefined ? {} : { todo: open }),
      ...(publishing?.waiting_for !== undefined
        ? {
            blockedBy: (
              <>
                Targets have not acknowledged it yet:{' '}
                <UntrustedText value={publishing.waiting_for.map(({ name }) => name).join(', ')} />. Start
                their verifiers, or detach them.
              </>
            ),
          }
        : why && isValidated && !isActive
          ? { blockedBy: why }
          : {}),
    },
  ];
}

function clientSteps({ site, mayOperate, clients, routes, grants }: Given): readonly Step[] {
  const published = routes.filter((route) => route.published).length;
  return [
    {
      title: 'Client',
      isDone: clients.length > 0,
      text: 'Who keys act for, such as one service of yours.',
      todo: mayOperate ? (
        <Group>
          <CreateClient />
        </Group>
      ) : (
        <NeedsRole needed="operator" />
      ),
    },
    {
      title: 'Route and grant',
      isDone: published > 0 && grants.length > 0,
      text: (
        <>
          A route is an operation of your API, and a grant lets a client call it. There{' '}
          {published === 1 ? 'is 1 route' : `are ${published} routes`} and{' '}
          {grants.length === 0 ? 'no grant' : 'a grant'}.
        </>
      ),
      todo: mayOperate ? (
        <Group>
          {published === 0 && <CreateRoute />}
          {published > 0 && <PageLink site={site} page="clients" label="Grant a client its resource" />}
        </Group>
      ) : (
        <NeedsRole needed="operator" />
      ),
    },
  ];
}

function policyStep({ site, policies }: Given): Step {
  const usable = policies.find(({ state, refuses_with }) => state === 'active' && refuses_with === undefined);
  const refusing = policies.find(({ refuses_with }) => refuses_with !== undefined);
  return {
    title: 'Policy',
    isDone: usable !== undefined,
    text: 'Which workload may enroll keys of which client, and whether somebody approves.',
    todo: <PageLink site={site} page="policies" label="Create a policy" />,
    ...(refusing === undefined
      ? {}
      : {
          blockedBy: (
            <>
              <UntrustedText value={refusing.display_name} /> refuses enrollments:{' '}
              <UntrustedText value={refusing.refuses_with ?? ''} />
            </>
          ),
        }),
  };
}

function targetStep({ mayAdminister, propagation: { targets } }: Given): Step {
  return {
    title: 'Target',
    isDone: targets.length > 0,
    text:
      targets.length === 0 ? (
        'The verifiers with one token, beside your gateway. The token fetches the bundles.'
      ) : (
        <>
          There is <UntrustedText value={targets.map(({ name }) => name).join(', ')} />.
        </>
      ),
    // Always shown, because the token is shown after the target exists.
    always: mayAdminister ? (
      <Group>
        <CreateTarget />
      </Group>
    ) : (
      <NeedsRole needed="admin" />
    ),
  };
}

function keySteps({ site, sources, policies, enrollments, keys }: Given): readonly Step[] {
  const policy = policies.find(({ state }) => state === 'active');
  const pending = enrollments.filter(({ state }) => state === 'pending_approval');
  const denied = enrollments.findLast(({ denial_code }) => denial_code !== undefined);
  return [
    {
      title: 'Enrollment',
      isDone: enrollments.length > 0 || keys.length > 0,
      text: 'A workload makes a key, and proves with its token who it is.',
      todo:
        policy === undefined ? (
          <Text size="sm">First create a policy.</Text>
        ) : (
          <Enroll policy={policy} audience={audienceOf(policy, sources)} />
        ),
    },
    {
      title: 'Key',
      isDone: keys.length > 0,
      text:
        keys[0] === undefined ? (
          'Control issues the key when the enrollment is accepted.'
        ) : (
          <>
            Of <UntrustedText value={keys[0].verified_subject} />; it expires{' '}
            <Moment at={keys[0].expires_at} />
          </>
        ),
      ...(pending.length > 0
        ? {
            blockedBy: 'An enrollment waits for approval.',
            todo: <PageLink site={site} page="approvals" label="Decide" />,
          }
        : denied === undefined
          ? {}
          : {
              blockedBy: (
                <>
                  The last enrollment was denied: <UntrustedText value={denied.denial_code ?? ''} />
                </>
              ),
            }),
    },
  ];
}

/** Audience of the tokens that the policy accepts. */
function audienceOf(
  { source_id, source_revision }: Schemas['EnrollmentPolicy'],
  sources: Progress['sources'],
): string {
  const source = sources.find((each) => each.source_id === source_id);
  return source?.revisions.find(({ revision }) => revision === source_revision)?.audience ?? '';
}

interface EnrollProps {
  readonly policy: Schemas['EnrollmentPolicy'];
  readonly audience: string;
}

function Enroll({ policy, audience }: EnrollProps) {
  const site = useSite();
  const [, namespace, account] =
    /^system:serviceaccount:([^:]+):([^:]+)$/.exec(policy.verified_subject) ?? [];
  const isServiceAccount = namespace !== undefined && account !== undefined;
  const lines = [
    'umask 077',
    ...(isServiceAccount
      ? [
          `kubectl create token ${shellWord(account)} --namespace ${shellWord(namespace)} --audience ${shellWord(audience)} > token`,
        ]
      : []),
    `proofgate enroll --control-url ${shellWord(controlUrl)} --policy ${shellWord(policy.reference)} \\`,
    '  --proof-file token --private-key-out key.pem',
  ];
  return (
    <Stack gap="xs">
      <Text size="sm">
        {isServiceAccount ? 'To try it from your machine, run this: it gets ' : 'Put '}a token of{' '}
        <UntrustedText value={policy.verified_subject} /> for the audience <UntrustedText value={audience} />{' '}
        {isServiceAccount ? 'from the cluster, and enrolls a key with it.' : 'into the file, then run this.'}
      </Text>
      <CopyText text={lines.join('\n')} />
      <PageLink
        site={site}
        page={`policies/${policy.policy_id}`}
        label="Snippets for pods, and the agent that renews keys"
      />
    </Stack>
  );
}

function propagatedStep({ site, keys, propagation: { targets }, readiness }: Given): Step {
  const waiting = readiness?.conditions.find(({ satisfied }) => !satisfied);
  const never = targets.some(({ state }) => state === 'never');
  return {
    title: 'Propagated',
    isDone: readiness?.ready === true,
    text: 'Every target has loaded a bundle that lists the key.',
    todo: (
      <Stack gap="xs">
        {never && <VerifierStart />}
        <PageLink site={site} page="targets" label="See what each target has" />
      </Stack>
    ),
    ...(keys.length > 0 && waiting !== undefined
      ? {
          blockedBy: (
            <>
              Not yet: “{CONDITIONS[waiting.condition]}”:{' '}
              <UntrustedText value={waiting.blocked_by ?? waiting.state.replaceAll('_', ' ')} />
            </>
          ),
        }
      : {}),
  };
}

function requestStep({ allowedRequests, profile }: Given): Step {
  return {
    title: 'First allowed request',
    isDone: allowedRequests > 0,
    text: 'The gateway answers what your API answers. The verifier reports it within two minutes.',
    todo:
      profile === undefined ? (
        <Text size="sm">When a key may call a route, its command is shown here.</Text>
      ) : (
        <Stack gap="xs">
          <Text size="sm">
            Run this beside key.pem. Replace GATEWAY:PORT by the address of your gateway, or omit --connect-to
            if the host name resolves to it.
          </Text>
          <CopyText text={requestCommand(profile)} />
          <Text size="sm">
            Denied as “fenced”: the verifier has just started, and accepts requests in a few seconds.
          </Text>
        </Stack>
      ),
  };
}

function requestCommand({ method, path_template, origins }: Schemas['SigningProfile']): string {
  const url = `${origins[0] ?? ''}${path_template.replaceAll(/\{[^}]*\}/g, '1')}`;
  return `proofgate request ${shellWord(method)} ${shellWord(url)} --key key.pem --connect-to GATEWAY:PORT`;
}

interface PageLinkProps {
  readonly site: Schemas['Site'];
  readonly page: string;
  readonly label: ReactNode;
}

function PageLink({ site: { site_id }, page, label }: PageLinkProps) {
  return (
    <Anchor component={Link} to={`/sites/${encodeURIComponent(site_id)}/${page}`} size="sm">
      {label}
    </Anchor>
  );
}

function NeedsRole({ needed }: { readonly needed: string }) {
  return (
    <Text size="sm" c="dimmed">
      Someone with the role {needed} can do this.
    </Text>
  );
}
