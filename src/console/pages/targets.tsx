/** The verifiers of a site, and the revision that each has loaded. */
import { Group, List, Stack, Text } from '@mantine/core';
import { useQuery } from '@tanstack/react-query';
import { type ReactNode, useState } from 'react';
import { api, bodyOf, type Schemas, versionedBodyOf } from '../api/client';
import { nameWord } from '../api/ctl-command';
import { useMay, useSite } from '../api/session';
import { Action } from '../parts/action';
import { AsCommand } from '../parts/command';
import { Empty, Facts, Page, Section } from '../parts/page';
import { Problem } from '../parts/problem';
import { Rename } from '../parts/rename';
import { type Column, ItemTable } from '../parts/table-frame';
import { Unread } from '../parts/unread';
import { Id, Lasting, Moment, State, UntrustedText } from '../parts/values';
import { propagationQuery } from './acknowledged';
import { CreateTarget, TargetToken } from './create-target';
import { RaiseFloor, SigningKeys } from './signing-keys';
import { TargetDecisions } from './target-decisions';

type Target = Schemas['TargetPropagation'];

export default function Targets() {
  const { site_id } = useSite();
  const mayAdminister = useMay('administer');
  const [shown, setShown] = useState<Schemas['TargetWithToken']>();
  const { data, error } = useQuery(propagationQuery(site_id));
  if (data === undefined) return <Unread title="Targets" error={error} />;
  return (
    <Page
      title="Targets"
      question="Does every target (the verifiers with one token) have the current bundle?"
      actions={mayAdminister && <CreateTarget />}
    >
      {error && <Problem error={error} />}
      <Section title="Propagation">
        <Publication publication={data} />
        {data.targets.length === 0 ? (
          <Empty>No verifier takes bundles of this site yet. Create a target, and start its verifier.</Empty>
        ) : (
          <Matrix targets={data.targets} replayStores={data.replay_stores} onToken={setShown} />
        )}
        <Group>
          <AsCommand words={['get', 'propagation', nameWord(site_id)]} />
          {mayAdminister && <RaiseFloor publication={data} />}
        </Group>
      </Section>
      <TargetDecisions />
      <SigningKeys />
      <TargetToken target={shown} onClose={() => setShown(undefined)} />
    </Page>
  );
}

function Publication({ publication }: { readonly publication: Schemas['SitePropagation'] }) {
  const { revision, published_at, unpublished_since, held_everywhere, replay_stores, targets } = publication;
  const isOnPurpose = publication.expected_replay_stores === 'per_region';
  const current = targets.filter(({ state }) => state === 'current').length;
  return (
    <Facts
      rows={[
        ['Newest revision', revision === 0 ? 'none yet' : String(revision)],
        ['Published', <Moment key="published" at={published_at} />],
        ...(unpublished_since === undefined
          ? []
          : ([['Changes wait since', <Moment key="waiting" at={unpublished_since} />]] as const)),
        ['Loaded by every target', held_everywhere === 0 ? 'none yet' : `revision ${held_everywhere}`],
        ['Current targets', `${current} of ${targets.length}`],
        ...(replay_stores > 1
          ? ([
              [
                'Replay stores',
                <ReplayStores key="stores" count={replay_stores} isOnPurpose={isOnPurpose} />,
              ],
            ] as const)
          : []),
      ]}
    />
  );
}

interface ReplayStoresProps {
  readonly count: number;
  readonly isOnPurpose: boolean;
}

function ReplayStores({ count, isOnPurpose }: ReplayStoresProps) {
  if (isOnPurpose) return <>{count}, on purpose: a proof is accepted once in each.</>;
  return (
    <Text component="span" c="red">
      {count}: a proof is accepted once in each. The verifiers of a site need one Redis.
    </Text>
  );
}

interface MatrixProps {
  readonly targets: readonly Target[];
  readonly replayStores: number;
  readonly onToken: (target: Schemas['TargetWithToken']) => void;
}

function Matrix({ targets, replayStores, onToken }: MatrixProps) {
  const mayAdminister = useMay('administer');
  const actions: Column<Target> = {
    title: 'Actions',
    isMinor: true,
    cell: (target) => (
      <Group gap="xs">
        <RotateToken target={target} onToken={onToken} />
        <RenameTarget {...target} />
        <Detach target={target} />
      </Group>
    ),
  };
  return (
    <ItemTable
      label="Targets"
      items={targets}
      idOf={({ target_id }) => target_id}
      columns={[
        {
          title: 'Target',
          cell: ({ name, target_id }) => (
            <>
              <UntrustedText value={name} />
              <Id value={target_id} />
            </>
          ),
        },
        {
          title: 'State',
          cell: (target) => (
            <>
              <State value={target.state} />
              <Text size="sm">{EXPLANATION[target.state]}</Text>
              <Refused target={target} />
              <Enforced target={target} />
              <Instances target={target} areAllShown={replayStores > 1} />
            </>
          ),
        },
        {
          title: 'Revision',
          cell: (target) => (
            <>
              {target.ahead_revision ?? target.acked_revision ?? 'none'}
              <Behind target={target} />
            </>
          ),
        },
        { title: 'Last acknowledgement', isMinor: true, cell: ({ acked_at }) => <Moment at={acked_at} /> },
        {
          title: 'Last poll',
          cell: ({ last_seen_at, silent }) => (
            <>
              <Moment at={last_seen_at} />
              {silent && (
                <Text size="sm" c="red">
                  does not poll
                </Text>
              )}
            </>
          ),
        },
        ...(mayAdminister ? [actions] : []),
      ]}
    />
  );
}

