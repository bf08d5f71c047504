/** One enrollment: the content of its proof, and the decision. */
import { List, Text } from '@mantine/core';
import { useQuery } from '@tanstack/react-query';
import { useParams } from '@tanstack/react-router';
import { Fragment } from 'react';
import { api, bodyOf, type Schemas } from '../api/client';
import { useMay, useSite } from '../api/session';
import { AsCommand } from '../parts/command';
import { Loading } from '../parts/loading';
import { PageLink, PolicyLink, SourceLink } from '../parts/named-link';
import { Facts, Page, Section } from '../parts/page';
import { Problem } from '../parts/problem';
import { Id, Moment, State, UntrustedText } from '../parts/values';
import { capital, Decide, provenanceName } from './decide';

export default function Approval() {
  const { site_id } = useSite();
  const { enrollmentId = '' } = useParams({ strict: false });
  const { data: enrollment, error } = useQuery({
    queryKey: ['site', site_id, 'enrollment', enrollmentId],
    queryFn: () => enrollmentOf(enrollmentId),
  });
  const mayDecide = useMay('decide_enrollments');
  if (enrollment === undefined) return error ? <Problem error={error} /> : <Loading height={320} />;
  const isWaiting = enrollment.state === 'pending_approval';
  return (
    <Page
      kind="Enrollment"
      title={enrollment.verified_subject}
      id={enrollmentId}
      question="Who asks for this key?"
      actions={mayDecide && isWaiting && <Decide enrollments={[enrollment]} />}
    >
      {error && <Problem error={error} />}
      <Section title="What the proof says">
        <Facts
          rows={[
            ['Issuer', <UntrustedText key="issuer" value={enrollment.verified_issuer} />],
            ['Subject', <UntrustedText key="subject" value={enrollment.verified_subject} />],
            ...Object.entries(enrollment.provenance).map(
              ([name, value]) =>
                [capital(provenanceName(name)), <UntrustedText key={name} value={value} />] as const,
            ),
            ['Key fingerprint', <Id key="fingerprint" value={enrollment.fingerprint} />],
          ]}
        />
      </Section>
      <Section title="What it asks for">
        <Outcome enrollment={enrollment} />
      </Section>
      <Section title="What the key may call">
        <Allowed clientId={enrollment.client_id} />
      </Section>
      <AsCommand words={['get', 'enrollment', enrollmentId]} />
    </Page>
  );
}

const MAX_ROUTES = 100;

/** What the client is granted, and the routes that its keys may call by that. */
function Allowed({ clientId }: { readonly clientId: string }) {
  const { site_id } = useSite();
  const { data, error } = useQuery({
    queryKey: ['site', site_id, 'profiles', { clientId }],
    queryFn: () =>
      bodyOf(
        api.GET('/v1/sites/{site_id}/signing-profiles', {
          params: { path: { site_id }, query: { client_id: clientId, limit: MAX_ROUTES } },
        }),
      ),
  });
  const { data: grants } = useQuery({
    queryKey: ['site', site_id, 'client-grants', clientId],
    queryFn: () =>
      bodyOf(
        api.GET('/v1/sites/{site_id}/clients/{client_id}/grants', {
          params: { path: { site_id, client_id: clientId }, query: { limit: MAX_ROUTES } },
        }),
      ),
  });
  if (data === undefined) return error ? <Problem error={error} /> : <Loading height={60} />;
  const routes = data.items.filter(({ state }) => state === 'active');
  if (routes.length === 0) return <Text size="sm">Nothing yet: its client has no grant for a route.</Text>;
  return (
    <>
      {grants !== undefined && grants.items.length > 0 && (
        <Text size="sm">
          Grants of client <UntrustedText value={clientId} />:{' '}
          {grants.items.map(({ access, resource }, place) => (
            <Fragment key={resource}>
              {place > 0 && ', '}
              {access} <UntrustedText value={resource} />
            </Fragment>
          ))}
          {grants.next_cursor !== undefined && ', and more'}
        </Text>
      )}
      <List size="sm">
        {routes.map(({ route_id, method, path_template, origins }) => (
          <List.Item key={route_id}>
            <UntrustedText value={`${method} ${origins[0]}${path_template}`} />, route{' '}
            <PageLink page={`routes/${encodeURIComponent(route_id)}`} name={route_id} />
          </List.Item>
        ))}
        {data.next_cursor !== undefined && <List.Item>and more: the first {MAX_ROUTES} are shown</List.Item>}
      </List>
    </>
  );
}

function Outcome({ enrollment }: { readonly enrollment: Schemas['Enrollment'] }) {
  const { decided_by, decided_at, denial_code, key_id, policy_id, source_id } = enrollment;
  return (
    <Facts
      rows={[
        ['State', <State key="state" value={enrollment.state} />],
        ['Client', <UntrustedText key="client" value={enrollment.client_id} />],
        ['Policy', <PolicyLink key="policy" id={policy_id} />],
        [
          'Source',
          <>
            <SourceLink id={source_id} />, revision {enrollment.source_revision}
          </>,
        ],
        ['Asked', <Moment key="asked" at={enrollment.created_at} />],
        ['Key expires', <Moment key="expires" at={enrollment.key_expires_at} />],
        ...(decided_by === undefined
          ? []
          : [['Decided by', <UntrustedText key="by" value={decided_by} />] as const]),
        ...(decided_at === undefined ? [] : [['Decided', <Moment key="at" at={decided_at} />] as const]),
        ...(denial_code === undefined ? [] : [['Denied with', denial_code] as const]),
        ...(key_id === undefined
          ? []
          : [
              [
                'Key',
                <PageLink key="key" page={`keys/${key_id}`} name={enrollment.verified_subject} />,
              ] as const,
            ]),
      ]}
    />
  );
}

/** Control sends the whole enrollment to operators and another view to workloads. */
async function enrollmentOf(id: string): Promise<Schemas['Enrollment']> {
  const body = await bodyOf(
    api.GET('/v1/enrollments/{enrollment_id}', { params: { path: { enrollment_id: id } } }),
  );
  if ('version' in body) return body;
  throw new Error('Control did not answer with the view of an operator. Sign in again.');
}
