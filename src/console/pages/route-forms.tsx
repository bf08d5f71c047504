/** Creating, changing and deleting routes. */
import { JsonInput, NumberInput, Select, SimpleGrid, TextInput } from '@mantine/core';
import { useState } from 'react';
import { api, bodyOf, type Schemas, versionedBodyOf } from '../api/client';
import { nameWord } from '../api/ctl-command';
import { useSite } from '../api/session';
import { Action } from '../parts/action';
import { EditForm } from '../parts/edit';
import { ObserveFields } from '../parts/observe-fields';
import { type ProofFormat, ProofFormatsField } from '../parts/proof-formats';
import { UntrustedText } from '../parts/values';
import {
  declaredRoute,
  ownRule,
  putRules,
  type RulesDraft,
  RulesFields,
  readRules,
  ruleOf,
  type SourceRule,
} from './route-rules';

type Definition = Schemas['RouteDefinition'];
type Enforcement = NonNullable<Definition['enforcement']>;

/** Members with their own form field; the others are edited as JSON. */
interface DefinitionDraft {
  readonly method: string;
  readonly path_template: string;
  readonly audience: string;
  readonly freshness_class: string;
  readonly max_staleness_seconds: number | undefined;
  readonly resource: string;
  /** Empty: as without the member. */
  readonly accepted_proofs: readonly ProofFormat[];
  readonly enforcement: Enforcement;
  readonly observe_until: string;
  readonly others: string;
}

const NEW: DefinitionDraft = {
  method: 'GET',
  path_template: '',
  audience: '',
  freshness_class: 'bounded',
  max_staleness_seconds: 30,
  resource: '',
  accepted_proofs: [],
  enforcement: 'enforce',
  observe_until: '',
  others: '{}',
};

function draftOf(definition: Definition): DefinitionDraft {
  const { method, path_template, audience, freshness_class, max_staleness_seconds, resource, ...rest } =
    definition;
  const { accepted_proofs = [], enforcement = 'enforce', observe_until = '', ...others } = rest;
  return {
    method,
    path_template,
    audience,
    freshness_class,
    max_staleness_seconds,
    resource: resource ?? '',
    accepted_proofs,
    enforcement,
    observe_until,
    others: JSON.stringify(others, null, 2),
  };
}

/** @throws Error when the JSON is not an object */
function definitionOf({
  accepted_proofs,
  enforcement,
  observe_until,
  others,
  resource,
  max_staleness_seconds,
  ...members
}: DefinitionDraft): Definition {
  const staleness = members.freshness_class === 'bounded' ? max_staleness_seconds : undefined;
  return {
    ...(parsed(others) as Pick<Definition, 'body' | 'forward_authorization'>),
    ...members,
    ...(resource === '' ? {} : { resource }),
    ...(staleness === undefined ? {} : { max_staleness_seconds: staleness }),
    ...(accepted_proofs.length === 0 ? {} : { accepted_proofs: [...accepted_proofs] }),
    ...(enforcement === 'observe' ? { enforcement, observe_until } : {}),
  };
}

function parsed(text: string): object {
  try {
    const value: unknown = JSON.parse(text === '' ? '{}' : text);
    if (typeof value === 'object' && value !== null && !Array.isArray(value)) return value;
  } catch {
    // The error below covers this case.
  }
  throw new Error('Other members must be a JSON object');
}

const METHODS = ['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS'];

interface FieldsProps {
  readonly draft: DefinitionDraft;
  readonly change: (changes: Partial<DefinitionDraft>) => void;
}

