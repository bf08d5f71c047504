/** Creating, changing and deleting routes and their sources. */
import {
  Button,
  Fieldset,
  Group,
  JsonInput,
  NumberInput,
  Select,
  SimpleGrid,
  Stack,
  TextInput,
} from '@mantine/core';
import { useState } from 'react';
import { ApiError, api, bodyOf, type Schemas, versionedBodyOf } from '../api/client';
import { nameWord } from '../api/ctl-command';
import { useSite } from '../api/session';
import { Action } from '../parts/action';
import { EditForm } from '../parts/edit-form';
import { AsSiteFile } from '../parts/site-file';

type Definition = Schemas['RouteDefinition'];
type Source = Schemas['RouteSources']['allowed_sources'][number];

/** Members that have a field of their own; the others are edited as JSON. */
interface DefinitionDraft {
  readonly method: string;
  readonly path_template: string;
  readonly audience: string;
  readonly freshness_class: string;
  readonly max_staleness_seconds: number | undefined;
  readonly resource: string;
  readonly others: string;
}

const NEW: DefinitionDraft = {
  method: 'GET',
  path_template: '',
  audience: '',
  freshness_class: 'bounded',
  max_staleness_seconds: 30,
  resource: '',
  others: '{}',
};

function draftOf(definition: Definition): DefinitionDraft {
  const { method, path_template, audience, freshness_class, max_staleness_seconds, resource, ...others } =
    definition;
  return {
    method,
    path_template,
    audience,
    freshness_class,
    max_staleness_seconds,
    resource: resource ?? '',
    others: JSON.stringify(others, null, 2),
  };
}

/** @throws Error when the JSON is no object */
function definitionOf({ others, resource, max_staleness_seconds, ...members }: DefinitionDraft): Definition {
  const staleness = members.freshness_class === 'bounded' ? max_staleness_seconds : undefined;
  return {
    ...(parsed(others) as Pick<Definition, 'body' | 'forward_authorization'>),
    ...members,
    ...(resource === '' ? {} : { resource }),
    ...(staleness === undefined ? {} : { max_staleness_seconds: staleness }),
  };
}

function parsed(text: string): object {
  try {
    const value: unknown = JSON.parse(text === '' ? '{}' : text);
    if (typeof value === 'object' && value !== null && !Array.isArray(value)) return value;
  } catch {
    // Told below.
  }
  throw new Error('Other members must be a JSON object');
}

const METHODS = ['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS'];

interface FieldsProps<D> {
  readonly draft: D;
  readonly change: (changes: Partial<D>) => void;
}

function DefinitionFields({ draft, change }: FieldsProps<DefinitionDraft>) {
  const isBounded = draft.freshness_class === 'bounded';
  return (
    <>
      <SimpleGrid cols={{ base: 1, sm: 2 }}>
        <Select
          label="Method"
          data={[...new Set([...METHODS, draft.method])]}
          value={draft.method}
          allowDeselect={false}
          onChange={(method) => change({ method: method ?? draft.method })}
        />
        <TextInput
          label="Path template"
          description="{name} stands for one segment."
          placeholder="/v1/orders/{order_id}"
          value={draft.path_template}
          onChange={({ currentTarget }) => change({ path_template: currentTarget.value })}
          required
        />
        <TextInput
          label="Audience"
          description="The API that passports are for."
          placeholder="https://api.shop.example"
          value={draft.audience}
          onChange={({ currentTarget }) => change({ audience: currentTarget.value })}
          required
        />
        <TextInput
          label="Resource"
          description="What clients are granted. Empty: the route ID."
          placeholder="orders"
          value={draft.resource}
          onChange={({ currentTarget }) => change({ resource: currentTarget.value })}
        />
        <Select
          label="Freshness"
          description="How old the verifier's bundle may be."
          data={[
            { value: 'realtime', label: 'realtime: a few seconds' },
            { value: 'bounded', label: 'bounded: as long as you say' },
          ]}
          value={draft.freshness_class}
          allowDeselect={false}
          onChange={(next) => change({ freshness_class: next ?? draft.freshness_class })}
        />
        {isBounded && (
          <NumberInput
            label="Greatest age in seconds"
            description="Then the route denies, until the verifier reaches Control."
            value={draft.max_staleness_seconds ?? ''}
            min={1}
            onChange={(next) => change({ max_staleness_seconds: next === '' ? undefined : Number(next) })}
            required
          />
        )}
      </SimpleGrid>
      <JsonInput
        label="Other members"
        description="As in a bundle, such as signed_headers, required_context, body."
        autosize
        minRows={2}
        formatOnBlur
        validationError="not JSON"
        value={draft.others}
        onChange={(others) => change({ others })}
      />
    </>
  );
}

