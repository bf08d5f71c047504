/** The fields of a route's definition. */
import { Checkbox, JsonInput, NumberInput, Select, SimpleGrid, Stack, TextInput } from '@mantine/core';
import type { ChangeEvent } from 'react';
import type { Schemas } from '../api/client';
import { useFaults } from '../parts/fields';
import { ObserveFields } from '../parts/observe-fields';
import { type ProofFormat, ProofFormatsField } from '../parts/proof-formats';

type Definition = Schemas['RouteDefinition'];
type Enforcement = NonNullable<Definition['enforcement']>;
type Unbound = NonNullable<Definition['unbound']>[number];

/** Members with their own form field; the others are edited as JSON. */
export interface DefinitionDraft {
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
  /** Names between commas. */
  readonly signed_headers: string;
  readonly body: NonNullable<Definition['body']>;
  /** Without {@link ALWAYS_UNBOUND}. */
  readonly unbound: readonly Unbound[];
  readonly others: string;
}

/** A DPoP proof can bind neither, so `unbound` always has both. */
const ALWAYS_UNBOUND = ['route', 'site'] as const satisfies readonly Unbound[];
const OPTIONAL_UNBOUND = ['query', 'body', 'headers'] as const satisfies readonly Unbound[];
const UNBOUND_LABELS: Readonly<Record<(typeof OPTIONAL_UNBOUND)[number], string>> = {
  query: 'query: parameters of the URL',
  body: 'body: the content',
  headers: 'headers: those that other proofs must sign',
};

export const NEW: DefinitionDraft = {
  method: 'GET',
  path_template: '',
  audience: '',
  freshness_class: 'bounded',
  max_staleness_seconds: 30,
  resource: '',
  accepted_proofs: [],
  enforcement: 'enforce',
  observe_until: '',
  signed_headers: '',
  body: 'bound',
  unbound: [],
  others: '{}',
};

export function draftOf(definition: Definition): DefinitionDraft {
  const { method, path_template, audience, freshness_class, max_staleness_seconds, resource, ...rest } =
    definition;
  const { accepted_proofs = [], enforcement = 'enforce', observe_until = '', ...more } = rest;
  const { signed_headers = [], body = 'bound', unbound = [], ...others } = more;
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
    signed_headers: signed_headers.join(', '),
    body,
    unbound: optionalOf(unbound),
    others: JSON.stringify(others, null, 2),
  };
}

/** In the order of the form. */
function optionalOf(unbound: readonly string[]): readonly Unbound[] {
  return OPTIONAL_UNBOUND.filter((part) => unbound.includes(part));
}

function namesIn(signedHeaders: string): string[] {
  return signedHeaders.split(/[\s,]+/).filter((name) => name !== '');
}

/** @throws Error when the JSON is not an object */
export function definitionOf({
  accepted_proofs,
  body,
  enforcement,
  observe_until,
  others,
  resource,
  max_staleness_seconds,
  signed_headers,
  unbound,
  ...members
}: DefinitionDraft): Definition {
  const names = namesIn(signed_headers);
  const staleness = members.freshness_class === 'bounded' ? max_staleness_seconds : undefined;
  return {
    ...(parsed(others) as Pick<Definition, 'forward_authorization'>),
    ...members,
    ...(resource === '' ? {} : { resource }),
    ...(staleness === undefined ? {} : { max_staleness_seconds: staleness }),
    ...(accepted_proofs.length === 0 ? {} : { accepted_proofs: [...accepted_proofs] }),
    ...(enforcement === 'observe' ? { enforcement, observe_until } : {}),
    ...(names.length === 0 ? {} : { signed_headers: names }),
    ...(body === 'bound' ? {} : { body }),
    ...(accepted_proofs.includes('dpop') ? { unbound: [...ALWAYS_UNBOUND, ...unbound] } : {}),
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

const HEADER_NAME = /^[!#$%&'*+\-.^_`|~0-9a-z]{1,128}$/;
const METHODS = ['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS'];

interface FieldsProps {
  readonly draft: DefinitionDraft;
  readonly change: (changes: Partial<DefinitionDraft>) => void;
}

export function DefinitionFields({ draft, change }: FieldsProps) {
  const isBounded = draft.freshness_class === 'bounded';
  const faultAt = useFaults();
  const text = (name: 'path_template' | 'audience' | 'resource' | 'signed_headers') => ({
    value: draft[name],
    error: faultAt(name),
    onChange: ({ currentTarget }: ChangeEvent<HTMLInputElement>) => change({ [name]: currentTarget.value }),
  });
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
          {...text('path_template')}
          required
        />
        <TextInput
          label="Audience"
          description="The API that passports are for."
          placeholder="https://api.shop.example"
          {...text('audience')}
          required
        />
        <TextInput
          label="Resource"
          description="What clients are granted. Empty: the route ID."
          placeholder="orders"
          {...text('resource')}
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
        <TextInput
          label="Signed headers"
          description="Names that every proof must sign, between commas."
          placeholder="content-type, idempotency-key"
          {...text('signed_headers')}
          {...(namesIn(draft.signed_headers).every((name) => HEADER_NAME.test(name))
            ? {}
            : { error: 'must be names of headers in lower case, between commas' })}
          autoComplete="off"
        />
        <Select
          label="Body"
          description="Whether proofs cover the content."
          data={[
            { value: 'bound', label: 'bound: a changed body is denied' },
            { value: 'unbound', label: 'unbound: for streams and uploads' },
          ]}
          value={draft.body}
          allowDeselect={false}
          onChange={(next) => change({ body: next === 'unbound' ? 'unbound' : 'bound' })}
        />
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
      {draft.accepted_proofs.includes('dpop') && (
        <Checkbox.Group
          label="Unbound by DPoP"
          description="A DPoP proof is good for every route and site at its URL. What else may a request have that it does not cover?"
          error={
            namesIn(draft.signed_headers).length > 0 &&
            !draft.unbound.includes('headers') &&
            'DPoP signs no headers: check headers, or remove the signed headers'
          }
          value={[...draft.unbound]}
          onChange={(chosen) => change({ unbound: optionalOf(chosen) })}
        >
          <Stack gap="xs" mt="xs">
            {OPTIONAL_UNBOUND.map((part) => (
              <Checkbox key={part} value={part} label={UNBOUND_LABELS[part]} />
            ))}
          </Stack>
        </Checkbox.Group>
      )}
      <JsonInput
        label="Other members"
        description="As in a bundle, such as required_context, origins, upgrade."
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

export function siteFileMembers(draft: DefinitionDraft): object {
  try {
    return definitionOf(draft);
  } catch {
    return {};
  }
}