function DefinitionFields({ draft, change }: FieldsProps) {
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
        <ObserveFields
          label="Enforcement"
          description="Observed: denied requests pass, without identity."
          otherwise="enforce: deny what is not verified"
          isObserved={draft.enforcement === 'observe'}
          until={draft.observe_until}
          change={({ isObserved, until }) =>
            change({
              ...(isObserved === undefined ? {} : { enforcement: isObserved ? 'observe' : 'enforce' }),
              ...(until === undefined ? {} : { observe_until: until }),
            })
          }
        />
      </SimpleGrid>
      <ProofFormatsField
        formats={draft.accepted_proofs}
        change={(accepted_proofs) => change({ accepted_proofs })}
      />
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

export function CreateRoute({ label = 'Create route' }: { readonly label?: string }) {
  const site = useSite();
  const { site_id } = site;
  const [id, setId] = useState('');
  const [draft, setDraft] = useState(NEW);
  const [rules, setRules] = useState<RulesDraft>({ rules: [ownRule(site)] });
  const [isCreated, setCreated] = useState(false);
  const allowed_sources = rules.rules.map(ruleOf);
  return (
    <Action
      label={label}
      command={declaredRoute({ route_id: id, ...siteFileMembers(draft), allowed_sources })}
      confirm={{
        asksReason: true,
        consequence:
          'A route lets requests through. A caller must match one of its source rules; a client needs a grant for its resource, too.',
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
            <RulesFields draft={rules} change={setRules} />
          </>
        ),
      }}
      run={async (query) => {
        const path = { site_id, route_id: id };
        if (!isCreated) {
          const body = { route_id: id, definition: definitionOf(draft) };
          const params = { path: { site_id }, query };
          await bodyOf(api.POST('/v1/sites/{site_id}/routes', { params, body }));
          // If the rules are rejected, only the rules are sent again.
          setCreated(true);
        }
        // The rules may already exist, because the answer may have been lost.
        const etag = isCreated ? (await readRules(path)).etag : undefined;
        if (allowed_sources.length > 0) await putRules(path, allowed_sources, etag, query);
      }}
      onDone={() => {
        setId('');
        setDraft(NEW);
        setRules({ rules: [ownRule(site)] });
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

interface RouteDraft extends DefinitionDraft {
  /** Rules for the site file, which lists them with the route. */
  readonly allowed_sources: readonly SourceRule[];
}

export function EditRoute({ site_id, route_id }: Schemas['Route']) {
  const path = { site_id, route_id };
  return (
    <EditForm<RouteDraft>
      consequence={
        <>
          Route <UntrustedText value={route_id} />: requests are judged by the new definition as soon as each
          target has the next revision.
        </>
      }
      command={(_, { allowed_sources, ...draft }) =>
        declaredRoute({ route_id, ...siteFileMembers(draft), allowed_sources })
      }
      load={async () => {
        const [{ body, etag }, { rules }] = await Promise.all([
          versionedBodyOf(api.GET('/v1/sites/{site_id}/routes/{route_id}', { params: { path } })),
          readRules(path),
        ]);
        return { draft: { ...draftOf(body.definition), allowed_sources: rules }, etag };
      }}
      labels={[{ name: 'allowed_sources', label: 'source rules' }]}
      fields={(draft, change) => <DefinitionFields draft={draft} change={change} />}
      asksReason
      save={({ allowed_sources: _, ...draft }, etag, __, query) =>
        bodyOf(
          api.PUT('/v1/sites/{site_id}/routes/{route_id}', {
            params: { path, query, header: { 'if-match': etag } },
            body: { definition: definitionOf(draft) },
          }),
        )
      }
    />
  );
}

export function DeleteRoute({ site_id, route_id, version, definition }: Schemas['Route']) {
  return (
    <Action
      label="Delete"
      command={['delete', 'route', nameWord(route_id), '--site', site_id, '--yes']}
      confirm={{
        finalFor: route_id,
        asksReason: true,
        consequence: `For good, with its source rules. ${definition.method} ${definition.path_template} is denied as soon as each target has the next revision.`,
      }}
      run={(query) =>
        bodyOf(
          api.DELETE('/v1/sites/{site_id}/routes/{route_id}', {
            params: { path: { site_id, route_id }, query, header: { 'if-match': `"${version}"` } },
          }),
        )
      }
    />
  );
}