interface SourceDraft {
  readonly issuer: string;
  readonly trust_domain: string;
  readonly match: 'prefix' | 'exact';
  readonly subject: string;
  readonly required_key_binding: Source['required_key_binding'];
}

function sourceDraftOf({
  subject_exact,
  subject_prefix,
  issuer,
  trust_domain,
  required_key_binding,
}: Source): SourceDraft {
  return {
    issuer,
    trust_domain,
    required_key_binding,
    match: subject_exact === undefined ? 'prefix' : 'exact',
    subject: subject_exact ?? subject_prefix ?? '',
  };
}

function sourceOf({ match, subject, ...members }: SourceDraft): Source {
  return { ...members, ...(match === 'exact' ? { subject_exact: subject } : { subject_prefix: subject }) };
}

/** The clients of the site. */
function ownSource({ issuer_url, trust_domain }: Schemas['Site']): SourceDraft {
  return {
    issuer: issuer_url,
    trust_domain,
    match: 'prefix',
    subject: 'client:',
    required_key_binding: 'software',
  };
}

interface SourcesDraft {
  readonly sources: readonly SourceDraft[];
}

function SourcesFields({ draft: { sources }, change }: FieldsProps<SourcesDraft>) {
  const site = useSite();
  const replace = (index: number, changes: Partial<SourceDraft>) =>
    change({ sources: sources.map((each, at) => (at === index ? { ...each, ...changes } : each)) });
  return (
    <Stack>
      {sources.map((source, index) => (
        // biome-ignore lint/suspicious/noArrayIndexKey: a row is its place; its values change as one types
        <Fieldset key={index} legend={`Source ${index + 1}`}>
          <SimpleGrid cols={{ base: 1, sm: 2 }}>
            <TextInput
              label="Issuer"
              value={source.issuer}
              onChange={({ currentTarget }) => replace(index, { issuer: currentTarget.value })}
              required
            />
            <TextInput
              label="Trust domain"
              value={source.trust_domain}
              onChange={({ currentTarget }) => replace(index, { trust_domain: currentTarget.value })}
              required
            />
            <Select
              label="Subjects"
              data={[
                { value: 'prefix', label: 'that begin with' },
                { value: 'exact', label: 'exactly' },
              ]}
              value={source.match}
              allowDeselect={false}
              onChange={(next) => replace(index, { match: next === 'exact' ? 'exact' : 'prefix' })}
            />
            <TextInput
              label="Subject"
              value={source.subject}
              onChange={({ currentTarget }) => replace(index, { subject: currentTarget.value })}
              required
            />
            <Select
              label="Key binding"
              description="The weakest class that is enough."
              data={['software', 'attested_workload'] satisfies Source['required_key_binding'][]}
              value={source.required_key_binding}
              allowDeselect={false}
              onChange={(next) =>
                replace(index, {
                  required_key_binding: next === 'attested_workload' ? 'attested_workload' : 'software',
                })
              }
            />
          </SimpleGrid>
          <Group justify="flex-end" mt="sm">
            <Button
              variant="subtle"
              size="compact-sm"
              color="red"
              onClick={() => change({ sources: sources.filter((_, at) => at !== index) })}
            >
              Remove source {index + 1}
            </Button>
          </Group>
        </Fieldset>
      ))}
      <Button
        variant="default"
        size="compact-sm"
        onClick={() => change({ sources: [...sources, ownSource(site)] })}
      >
        Add source
      </Button>
    </Stack>
  );
}

