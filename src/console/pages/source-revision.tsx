/** One revision of a source: the result of Control's check of the issuer, and the next step. */
import { Alert, Code, Group, Text, TextInput } from '@mantine/core';
import { useState } from 'react';
import { api, bodyOf, type Schemas, versionedBodyOf } from '../api/client';
import { useMay } from '../api/session';
import { Action } from '../parts/action';
import { AsCommand } from '../parts/command';
import { Edit } from '../parts/edit';
import type { Values } from '../parts/fields';
import { Facts, Section } from '../parts/page';
import { Id, Moment, State, UntrustedText } from '../parts/values';
import { isDraft, REVISION_FIELDS, valuesOfRevision } from './source-fields';

type Revision = Schemas['SourceRevision'];

interface RevisionProps {
  readonly source: Schemas['Source'];
  readonly revision: Revision;
}

const NEXT: { readonly [state in Revision['state']]?: string } = {
  draft: 'Next: validate it. Control fetches the metadata and the keys of the issuer.',
  failed_draft: 'Next: correct it or the issuer, and validate it again.',
  validated: 'Next: compare the scope with your cluster, and activate it.',
  activating: 'Control checks the issuer once more.',
  publishing: 'It becomes active when every target (the verifiers with one token) has acknowledged it.',
  suspended: 'No workload of this cluster can enroll until it is resumed.',
};

export function SourceRevision({ source, revision }: RevisionProps) {
  const mayOperate = useMay('operate');
  const { state, failure, waiting_for, fingerprint, detected_scope, validated_at } = revision;
  const next = NEXT[state];
  return (
    <Section title={`Revision ${revision.revision}`}>
      <Group gap="sm">
        <State value={state} />
        <Text size="sm">{next}</Text>
      </Group>
      {failure !== undefined && (
        <Alert color="red" variant="light" title="The last check failed">
          <UntrustedText value={failure.detail} /> <Code>{failure.code}</Code>
        </Alert>
      )}
      <Facts
        rows={[
          ['Issuer', <UntrustedText key="issuer" value={revision.issuer} />],
          ['Key set', <UntrustedText key="keys" value={revision.jwks_uri} />],
          ['Audience', <UntrustedText key="audience" value={revision.audience} />],
          ...(detected_scope === undefined
            ? []
            : [['Detected scope', <UntrustedText key="scope" value={detected_scope} />] as const]),
          ...(fingerprint === undefined
            ? []
            : [['Fingerprint', <Id key="fingerprint" value={fingerprint} />] as const]),
          ...(validated_at === undefined
            ? []
            : [['Found valid', <Moment key="validated" at={validated_at} />] as const]),
          ['In this state since', <Moment key="since" at={revision.state_since} />],
          ...(waiting_for === undefined
            ? []
            : [
                [
                  'Waits for targets',
                  waiting_for.map(({ target_id, name }) => (
                    <div key={target_id}>
                      <UntrustedText value={name} />
                    </div>
                  )),
                ] as const,
              ]),
        ]}
      />
      {isDraft(revision) && <AsCommand words={['validate', source.source_id]} />}
      {mayOperate && <RevisionActions source={source} revision={revision} />}
    </Section>
  );
}

