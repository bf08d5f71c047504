/** One Trust Anchor Source with its revisions. */
import { Anchor, Group, List, Text } from '@mantine/core';
import { useQuery } from '@tanstack/react-query';
import { Link, useNavigate, useParams } from '@tanstack/react-router';
import { api, bodyOf, type Schemas, versionedBodyOf } from '../api/client';
import { useMay, useSite } from '../api/session';
import { usePolicies } from '../api/site-lists';
import { Action } from '../parts/action';
import { AsCommand, renaming } from '../parts/command';
import { Edit } from '../parts/edit';
import { Facts, Page, Section } from '../parts/page';
import { Problem } from '../parts/problem';
import { Unread } from '../parts/unread';
import { Moment, UntrustedText } from '../parts/values';
import { holdsSlot, isDraft, SOURCE_FIELDS, valuesOfRevision, valuesOfSource } from './source-fields';
import { SourceKeys } from './source-keys';
import { SourceRevision } from './source-revision';

type Source = Schemas['Source'];

const read = (source_id: string) =>
  versionedBodyOf(api.GET('/v1/sources/{source_id}', { params: { path: { source_id } } }));

const KEYS_THEN: { readonly [K in Source['on_suspend']]: string } = {
  keep: 'valid keys stay valid until they expire',
  revoke: 'valid keys are revoked',
};

export default function SourcePage() {
  const { site_id } = useSite();
  const { sourceId = '' } = useParams({ strict: false });
  const { data, error } = useQuery({
    queryKey: ['site', site_id, 'source', sourceId],
    queryFn: () => read(sourceId),
    // Polls while a check or a publication is in progress.
    refetchInterval: ({ state }) =>
      state.data?.body.revisions.some(({ state: its }) => its === 'activating' || its === 'publishing')
        ? 2_000
        : false,
  });
  const mayOperate = useMay('operate');
  if (data === undefined) return <Unread kind="Source" title={sourceId} error={error} />;
  const { body: source, etag } = data;
  return (
    <Page
      kind="Source"
      title={source.display_name}
      id={sourceId}
      question="Is this the intended cluster, and is it in use?"
      actions={mayOperate && <SourceActions source={source} etag={etag} />}
    >
      {error && <Problem error={error} />}
      <Section title="What it is">
        <Facts
          rows={[
            ['When it is suspended', KEYS_THEN[source.on_suspend]],
            ['When it is retired', KEYS_THEN[source.on_retire]],
            ['Created', <Moment key="created" at={source.created_at} />],
            ['Policies', <PoliciesOf key="policies" source={source} />],
          ]}
        />
        <AsCommand words={['get', 'source', sourceId]} />
      </Section>
      {source.revisions.toReversed().map((revision) => (
        <SourceRevision key={revision.revision} source={source} revision={revision} />
      ))}
      <SourceKeys sourceId={sourceId} />
    </Page>
  );
}

function PoliciesOf({ source: { site_id, source_id } }: { readonly source: Source }) {
  const policies = usePolicies(site_id).filter((policy) => policy.source_id === source_id);
  const site = `/sites/${encodeURIComponent(site_id)}`;
  if (policies.length === 0)
    return (
      <Text size="sm">
        none;{' '}
        <Anchor component={Link} to={`${site}/policies`} size="sm" underline="always">
          create one
        </Anchor>{' '}
        once a revision is active
      </Text>
    );
  return (
    <List size="sm" listStyleType="none">
      {policies.map(({ policy_id, display_name, source_revision }) => (
        <List.Item key={policy_id}>
          <Anchor component={Link} to={`${site}/policies/${policy_id}`} size="sm">
            <UntrustedText value={display_name} />
          </Anchor>
          , revision {source_revision}
        </List.Item>
      ))}
    </List>
  );
}

function SourceActions({ source, etag }: { readonly source: Source; readonly etag: string }) {
  const { source_id, site_id, display_name, revisions } = source;
  const params = { path: { source_id } };
  const versioned = { ...params, header: { 'if-match': etag } };
  const navigate = useNavigate();
  const newest = revisions.find(({ state }) => state === 'active') ?? revisions.at(-1);
  const declared = newest && { ...valuesOfRevision(newest), expected_scope: newest.detected_scope };
  const policies = usePolicies(site_id).filter((policy) => policy.source_id === source_id).length;
  return (
    <Group gap="xs">
      <Edit
        consequence="The name is for people. What happens to keys applies to the next suspension or retirement."
        fields={SOURCE_FIELDS}
        command={(changes, { display_name: name = '', ...rules }) => ({
          ...renaming('source', source_id, changes.display_name),
          siteFile: { sources: [{ name, ...declared, ...rules }] },
        })}
        load={async () => {
          const current = await read(source_id);
          return { draft: valuesOfSource(current.body), etag: current.etag };
        }}
        save={(body, version) =>
          bodyOf(
            api.PATCH('/v1/sources/{source_id}', {
              params: { ...params, header: { 'if-match': version } },
              // Control validates the body.
              body: body as Schemas['SourceChange'],
            }),
          )
        }
      />
      {!revisions.some(isDraft) && (
        <Action
          label="New revision"
          command={['draft', source_id]}
          confirm={{
            submit: 'Create draft',
            consequence:
              'Creates a draft with the values of the newest revision, which stays in use until the draft is activated.',
          }}
          run={() => bodyOf(api.POST('/v1/sources/{source_id}/revisions', { params, body: {} }))}
        />
      )}
      {revisions.some(holdsSlot) && (
        <Action
          label="Retire"
          command={['retire', source_id]}
          confirm={{
            finalFor: display_name,
            asksReason: true,
            consequence: `For good: no workload of this cluster can enroll any more, ${policies} policies stop working, enrollments that wait are denied, and ${KEYS_THEN[source.on_retire]}. A draft is deleted.`,
          }}
          run={(query) =>
            bodyOf(api.POST('/v1/sources/{source_id}/retire', { params: { ...params, query } }))
          }
        />
      )}
      {revisions.every(isDraft) && (
        <Action
          label="Delete"
          command={['delete', 'source', source_id, '--yes']}
          confirm={{
            finalFor: display_name,
            asksReason: true,
            consequence: 'For good. It was never in use: nothing stops working.',
          }}
          run={(query) => bodyOf(api.DELETE('/v1/sources/{source_id}', { params: { ...versioned, query } }))}
          onDone={() => void navigate({ to: `/sites/${encodeURIComponent(site_id)}/sources` })}
        />
      )}
    </Group>
  );
}