export function CreateRoute({ label = 'Create route' }: { readonly label?: string }) {
  const site = useSite();
  const { site_id } = site;
  const [id, setId] = useState('');
  const [draft, setDraft] = useState(NEW);
  const [sources, setSources] = useState<SourcesDraft>({ sources: [ownSource(site)] });
  const [isCreated, setCreated] = useState(false);
  const allowed_sources = sources.sources.map(sourceOf);
  return (
    <Action
      label={label}
      confirm={{
        consequence:
          'A route lets requests through. A caller must match one of its sources; a client needs a grant for its resource, too.',
        fields: (
          <>
            <TextInput
              label="Route ID"
              description="Fixed once it exists."
              placeholder="orders-read"
              value={id}
              onChange={({ currentTarget }) => {
                setId(currentTarget.value);
                setCreated(false);
              }}
              required
              data-autofocus
            />
            <DefinitionFields draft={draft} change={(changes) => setDraft({ ...draft, ...changes })} />
            <SourcesFields draft={sources} change={(changes) => setSources({ ...sources, ...changes })} />
            <AsSiteFile
              member="routes"
              value={{ route_id: id, ...siteFileMembers(draft), allowed_sources }}
            />
          </>
        ),
      }}
      run={async () => {
        const path = { site_id, route_id: id };
        if (!isCreated) {
          const body = { route_id: id, definition: definitionOf(draft) };
          await bodyOf(api.POST('/v1/sites/{site_id}/routes', { params: { path: { site_id } }, body }));
          // The sources may be rejected: then only they are sent again.
          setCreated(true);
        }
        if (allowed_sources.length > 0) {
          await bodyOf(
            api.PUT('/v1/sites/{site_id}/routes/{route_id}/sources', {
              params: { path },
              body: { allowed_sources },
            }),
          );
        }
      }}
      onDone={() => {
        setId('');
        setDraft(NEW);
        setSources({ sources: [ownSource(site)] });
        setCreated(false);
      }}
    />
  );
}

function siteFileMembers(draft: DefinitionDraft): object {
  try {
    return definitionOf(draft);
  } catch {
    return {};
  }
}

export function EditRoute({ site_id, route_id }: Schemas['Route']) {
  const path = { site_id, route_id };
  return (
    <EditForm<DefinitionDraft>
      label="Edit"
      title={`Route ${route_id}`}
      load={async () => {
        const { body, etag } = await versionedBodyOf(
          api.GET('/v1/sites/{site_id}/routes/{route_id}', { params: { path } }),
        );
        return { draft: draftOf(body.definition), etag };
      }}
      fields={(draft, change) => <DefinitionFields draft={draft} change={change} />}
      save={(draft, etag) =>
        bodyOf(
          api.PUT('/v1/sites/{site_id}/routes/{route_id}', {
            params: { path, header: { 'if-match': etag } },
            body: { definition: definitionOf(draft) },
          }),
        )
      }
    />
  );
}

export function EditSources({ site_id, route_id }: Schemas['Route']) {
  const path = { site_id, route_id };
  const url = '/v1/sites/{site_id}/routes/{route_id}/sources';
  return (
    <EditForm<SourcesDraft>
      label="Sources"
      title={`Sources of route ${route_id}`}
      load={async () => {
        try {
          const { body, etag } = await versionedBodyOf(api.GET(url, { params: { path } }));
          return { draft: { sources: body.allowed_sources.map(sourceDraftOf) }, etag };
        } catch (error) {
          if (!(error instanceof ApiError) || error.status !== 404) throw error;
          return { draft: { sources: [] }, etag: '' };
        }
      }}
      fields={(draft, change) => <SourcesFields draft={draft} change={change} />}
      save={({ sources }, etag) => {
        const header = etag === '' ? {} : { header: { 'if-match': etag } };
        return sources.length === 0 && etag !== ''
          ? bodyOf(api.DELETE(url, { params: { path, header: { 'if-match': etag } } }))
          : bodyOf(
              api.PUT(url, {
                params: { path, ...header },
                body: { allowed_sources: sources.map(sourceOf) },
              }),
            );
      }}
    />
  );
}

export function DeleteRoute({ site_id, route_id, version, definition }: Schemas['Route']) {
  return (
    <Action
      label="Delete"
      command={['delete', 'route', nameWord(route_id), '--site', site_id, '--yes']}
      confirm={{
        name: route_id,
        consequence: `For good, with its sources. ${definition.method} ${definition.path_template} is denied as soon as each target has the next revision.`,
      }}
      run={() =>
        bodyOf(
          api.DELETE('/v1/sites/{site_id}/routes/{route_id}', {
            params: { path: { site_id, route_id }, header: { 'if-match': `"${version}"` } },
          }),
        )
      }
    />
  );
}
