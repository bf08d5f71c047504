/** Schemas of role grants, access tokens and audit events. Source: docs/control.md "Scope, permissions, secrets". */
import Type, { type Static } from 'typebox';
import { ROLES, SCOPE_KINDS } from '../control/domain/roles.ts';
import { displayText, givenId, identifier, moment, object, VERSIONED } from './members-contract.ts';

export const SCOPE = object(
  {
    kind: Type.Enum([...SCOPE_KINDS]),
    id: Type.Optional(identifier('The environment, fleet or site; absent for the installation.')),
  },
  'Scope',
  'Where a role holds: there, and below.',
);

const role = Type.Enum([...ROLES], {
  description:
    'viewer: read. approver: and decide enrollments. operator: and sources, policies, keys, clients, routes. admin: everything.',
});
const principal = Type.String({
  pattern: '^(?:oidc:[!-~]+\\|[^\\u0000-\\u001f\\u007f]+|group:[^\\u0000-\\u001f\\u007f]+)$',
  maxLength: 1024,
  description: '`oidc:<issuer>|<subject>`, or `group:<name>` as the identity provider tells groups.',
});

export const NEW_ROLE_GRANT = object({ principal, role, scope: SCOPE }, 'NewRoleGrant', undefined, {
  principal: 'group:platform',
  role: 'operator',
  scope: { kind: 'site', id: 'shop-eu-1' },
});

export const ROLE_GRANT = object(
  {
    role_grant_id: givenId('Names the grant.'),
    principal,
    role,
    scope: SCOPE,
    created_at: moment('When it was given.'),
    created_by: Type.String({ description: 'Who gave it.' }),
  },
  'RoleGrant',
);

export const NEW_ACCESS_TOKEN = object(
  {
    name: displayText('For people.'),
    role,
    scope: SCOPE,
    expires_at: Type.Optional(
      moment(
        'The token is of no use from this moment on. Default: never, or the end of the access token that creates it. It must not be later than that end.',
      ),
    ),
  },
  'NewAccessToken',
);

const ACCESS_TOKEN_MEMBERS = {
  access_token_id: givenId('Names the token.'),
  name: displayText('For people.'),
  role,
  scope: SCOPE,
  expires_at: Type.Optional(moment('The token is of no use from this moment on.')),
  ...VERSIONED,
};

export const ACCESS_TOKEN = object(ACCESS_TOKEN_MEMBERS, 'AccessToken');

export const ACCESS_TOKEN_WITH_SECRET = object(
  {
    ...ACCESS_TOKEN_MEMBERS,
    token: Type.Optional(Type.String({ description: 'Shown this once; absent when an answer is repeated.' })),
  },
  'AccessTokenWithSecret',
);

export const AUDIT_EVENT = object(
  {
    audit_event_id: givenId('Names the event.'),
    at: moment('When it happened.'),
    kind: Type.String({ description: 'proofgate.control.<resource>.<verb>' }),
    actor: Type.String({ description: 'Who did it.' }),
    resource: object({ kind: Type.String(), id: Type.String() }, 'AuditedResource'),
    environment_id: Type.Optional(Type.String()),
    fleet_id: Type.Optional(Type.String()),
    site_id: Type.Optional(Type.String()),
    before: Type.Optional(
      Type.Object({}, { description: 'The resource before; absent where it was not there.' }),
    ),
    after: Type.Optional(Type.Object({}, { description: 'The resource after; absent where it is gone.' })),
    request_id: Type.Optional(Type.String({ description: 'X-Request-Id of the request that did it.' })),
  },
  'AuditEvent',
);

export const AUDIT_FILTER = {
  environment_id: Type.Optional(identifier('Only what happened there.')),
  fleet_id: Type.Optional(identifier('Only what happened there.')),
  site_id: Type.Optional(identifier('Only what happened there.')),
  kind: Type.Optional(
    Type.String({
      pattern: '^[a-z_.]{1,128}$',
      description: 'Only this kind, such as proofgate.control.site.create.',
    }),
  ),
  resource_id: Type.Optional(Type.String({ pattern: '^[ -~]{1,2048}$', description: 'Only this resource.' })),
};

export const ROLE_GRANT_PATH = { role_grant_id: identifier('The role grant.') };
export const ACCESS_TOKEN_PATH = { access_token_id: identifier('The access token.') };

export type ScopeView = Static<typeof SCOPE>;
export type NewRoleGrant = Static<typeof NEW_ROLE_GRANT>;
export type RoleGrantView = Static<typeof ROLE_GRANT>;
export type NewAccessToken = Static<typeof NEW_ACCESS_TOKEN>;
export type AccessTokenView = Static<typeof ACCESS_TOKEN>;
export type AuditEventView = Static<typeof AUDIT_EVENT>;
