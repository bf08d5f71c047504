/** One enrollment: the content of its proof, and the decision. */
import { Anchor } from '@mantine/core';
import { useQuery } from '@tanstack/react-query';
import { Link, useParams } from '@tanstack/react-router';
import { api, bodyOf, type Schemas } from '../api/client';
import { useMay, useSite } from '../api/session';
import { AsCommand } from '../parts/command';
import { Loading } from '../parts/loading';
import { Facts, Page, Section } from '../parts/page';
import { Problem } from '../parts/problem';
import { Id, Moment, State, UntrustedText } from '../parts/values';
import { Decide, provenanceName } from './decide';

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
    <Page title="Enrollment" question="Who asks for this key?">
      {mayDecide && <Decide enrollments={isWaiting ? [enrollment] : []} />}
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
        <Outcome enrollment={enrollment} siteId={site_id} />
      </Section>
      <AsCommand words={['get', 'enrollment', enrollmentId]} />
    </Page>
  );
}

function Outcome({
  enrollment,
  siteId,
}: {
  readonly enrollment: Schemas['Enrollment'];
  readonly siteId: string;
}) {
  const { decided_by, decided_at, denial_code, key_id, policy_id, source_id } = enrollment;
  const link = (kind: string, id: string) => (
    <Anchor component={Link} to={`/sites/${encodeURIComponent(siteId)}/${kind}/${id}`} size="sm">
      {id}
    </Anchor>
  );
  return (
    <Facts
      rows={[
        ['State', <State key="state" value={enrollment.state} />],
        ['Enrollment ID', <Id key="id" value={enrollment.enrollment_id} />],
        ['Client', <UntrustedText key="client" value={enrollment.client_id} />],
        ['Policy', link('policies', policy_id)],
        [
          'Source',
          <>
            {link('sources', source_id)}, revision {enrollment.source_revision}
          </>,
        ],
        ['Asked', <Moment key="asked" at={enrollment.created_at} />],
        ['Key expires', <Moment key="expires" at={enrollment.key_expires_at} />],
        ...(decided_by === undefined
          ? []
          : [['Decided by', <UntrustedText key="by" value={decided_by} />] as const]),
        ...(decided_at === undefined ? [] : [['Decided', <Moment key="at" at={decided_at} />] as const]),
        ...(denial_code === undefined ? [] : [['Denied with', denial_code] as const]),
        ...(key_id === undefined ? [] : [['Key', link('keys', key_id)] as const]),
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

function capital(text: string): string {
  return text.charAt(0).toUpperCase() + text.slice(1);
}