const EXPLANATION: { readonly [S in Target['state']]: ReactNode } = {
  current: '',
  behind: '',
  ahead: 'Its revision is not one that Control published: after a restore from a backup, use Raise floor.',
  refusing: 'It rejects a newer bundle, and keeps the one that it has.',
  never: 'It has loaded nothing yet: start its verifier.',
};

function Behind({ target: { behind_revisions, behind_since } }: { readonly target: Target }) {
  if (behind_revisions === 0) return null;
  return (
    <Text component="div" size="sm">
      behind by {behind_revisions}
      {behind_since !== undefined && (
        <>
          {' '}
          <Lasting since={behind_since} />
        </>
      )}
    </Text>
  );
}

function Refused({ target: { refused } }: { readonly target: Target }) {
  if (refused === undefined) return null;
  return (
    <Text component="div" size="sm" c="red">
      Refused revision {refused.revision}: <UntrustedText value={refused.code} />
      {refused.detail !== undefined && (
        <>
          {' '}
          (<UntrustedText value={refused.detail} />)
        </>
      )}
      , <Moment at={refused.at} />
    </Text>
  );
}

interface InstancesProps {
  readonly target: Target;
  /** Also where only one verifier has the token. */
  readonly areAllShown: boolean;
}

/** The verifiers that share the token. */
function Instances({ target: { acked_revision, instances }, areAllShown }: InstancesProps) {
  const live = instances.filter(({ silent }) => !silent);
  if (live.length === 0 || (live.length === 1 && !areAllShown)) return null;
  return (
    <List size="sm" aria-label="Instances">
      {live.map(({ enforced_observations: enforced, instance_id, replay_store, revision, version }) => (
        <List.Item key={instance_id}>
          <UntrustedText value={version} />, revision {revision ?? 'none'}
          {revision !== acked_revision && ', not the acknowledged one'}
          {enforced > 0 && `, enforces ${enforced} observed`}
          {replay_store !== undefined && (
            <>
              , replay store <Id value={replay_store} />
            </>
          )}
        </List.Item>
      ))}
    </List>
  );
}

/** What the verifier enforces although the bundle says observe. */
function Enforced({ target: { enforced_observations: enforced } }: { readonly target: Target }) {
  if (enforced === undefined) return null;
  const { count, routes, unmatched } = enforced;
  const more = count - routes.length - (unmatched ? 1 : 0);
  return (
    <Text component="div" size="sm">
      Enforces although observed: {unmatched && 'requests that no route matches'}
      {routes.map((route, index) => (
        <span key={route}>
          {(unmatched || index > 0) && ', '}
          <UntrustedText value={route} />
        </span>
      ))}
      {more > 0 && ` and ${more} more`}
    </Text>
  );
}

function RotateToken({
  target: { target_id },
  onToken,
}: {
  readonly target: Target;
  readonly onToken: MatrixProps['onToken'];
}) {
  return (
    <Action
      label="Rotate token"
      command={['rotate-target-token', target_id, '--out', 'target.token']}
      confirm={{
        consequence:
          'Control shows another token once. The verifier reads its token file again for each poll; the old token stays valid for one hour.',
      }}
      run={async () =>
        onToken(
          await bodyOf(
            api.POST('/v1/targets/{target_id}/rotate-token', {
              params: { path: { target_id } },
              body: { overlap_seconds: 3_600 },
            }),
          ),
        )
      }
    />
  );
}

function RenameTarget({ target_id }: Target) {
  const path = { target_id };
  return (
    <Rename
      kind="target"
      id={target_id}
      read={() => versionedBodyOf(api.GET('/v1/targets/{target_id}', { params: { path } }))}
      save={(body, etag) =>
        bodyOf(api.PATCH('/v1/targets/{target_id}', { params: { path, header: { 'if-match': etag } }, body }))
      }
    />
  );
}

function Detach({ target: { target_id, name, state, last_seen_at } }: { readonly target: Target }) {
  return (
    <Action
      label="Detach"
      command={['detach', target_id]}
      confirm={{
        finalFor: name,
        consequence: (
          <Stack gap={4}>
            <span>
              For good. The token ends at once. Its verifier keeps the bundle that it has, and denies every
              request when that is no longer fresh. Nothing waits for the target any more.
            </span>
            <span>
              Now it is <State value={state} />, last poll <Moment at={last_seen_at} />.
            </span>
          </Stack>
        ),
      }}
      run={() => bodyOf(api.POST('/v1/targets/{target_id}/detach', { params: { path: { target_id } } }))}
    />
  );
}
