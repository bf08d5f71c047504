/** One derived key: its readiness, and what prevents it. */
import { Group } from '@mantine/core';
import { useQuery } from '@tanstack/react-query';
import { useParams } from '@tanstack/react-router';
import { api, bodyOf, type Schemas } from '../api/client';
import { keyQuery } from '../api/keys';
import { useSite } from '../api/session';
import { AsCommand } from '../parts/command';
import { Loading } from '../parts/loading';
import { PageLink, PolicyLink, SourceLink } from '../parts/named-link';
import { Facts, Page, Section } from '../parts/page';
import { Problem } from '../parts/problem';
import { CONDITIONS } from '../parts/readiness';
import { ItemTable } from '../parts/table-frame';
import { Unread } from '../parts/unread';
import { Id, inUtc, Moment, State, UntrustedText } from '../parts/values';
import { Acknowledged, TargetsLink } from './acknowledged';
import { provenanceRows, Uids } from './provenance';
import { Receipt } from './receipt';
import { Revoke } from './revoke';

export default function Key() {
  const { site_id } = useSite();
  const { keyId = '' } = useParams({ strict: false });
  const { data: key, error } = useQuery(keyQuery(site_id, keyId));
  if (key === undefined) return <Unread kind="Key" title={keyId} error={error} />;
  return (
    <Page
      kind="Key"
      title={key.verified_subject}
      id={keyId}
      actions={key.status === 'active' ? <Revoke keys={[key]} /> : undefined}
    >
      {error && <Problem error={error} />}
      {key.status === 'revoked' && <Receipt keyId={keyId} siteId={site_id} />}
      <Section title="What it is">
        <Facts
          rows={[
            ['State', <State key="state" value={key.status} />],
            ['Client', <UntrustedText key="client" value={key.client_id} />],
            ['Issuer', <UntrustedText key="issuer" value={key.verified_issuer} />],
            ['Subject', <UntrustedText key="subject" value={key.verified_subject} />],
            ['Fingerprint', <Id key="fingerprint" value={key.fingerprint} />],
            ['Issued', <Moment key="created" at={key.created_at} />],
            key.status === 'revoked'
              ? ['Would have expired', inUtc(key.expires_at)]
              : ['Expires', <Moment key="expires" at={key.expires_at} />],
            ['Last used', <LastUsed key="used" keyId={keyId} siteId={site_id} />],
            ...revocationOf(key),
            ...(key.status === 'revoked'
              ? [
                  [
                    'Revocation at targets',
                    <div key="targets">
                      <Acknowledged revision={key.revoked_in_revision} /> <TargetsLink />
                    </div>,
                  ] as const,
                ]
              : []),
            [
              'Enrollment',
              <Group key="enrollment" gap="xs">
                <PageLink page={`approvals/${key.enrollment_id}`} name="Its token and who decided" />
                <Id value={key.enrollment_id} />
              </Group>,
            ],
            ['Policy', <PolicyLink key="policy" id={key.policy_id} />],
            ['Source', <SourceLink key="source" id={key.source_id} />],
            ...provenanceRows(key.provenance),
          ]}
        />
        <Uids provenance={key.provenance} />
      </Section>
      <Readiness keyId={keyId} siteId={site_id} />
    </Page>
  );
}

/** As the targets reported it, which nothing can check. */
function LastUsed({ keyId, siteId }: { readonly keyId: string; readonly siteId: string }) {
  const { data, error } = useQuery({
    queryKey: ['site', siteId, 'last-used', keyId],
    queryFn: () =>
      bodyOf(api.GET('/v1/derived-keys/{key_id}/last-used', { params: { path: { key_id: keyId } } })),
    refetchInterval: 30_000,
  });
  if (data === undefined) return error ? <Problem error={error} /> : <Loading height={20} />;
  if (data.targets.length === 0) return <>no target has reported a use</>;
  return (
    <>
      {data.targets.map(({ last_used_at, name, target_id }) => (
        <div key={target_id}>
          <Moment at={last_used_at} />, reported by target <UntrustedText value={name} />
        </div>
      ))}
    </>
  );
}

function revocationOf({ revoked_at, revoked_by, revoked_reason }: Schemas['DerivedKey']) {
  if (revoked_at === undefined) return [];
  return [
    ['Revoked', <Moment key="revoked" at={revoked_at} />],
    ['Revoked by', <UntrustedText key="by" value={revoked_by ?? ''} />],
    ['Reason', <UntrustedText key="reason" value={revoked_reason ?? 'none given'} />],
  ] as const;
}

function Readiness({ keyId, siteId }: { readonly keyId: string; readonly siteId: string }) {
  const { data, error } = useQuery({
    queryKey: ['site', siteId, 'readiness', keyId],
    queryFn: () =>
      bodyOf(api.GET('/v1/derived-keys/{key_id}/readiness', { params: { path: { key_id: keyId } } })),
    refetchInterval: 5_000,
  });
  return (
    <Section title="Is it ready?">
      {error && <Problem error={error} />}
      <ItemTable
        label="Conditions"
        isLoading={data === undefined}
        items={data?.conditions ?? []}
        idOf={({ condition }) => condition}
        columns={[
          { title: 'Condition', cell: ({ condition }) => CONDITIONS[condition] },
          {
            title: 'State',
            cell: ({ satisfied, state }) => `${satisfied ? '✓' : '✗'} ${state.replaceAll('_', ' ')}`,
          },
          { title: 'Waits for', cell: ({ blocked_by }) => <UntrustedText value={blocked_by ?? ''} /> },
        ]}
      />
      <AsCommand words={['get', 'readiness', keyId]} />
    </Section>
  );
}
