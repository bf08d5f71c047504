/** One enrollment: what its key may call, the content of its token, and the decision. */
import { Alert, Group } from '@mantine/core';
import { useQuery } from '@tanstack/react-query';
import { useParams } from '@tanstack/react-router';
import { api, bodyOf, type Schemas } from '../api/client';
import { publishedKeyQuery } from '../api/keys';
import { useMay, useSite } from '../api/session';
import { AsCommand } from '../parts/command';
import { Loading } from '../parts/loading';
import { PageLink, PolicyLink, SourceLink } from '../parts/named-link';
import { Facts, Page, Section } from '../parts/page';
import { Problem } from '../parts/problem';
import { Unread } from '../parts/unread';
import { Id, Moment, State, UntrustedText } from '../parts/values';
import { shareOf, TargetsLink, useAcknowledgements } from './acknowledged';
import { Allowed } from './allowed';
import { Decide } from './decide';
import { provenanceRows, Uids } from './provenance';

type Enrollment = Schemas['Enrollment'];

export default function Approval() {
  const { site_id } = useSite();
  const { enrollmentId = '' } = useParams({ strict: false });
  const { data: enrollment, error } = useQuery({
    queryKey: ['site', site_id, 'enrollment', enrollmentId],
    queryFn: () => enrollmentOf(enrollmentId),
  });
  const mayDecide = useMay('decide_enrollments');
  if (enrollment === undefined) return <Unread kind="Enrollment" title={enrollmentId} error={error} />;
  const isWaiting = enrollment.state === 'pending_approval';
  return (
    <Page
      kind="Enrollment"
      title={enrollment.verified_subject}
      id={enrollmentId}
      question={QUESTION[enrollment.state]}
      actions={mayDecide && isWaiting && <Decide enrollments={[enrollment]} />}
    >
      {error && <Problem error={error} />}
      <Decision {...enrollment} />
      <Section title="What the key may call">
        <Allowed clientId={enrollment.client_id} />
      </Section>
      <Token {...enrollment} />
      <Section title="What it asks for">
        <Outcome enrollment={enrollment} />
      </Section>
      <AsCommand words={['get', 'enrollment', enrollmentId]} />
    </Page>
  );
}

const QUESTION: { readonly [S in Enrollment['state']]: string } = {
  pending_approval: 'Who asks for this key?',
  issued: 'Who got this key?',
  denied: 'Who asked for this key?',
  expired: 'Who asked for this key?',
};

function Decision({ state, key_id, decided_by }: Enrollment) {
  if (state === 'denied') return <Alert color="red" role="status" title="Denied" />;
  return key_id === undefined ? null : <Issued keyId={key_id} isApproved={decided_by !== undefined} />;
}

interface IssuedProps {
  readonly keyId: string;
  /** By an operator, not by the policy. */
  readonly isApproved: boolean;
}

function Issued({ keyId, isApproved }: IssuedProps) {
  const { data: key } = useQuery(publishedKeyQuery(useSite().site_id, keyId, 'listed_in_revision'));
  const found = useAcknowledgements(key?.listed_in_revision);
  if (key === undefined || found === undefined) return <Loading height={60} />;
  const isActive = key.status === 'active';
  const now = isActive ? `Key issued; ${shareOf(found)}` : `Key issued, and ${key.status} since`;
  return (
    <Alert
      color={isActive ? 'green' : 'gray'}
      role="status"
      title={`${isApproved ? 'Approved. ' : ''}${now}`}
    >
      <Group gap="md">
        <PageLink page={`keys/${keyId}`} name="See the key" />
        <TargetsLink />
      </Group>
    </Alert>
  );
}

function Token({ verified_issuer, verified_subject, provenance, fingerprint }: Enrollment) {
  return (
    <Section title="What its token says">
      <Facts
        rows={[
          ['Issuer', <UntrustedText key="issuer" value={verified_issuer} />],
          ['Subject', <UntrustedText key="subject" value={verified_subject} />],
          ...provenanceRows(provenance),
          ['Key fingerprint', <Id key="fingerprint" value={fingerprint} />],
        ]}
      />
      <Uids provenance={provenance} />
    </Section>
  );
}

function Outcome({ enrollment }: { readonly enrollment: Enrollment }) {
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
async function enrollmentOf(id: string): Promise<Enrollment> {
  const body = await bodyOf(
    api.GET('/v1/enrollments/{enrollment_id}', { params: { path: { enrollment_id: id } } }),
  );
  if ('version' in body) return body;
  throw new Error('Control did not answer with the view of an operator. Sign in again.');
}