function RevisionActions({ source, revision: shown }: RevisionProps) {
  const { source_id } = source;
  const { state, revision, version } = shown;
  const path = { source_id, revision };
  const etag = `"${version}"`;
  if (state === 'active' || state === 'publishing') {
    const keys =
      source.on_suspend === 'revoke' ? 'Valid keys are revoked, for good.' : 'Valid keys stay valid.';
    return (
      <Group>
        <Action
          key="suspend"
          label="Suspend"
          command={['suspend', source_id]}
          confirm={{
            asksReason: true,
            consequence: `No workload of this cluster can enroll until it is resumed. ${keys}`,
            // Suspending can be undone; revoking cannot.
            ...(source.on_suspend === 'revoke' ? { finalFor: source.display_name } : {}),
          }}
          run={(query) =>
            bodyOf(
              api.POST('/v1/sources/{source_id}/revisions/{revision}/suspend', { params: { path, query } }),
            )
          }
        />
      </Group>
    );
  }
  if (state === 'suspended') {
    return (
      <Group>
        <Action
          key="resume"
          label="Resume"
          command={['resume', source_id, '--revision', String(revision)]}
          confirm={{
            asksReason: true,
            consequence: 'Workloads of this cluster can enroll again once every target has acknowledged it.',
          }}
          run={(query) =>
            bodyOf(
              api.POST('/v1/sources/{source_id}/revisions/{revision}/resume', { params: { path, query } }),
            )
          }
        />
      </Group>
    );
  }
  if (!isDraft(shown)) return null;
  return (
    <Group gap="xs">
      {state === 'validated' && <Activate source={source} revision={shown} />}
      <Action
        label={state === 'validated' ? 'Validate again' : 'Validate'}
        isPrimary={state !== 'validated'}
        run={() =>
          bodyOf(api.POST('/v1/sources/{source_id}/revisions/{revision}/validate', { params: { path } }))
        }
      />
      <Edit
        label="Edit draft"
        consequence="It must be validated again."
        fields={REVISION_FIELDS}
        command={(changes) => ['draft', source_id, ...flagsOf(changes)]}
        load={async () => {
          const current = await versionedBodyOf(
            api.GET('/v1/sources/{source_id}/revisions/{revision}', { params: { path } }),
          );
          return { draft: valuesOfRevision(current.body), etag: current.etag };
        }}
        save={(body, current) =>
          bodyOf(
            api.PATCH('/v1/sources/{source_id}/revisions/{revision}', {
              params: { path, header: { 'if-match': current } },
              body,
            }),
          )
        }
      />
      {source.revisions.length > 1 && (
        <Action
          label="Delete draft"
          command={['delete', 'source', source_id, '--revision', String(revision), '--yes']}
          confirm={{ consequence: 'The other revisions stay as they are.' }}
          run={() =>
            bodyOf(
              api.DELETE('/v1/sources/{source_id}/revisions/{revision}', {
                params: { path, header: { 'if-match': etag } },
              }),
            )
          }
        />
      )}
    </Group>
  );
}

function flagsOf(changes: Partial<Values>): readonly string[] {
  return Object.entries(changes).flatMap(([name, value = '']) => [`--${name.replaceAll('_', '-')}`, value]);
}

function Activate({
  source: { source_id },
  revision: { revision, fingerprint, detected_scope },
}: RevisionProps) {
  const [expected, setExpected] = useState('');
  return (
    <Action
      label="Activate"
      isPrimary
      command={['activate', source_id, '--expect-scope', expected]}
      onOpen={() => setExpected('')}
      confirm={{
        asksReason: true,
        consequence: (
          <>
            <Text size="sm" mb="xs">
              Tokens of this cluster are accepted from then on, by the policies that are bound to this
              revision. An active revision of the source is replaced.
            </Text>
            <Facts
              rows={[
                ['Detected scope', <UntrustedText key="scope" value={detected_scope ?? ''} />],
                ['Fingerprint', <Id key="fingerprint" value={fingerprint ?? ''} />],
              ]}
            />
          </>
        ),
        fields: (
          <TextInput
            label="Scope of the intended cluster"
            description="Host and path of its issuer. Type it from what you know of the cluster."
            value={expected}
            onChange={({ currentTarget }) => setExpected(currentTarget.value)}
            autoComplete="off"
            required
            data-autofocus
            {...(expected === '' || expected === detected_scope
              ? {}
              : { error: 'This is not the detected scope' })}
          />
        ),
      }}
      run={(query) =>
        bodyOf(
          api.POST('/v1/sources/{source_id}/revisions/{revision}/activate', {
            params: { path: { source_id, revision }, query },
            body: { expected_scope: expected },
          }),
        )
      }
    />
  );
}
