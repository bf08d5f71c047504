/** The Trust Anchor Sources of a site: the clusters whose tokens identify workloads. */
import { Anchor, Group, Text } from '@mantine/core';
import { Link, useNavigate } from '@tanstack/react-router';
import { useState } from 'react';
import { api, bodyOf, type Schemas } from '../api/client';
import { useMay, useSite } from '../api/session';
import { useSources } from '../api/site-lists';
import { Action } from '../parts/action';
import { AsCommand } from '../parts/command';
import { Edit } from '../parts/edit';
import { bodyOfValues, type Field, Fields, type Values } from '../parts/fields';
import { List, PAGE_ITEMS } from '../parts/list';
import { Empty, Page } from '../parts/page';
import { State, UntrustedText } from '../parts/values';
import { changeSite, declaredSite, readSite } from './site-forms';
import { holdsSlot, REVISION_FIELDS, SOURCE_FIELDS } from './source-fields';

type Source = Schemas['Source'];

export default function Sources() {
  const { site_id } = useSite();
  const mayOperate = useMay('operate');
  return (
    <Page
      title="Sources"
      question="Which clusters prove who a workload is?"
      actions={mayOperate && <CreateSource />}
    >
      <Capacity />
      <List<Source>
        name="sources"
        queryKey={['site', site_id, 'sources']}
        fetch={(cursor) =>
          bodyOf(
            api.GET('/v1/sites/{site_id}/sources', {
              params: {
                path: { site_id },
                query: { limit: PAGE_ITEMS, ...(cursor === undefined ? {} : { cursor }) },
              },
            }),
          )
        }
        idOf={({ source_id }) => source_id}
        columns={[
          {
            title: 'Source',
            text: ({ display_name }) => display_name,
            cell: ({ source_id, display_name }) => (
              <Anchor
                component={Link}
                to={`/sites/${encodeURIComponent(site_id)}/sources/${source_id}`}
                size="sm"
              >
                <UntrustedText value={display_name} />
              </Anchor>
            ),
          },
          {
            title: 'Revisions',
            text: ({ revisions }) =>
              living(revisions)
                .map(({ state }) => state)
                .join(' '),
            cell: ({ revisions }) =>
              living(revisions).map(({ revision, state, waiting_for }) => (
                <Group key={revision} gap={6}>
                  {revision} <State value={state} />
                  {waiting_for !== undefined && (
                    <Text size="xs">
                      waits for{' '}
                      {waiting_for.map(({ target_id, name }) => (
                        <UntrustedText key={target_id} value={`${name} `} />
                      ))}
                    </Text>
                  )}
                </Group>
              )),
          },
          {
            title: 'Issuer',
            text: ({ revisions }) => revisions.at(-1)?.issuer ?? '',
            cell: ({ revisions }) => <UntrustedText value={revisions.at(-1)?.issuer ?? ''} />,
          },
          {
            title: 'Audience',
            text: ({ revisions }) => revisions.at(-1)?.audience ?? '',
            cell: ({ revisions }) => <UntrustedText value={revisions.at(-1)?.audience ?? ''} />,
          },
        ]}
        empty={
          <Empty>
            No cluster is trusted yet.{' '}
            {mayOperate
              ? 'Create a source with the issuer of your cluster.'
              : 'An operator can create a source.'}
          </Empty>
        }
      />
      <AsCommand words={['get', 'sources', '--site', site_id]} />
    </Page>
  );
}

/** Includes retired revisions only if there are no others. */
function living(revisions: Source['revisions']): Source['revisions'] {
  const found = revisions.filter(({ state }) => state !== 'retired');
  return found.length > 0 ? found : revisions.slice(-1);
}

const CAPACITY: readonly Field[] = [{ name: 'source_capacity', label: 'Slots', isNumber: true }];

function Capacity() {
  const site = useSite();
  const { site_id, source_capacity } = site;
  const mayAdminister = useMay('administer');
  const sources = useSources(site_id);
  if (sources === undefined) return null;
  const used = sources.filter(({ revisions }) => revisions.some(holdsSlot)).length;
  return (
    <Group gap="sm">
      <Text size="sm" {...(used >= source_capacity ? { fw: 600 } : {})}>
        {used} of {source_capacity} slots are used.
        {used >= source_capacity && ' To activate another source, retire one or raise the capacity.'}
      </Text>
      {mayAdminister && (
        <Edit
          label="Change capacity"
          consequence="How many sources of the site can be in use at the same time: activating, publishing, active or suspended."
          fields={CAPACITY}
          command={(_, draft) => declaredSite({ ...site, ...bodyOfValues(CAPACITY, draft) })}
          load={async () => {
            const { body, etag } = await readSite(site_id);
            return { draft: { source_capacity: String(body.source_capacity) }, etag };
          }}
          // Control checks it.
          save={(body, etag) => changeSite(site_id, body as Schemas['SiteChange'], etag)}
        />
      )}
    </Group>
  );
}

const FIELDS = [...SOURCE_FIELDS.slice(0, 1), ...REVISION_FIELDS, ...SOURCE_FIELDS.slice(1)];
const DEFAULTS: Values = { discovery: 'checked', on_suspend: 'keep', on_retire: 'keep' };

function CreateSource() {
  const { site_id } = useSite();
  const navigate = useNavigate();
  const [values, setValues] = useState<Values>(DEFAULTS);
  const { display_name, ...rest } = bodyOfValues(FIELDS, values);
  return (
    <Action
      label="Create source"
      isPrimary
      command={{
        siteFile: {
          sources: [{ name: display_name, ...rest, expected_scope: values.issuer?.replace('https://', '') }],
        },
      }}
      onOpen={() => setValues(DEFAULTS)}
      confirm={{
        submit: 'Create draft',
        consequence: 'It begins as a draft. No token is accepted until it is validated and activated.',
        fields: <Fields fields={FIELDS} values={values} onChange={setValues} />,
      }}
      run={async () => {
        const { source_id } = await bodyOf(
          api.POST('/v1/sites/{site_id}/sources', {
            params: { path: { site_id } },
            // Control checks it.
            body: { kind: 'oidc_jwks', display_name, ...rest } as Schemas['SourceCreation'],
          }),
        );
        await navigate({ to: `/sites/${encodeURIComponent(site_id)}/sources/${source_id}` });
      }}
    />
  );
}
