/** Creating, changing and removing OAuth issuers, and ending the tokens of one. */
import { useState } from 'react';
import { api, bodyOf, type Schemas, versionedBodyOf } from '../api/client';
import { nameWord } from '../api/ctl-command';
import { useSite } from '../api/session';
import { Action, type Because } from '../parts/action';
import type { Command } from '../parts/command';
import { AdmitsMore, EditForm } from '../parts/edit';
import { bodyOfValues, type Field, Fields, type Values } from '../parts/fields';
import { UntrustedText } from '../parts/values';

type OAuthIssuer = Schemas['OAuthIssuer'];
type Definition = Schemas['OAuthIssuerDefinition'];

/** The rules of `readIssuerUrl` and `readKeySetUrl` of Control that are mistaken most often. */
function urlFault(url: string, forbidden: RegExp): string | undefined {
  if (url === '' || (/^https:\/\/[^\s/]/.test(url) && !forbidden.test(url))) return undefined;
  return 'must be an https URL without fragment, an issuer also without query';
}

function timeFault(time: string): string | undefined {
  const isTime = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ$/.test(time) && !Number.isNaN(Date.parse(time));
  return time === '' || isTime ? undefined : 'must be a time in UTC, such as 2026-12-12T00:00:00Z';
}

const ISSUER: Field = {
  name: 'issuer',
  label: 'Issuer',
  description: 'iss of its access tokens, exactly. Fixed once it exists.',
  placeholder: 'https://login.shop.example/realms/shop',
  faultOf: (issuer) => urlFault(issuer, /[?#]/),
};
const NOT_BEFORE: Field = {
  name: 'not_before',
  label: 'Tokens count from',
  description: 'UTC. Tokens that were issued before are denied.',
  placeholder: '2026-12-12T00:00:00Z',
  faultOf: timeFault,
};
const TOKEN_TYPES = [
  { value: '', label: 'at+jwt: access tokens alone' },
  { value: 'JWT', label: 'JWT: the server writes no other' },
  { value: 'at+jwt JWT', label: 'at+jwt and JWT' },
];

/** Claims that name the client also in tokens of its users. */
const CLAIMS_OF_CLIENTS = ['client_id', 'azp'];

/** Fields of a definition. @param values of them, because one depends on another */
function fieldsOf({ subject_claim: claim = '' }: Values): readonly Field[] {
  return [
    {
      name: 'trust_domain',
      label: 'Trust domain',
      description: 'Of its callers, for the caller rules of routes.',
      placeholder: 'shop.example',
    },
    {
      name: 'subject_claim',
      label: 'Claim of the subject',
      description: `Caller rules name callers ${claim || 'sub'}:VALUE. Empty: sub.`,
      suggestions: ['sub', ...CLAIMS_OF_CLIENTS],
      isOptional: true,
    },
    {
      name: 'service_marker',
      label: 'Service marker',
      description:
        'claim=value that only tokens of client credentials have. Others are denied. client_id and azp need it: their tokens may be those of users.',
      placeholder: 'gty=client-credentials',
      isOptional: !CLAIMS_OF_CLIENTS.includes(claim),
      faultOf: (marker) => (marker === '' || /^[^=]+=./.test(marker) ? undefined : 'must be claim=value'),
    },
    {
      name: 'token_types',
      label: 'Token types',
      description: 'typ of its access tokens. Keycloak and others write JWT unless set up otherwise.',
      options: TOKEN_TYPES,
      isOptional: true,
    },
    {
      name: 'context_claims',
      label: 'Context claims',
      description: 'Claims that routes may require, between commas.',
      placeholder: 'scope',
      isOptional: true,
    },
    {
      name: 'max_token_ttl_seconds',
      label: 'Longest lifetime of a token, in seconds',
      description: '1 to 3600. Tokens that live longer are denied. Empty: 300.',
      isNumber: true,
      isOptional: true,
    },
    {
      name: 'jwks_url',
      label: 'URL of its key set',
      description: 'Empty: as its metadata says.',
      isOptional: true,
      faultOf: (url) => urlFault(url, /#/),
    },
    { ...NOT_BEFORE, description: `${NOT_BEFORE.description} Empty: all count.`, isOptional: true },
  ];
}

/** Control checks it. */
function definitionOf(values: Values): Definition {
  const { context_claims, service_marker, token_types, ...members } = bodyOfValues(fieldsOf(values), values);
  const [claim, ...value] = String(service_marker ?? '').split('=');
  return {
    ...members,
    ...(service_marker === undefined ? {} : { service_marker: { claim, value: value.join('=') } }),
    ...(token_types === undefined ? {} : { token_types: String(token_types).split(' ') }),
    ...(context_claims === undefined ? {} : { context_claims: namesIn(String(context_claims)) }),
  } as Definition;
}

function valuesOf({
  context_claims,
  max_token_ttl_seconds,
  service_marker,
  token_types,
  ...texts
}: Definition): Values {
  const types = ['at+jwt', 'JWT'].filter((type) =>
    (token_types as readonly string[] | undefined)?.includes(type),
  );
  return {
    ...texts,
    context_claims: (context_claims ?? []).join(', '),
    max_token_ttl_seconds: String(max_token_ttl_seconds ?? ''),
    service_marker: markerText(service_marker),
    token_types: types.join(' ') === 'at+jwt' ? '' : types.join(' '),
  };
}

export function markerText(marker: Definition['service_marker']): string {
  return marker === undefined ? '' : `${marker.claim}=${marker.value}`;
}

function namesIn(text: string): string[] {
  return text.split(/[\s,]+/).filter((name) => name !== '');
}

function declared(issuer: string, definition: Definition): Command {
  return { siteFile: { oauth_issuers: [{ issuer, ...definition }] } };
}

/** @param etag of the version that is replaced; undefined for a new issuer */
function put({ site_id, issuer }: Path, definition: Definition, etag: string | undefined, query: Because) {
  const header = etag === undefined ? {} : { 'if-match': etag };
  const params = { path: { site_id, issuer }, query, header };
  return bodyOf(api.PUT('/v1/sites/{site_id}/oauth-issuers/{issuer}', { params, body: { definition } }));
}

type Path = Pick<OAuthIssuer, 'site_id' | 'issuer'>;

export function CreateOAuthIssuer() {
  const { site_id } = useSite();
  const [values, setValues] = useState<Values>({});
  const { issuer = '' } = values;
  return (
    <Action
      label="Create OAuth issuer"
      isPrimary
      onOpen={() => setValues({})}
      command={declared(issuer, definitionOf(values))}
      confirm={{
        asksReason: true,
        consequence:
          'Its access tokens count beside a DPoP proof, on routes that accept dpop and have a caller rule for its callers. Control fetches its keys.',
        fields: <Fields fields={[ISSUER, ...fieldsOf(values)]} values={values} onChange={setValues} />,
      }}
      run={(because) => put({ site_id, issuer }, definitionOf(values), undefined, because)}
    />
  );
}

export function EditOAuthIssuer(item: OAuthIssuer) {
  const { site_id, issuer } = item;
  return (
    <EditForm<Values>
      consequence={
        <>
          OAuth issuer <UntrustedText value={issuer} />: tokens are judged by the new definition as soon as
          each target has the next revision. Control fetches its keys again.
        </>
      }
      command={(_, values) => declared(issuer, definitionOf(values))}
      load={async () => {
        const path = { site_id, issuer };
        const { body, etag } = await versionedBodyOf(
          api.GET('/v1/sites/{site_id}/oauth-issuers/{issuer}', { params: { path } }),
        );
        return { draft: valuesOf(body.definition), etag };
      }}
      labels={fieldsOf({})}
      fields={(values, change) => <Fields fields={fieldsOf(values)} values={values} onChange={change} />}
      asksReason
      admits={admittedBy}
      save={(values, etag, _, because) => put(item, definitionOf(values), etag, because)}
    />
  );
}

/** What was denied before, and is not any more. */
function admittedBy(now: Values, draft: Values) {
  const types = namesIn(draft.token_types || 'at+jwt');
  const added = types.filter((type) => !namesIn(now.token_types || 'at+jwt').includes(type));
  const isLater = (now.not_before ?? '') > (draft.not_before ?? '');
  return [
    ...added.map((type) => ({ key: type, shown: `tokens of the type ${type}` })),
    ...(now.service_marker && !draft.service_marker
      ? [{ key: 'marker', shown: 'tokens without the service marker' }]
      : []),
    ...(isLater ? [{ key: 'time', shown: `tokens issued before ${now.not_before}` }] : []),
  ];
}

const timeText = (time: Date) => `${time.toISOString().slice(0, 19)}Z`;

/** Of two times in UTC with whole seconds. */
function laterOf(one: string | undefined, other: string): string {
  return one !== undefined && one > other ? one : other;
}

/** The way to end all tokens of an authorization server that was compromised. Tokens that were ended before stay so by default. */
export function EndTokens(item: OAuthIssuer) {
  const { definition, issuer, version } = item;
  const [values, setValues] = useState<Values>({});
  const changed = { ...definition, ...values };
  return (
    <Action
      label="End tokens"
      command={declared(issuer, changed)}
      onOpen={() => setValues({ not_before: laterOf(definition.not_before, timeText(new Date())) })}
      confirm={{
        submit: 'End all tokens issued before',
        asksReason: true,
        consequence: (
          <>
            Tokens of <UntrustedText value={issuer} /> that were issued before this time are denied as soon as
            each target has the next revision. Its callers need new ones.
          </>
        ),
        fields: (
          <>
            <Fields fields={[NOT_BEFORE]} values={values} onChange={setValues} />
            <AdmitsMore admitted={admittedBy(valuesOf(definition), valuesOf(changed))} />
          </>
        ),
      }}
      run={(because) => put(item, changed, `"${version}"`, because)}
    />
  );
}

export function RemoveOAuthIssuer({ site_id, issuer, version }: OAuthIssuer) {
  return (
    <Action
      label="Remove"
      command={['delete', 'oauth-issuers', nameWord(issuer), '--site', site_id, '--yes']}
      confirm={{
        finalFor: issuer,
        asksReason: true,
        consequence: 'All its tokens are denied as soon as each target has the next revision.',
      }}
      run={(query) =>
        bodyOf(
          api.DELETE('/v1/sites/{site_id}/oauth-issuers/{issuer}', {
            params: { path: { site_id, issuer }, query, header: { 'if-match': `"${version}"` } },
          }),
        )
      }
    />
  );
}
