/** One derived key: its readiness, and what prevents it. */
import { Anchor, Checkbox, Table } from '@mantine/core';
import { useQuery } from '@tanstack/react-query';
import { Link, useParams } from '@tanstack/react-router';
import { useState } from 'react';
import { api, bodyOf, type Schemas } from '../api/client';
import { useMay, useSite } from '../api/session';
import { Action } from '../parts/action';
import { AsCommand } from '../parts/command';
import { Loading } from '../parts/loading';
import { Facts, Page, Section } from '../parts/page';
import { Problem } from '../parts/problem';
import { CONDITIONS } from '../parts/readiness';
import { TableFrame, TableHead } from '../parts/table-frame';
import { Id, Moment, State, UntrustedText } from '../parts/values';
import { Receipt } from './receipt';

export default function Key() {
  const { site_id } = useSite();
  const { keyId = '' } = useParams({ strict: false });
  const path = { key_id: keyId };
  const { data: key, error } = useQuery({
    queryKey: ['site', site_id, 'key', keyId],
    queryFn: () => bodyOf(api.GET('/v1/derived-keys/{key_id}', { params: { path } })),
  });
  if (key === undefined) return error ? <Problem error={error} /> : <Loading height={320} />;
  return (
    <Page title="Key" actions={key.status === 'active' ? <Revoke derivedKey={key} /> : undefined}>
      {error && <Problem error={error} />}
      <Section title="What it is">
        <Facts
          rows={[
            ['Key ID', <Id key="id" value={key.key_id} />],
            ['State', <State key="state" value={key.status} />],
            ['Client', <UntrustedText key="client" value={key.client_id} />],
            ['Issuer', <UntrustedText key="issuer" value={key.verified_issuer} />],
            ['Subject', <UntrustedText key="subject" value={key.verified_subject} />],
            ['Fingerprint', <Id key="fingerprint" value={key.fingerprint} />],
            ['Issued', <Moment key="created" at={key.created_at} />],
            ['Expires', <Moment key="expires" at={key.expires_at} />],
            ['Last used', <LastUsed key="used" keyId={keyId} siteId={site_id} />],
            ...revocationOf(key),
            ...(key.status === 'revoked' ? [['In effect at', <TargetsLink key="targets" />] as const] : []),
            ['Enrollment', <LinkTo key="enrollment" kind="approvals" id={key.enrollment_id} />],
            ['Policy', <LinkTo key="policy" kind="policies" id={key.policy_id} />],
            ['Source', <LinkTo key="source" kind="sources" id={key.source_id} />],
            ...Object.entries(key.provenance).map(
              ([name, value]) => [name, <UntrustedText key={name} value={value} />] as const,
            ),
          ]}
        />
      </Section>
      {key.status === 'revoked' && <Receipt keyId={keyId} siteId={site_id} />}
      <Readiness keyId={keyId} siteId={site_id} />
    </Page>
  );
}

function LinkTo({ kind, id }: { readonly kind: string; readonly id: string }) {
  const { site_id } = useSite();
  return (
    <Anchor component={Link} to={`/sites/${encodeURIComponent(site_id)}/${kind}/${id}`} size="sm">
      {id}
    </Anchor>
  );
}

function TargetsLink() {
  const { site_id } = useSite();
  return (
    <Anchor component={Link} to={`/sites/${encodeURIComponent(site_id)}/targets`} size="sm">
      See which targets have the newest revision
    </Anchor>
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
      <TableFrame label="Conditions" isLoading={data === undefined}>
        <TableHead titles={['Condition', 'State', 'Waits for']} />
        <Table.Tbody>
          {data?.conditions.map(({ condition, state, satisfied, blocked_by }) => (
            <Table.Tr key={condition}>
              <Table.Td>{CONDITIONS[condition]}</Table.Td>
              <Table.Td>
                {satisfied ? '✓ ' : '✗ '}
                {state.replaceAll('_', ' ')}
              </Table.Td>
              <Table.Td>{blocked_by === undefined ? '' : <UntrustedText value={blocked_by} />}</Table.Td>
            </Table.Tr>
          ))}
        </Table.Tbody>
      </TableFrame>
      <AsCommand words={['get', 'readiness', keyId]} />
    </Section>
  );
}

function Revoke({
  derivedKey: { key_id, verified_subject },
}: {
  readonly derivedKey: Schemas['DerivedKey'];
}) {
  const [block, setBlock] = useState(false);
  if (!useMay('operate')) return null;
  return (
    <Action
      label="Revoke"
      command={['revoke', key_id, ...(block ? ['--block-subject'] : []), '--yes']}
      confirm={{
        name: key_id,
        consequence: (
          <>
            For good. Requests that this key signs are denied as soon as each target has the next revision,
            also under other key IDs of the same public key.
          </>
        ),
        asksReason: true,
        fields: (
          <Checkbox
            label={
              <>
                Also refuse new enrollments of <UntrustedText value={verified_subject} />
              </>
            }
            checked={block}
            onChange={({ currentTarget }) => setBlock(currentTarget.checked)}
          />
        ),
      }}
      run={(because) =>
        bodyOf(
          api.POST('/v1/derived-keys/{key_id}/revoke', {
            params: { path: { key_id } },
            body: { block_subject: block, ...because },
          }),
        )
      }
    />
  );
}
