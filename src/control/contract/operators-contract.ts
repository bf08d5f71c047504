/** Schemas of role grants, access tokens and audit events. Source: docs/operate/control.md "Scope, permissions, secrets". */

import type { Static } from 'typebox';
import Type from 'typebox';
import {
  closed,
  displayText,
  givenId,
  INVISIBLE_CHARACTERS,
  identifier,
  moment,
  object,
  shownText,
  text,
  VERSIONED,
} from '../../process/http-service/members-contract.ts';
import { ROLES, SCOPE_KINDS } from './vocabulary.ts';

export const SCOPE = object(
  {
    kind: Type.Enum([...SCOPE_KINDS]),
    id: Type.Optional(identifier('The environment, fleet or site; absent for the installation.')),
  },
  'Scope',
  'Scope of a role: the resource and everything below it.',
);

const role = Type.Enum([...ROLES], {
  description:
    'viewer: read. approver: and decide enrollments. operator: and sources, policies, keys, clients, routes. admin: everything.',
});
const principalOf = (character: string) =>
  Type.String({
    pattern: `^(?:oidc:[!-~]+\\|${character}+|group:${character}+)$`,
    maxLength: 1024,
    description: '`oidc:<issuer>|<subject>`, or `group:<name>` as the identity provider names groups.',
  });
const givenPrincipal = principalOf(`[^\\u0000-\\u001f\\u007f${INVISIBLE_CHARACTERS}]`);
/** 0.3.0 and before took zero-width and bidirectional characters. */
const principal = principalOf('[^\\u0000-\\u001f\\u007f]');

export const NEW_ROLE_GRANT = object(
  { principal: givenPrincipal, role, scope: SCOPE },
  'NewRoleGrant',
  undefined,
  {
    principal: 'group:platform',
    role: 'operator',
    scope: { kind: 'site', id: 'shop-eu-1' },
  },
);

export const ROLE_GRANT = object(
  {
    role_grant_id: givenId('Names the grant.'),
    principal,
    role,
    scope: SCOPE,
    created_at: moment('When it was created.'),
    created_by: Type.String({ description: 'Actor that created it.' }),
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
        'When the token expires. Default: never, or the end of the access token that creates it. It must not be later than that end.',
      ),
    ),
  },
  'NewAccessToken',
);

const ACCESS_TOKEN_MEMBERS = {
  access_token_id: givenId('Names the token.'),
  name: shownText('For people.'),
  role,
  scope: SCOPE,
  expires_at: Type.Optional(moment('When the token expires.')),
  created_by: Type.Optional(
    Type.String({ description: 'Actor that created it; absent when the audit trail no longer knows it.' }),
  ),
  last_used_at: Type.Optional(
    moment('When it was last used, a quarter of a minute late at most; absent when it never was.'),
  ),
  ...VERSIONED,
};

export const ACCESS_TOKEN = object(ACCESS_TOKEN_MEMBERS, 'AccessToken');

export const ACCESS_TOKEN_WITH_SECRET = object(
  {
    ...ACCESS_TOKEN_MEMBERS,
    token: Type.Optional(Type.String({ description: 'Shown only once; absent in a repeated response.' })),
  },
  'AccessTokenWithSecret',
);

export const AUDIT_EVENT = object(
  {
    audit_event_id: givenId('Names the event.'),
    at: moment('When it happened.'),
    kind: Type.String({ description: 'proofgate.control.<resource>.<verb>' }),
    actor: Type.String({ description: 'Actor of the event.' }),
    resource: object({ kind: Type.String(), id: Type.String() }, 'AuditedResource'),
    environment_id: Type.Optional(Type.String()),
    fleet_id: Type.Optional(Type.String()),
    site_id: Type.Optional(Type.String()),
    before: Type.Optional(
      Type.Object({}, { description: 'The resource before the change; absent for a creation.' }),
    ),
    after: Type.Optional(
      Type.Object({}, { description: 'The resource after the change; absent for a deletion.' }),
    ),
    request_id: Type.Optional(Type.String({ description: 'X-Request-Id of the request.' })),
    reason: Type.Optional(Type.String({ description: 'Why, as the operator gave it.' })),
  },
  'AuditEvent',
);

export const AUDIT_FILTER = {
  environment_id: Type.Optional(identifier('Only events of this resource and those below it.')),
  fleet_id: Type.Optional(identifier('Only events of this resource and those below it.')),
  site_id: Type.Optional(identifier('Only events of this resource and those below it.')),
  kind: Type.Optional(
    Type.String({
      pattern: '^[a-z_.]{1,128}$',
      description: 'Only this kind, such as proofgate.control.site.create.',
    }),
  ),
  resource_id: Type.Optional(Type.String({ pattern: '^[ -~]{1,2048}$', description: 'Only this resource.' })),
  actor: Type.Optional(text(1200, 'Only of this actor, such as oidc:<issuer>|<subject>.')),
  since: Type.Optional(moment('Only events at or after this time.')),
  until: Type.Optional(moment('Only events before this time.')),
};

export const ROLE_GRANT_PATH = { role_grant_id: identifier('The role grant.') };
export const ACCESS_TOKEN_PATH = { access_token_id: identifier('The access token.') };

export type ScopeView = Static<typeof SCOPE>;
export type NewRoleGrant = Static<typeof NEW_ROLE_GRANT>;
export type RoleGrantView = Static<typeof ROLE_GRANT>;
export type NewAccessToken = Static<typeof NEW_ACCESS_TOKEN>;
export type AccessTokenView = Static<typeof ACCESS_TOKEN>;
export type AuditEventView = Static<typeof AUDIT_EVENT>;

/** Schemas of the sign-in requests and of the current session. */

const HELD_ROLE = Type.Object(
  {
    role: Type.Enum([...ROLES]),
    scope: SCOPE,
  },
  { ...closed, $id: 'HeldRole' },
);

export const SESSION = Type.Object(
  {
    actor: Type.String({
      description: 'As audit events and role grants name them, such as oidc:<issuer>|<subject>.',
    }),
    display_name: Type.String({ description: 'For people.' }),
    via: Type.Enum(['bootstrap', 'access_token', 'session']),
    roles: Type.Array(HELD_ROLE, { description: 'Current roles, from every grant that applies.' }),
    expires_at: Type.Optional(Type.String({ description: 'When these credentials expire, RFC 3339.' })),
  },
  { ...closed, $id: 'Session' },
);
export type SessionView = Static<typeof SESSION>;

export const OPERATOR_SESSION = object(
  {
    session_id: givenId('Names the session, also in audit events. It is not its token.'),
    principal: Type.String({ description: 'The operator, as role grants name them.' }),
    display_name: Type.String({ description: 'For people.' }),
    created_at: moment('When the operator signed in.'),
    expires_at: moment('When it ends by itself.'),
    current: Type.Boolean({ description: 'Whether this request came with it.' }),
  },
  'OperatorSession',
);
/** `DELETE /v1/sessions`. */
export const SESSIONS_OF = { principal: text(1200, 'The operator, as sessions and role grants name them.') };
export const ENDED_SESSIONS = object(
  { ended: Type.Integer({ minimum: 0, description: 'How many sessions were ended.' }) },
  'EndedSessions',
);
export const OPERATOR_SESSION_PATH = { session_id: identifier('The session.') };
export type OperatorSessionView = Static<typeof OPERATOR_SESSION>;

/** `GET /auth/login`. */
export const SIGN_IN_QUERY = Type.Object(
  {
    return_to: Type.Optional(
      Type.String({
        maxLength: 2048,
        description: 'Path of this host to return to. Default /.',
      }),
    ),
    cli_redirect: Type.Optional(
      Type.String({
        maxLength: 512,
        description: 'http://127.0.0.1:PORT/path where a command line waits for its code.',
      }),
    ),
    cli_challenge: Type.Optional(
      Type.String({
        maxLength: 128,
        description: 'S256 (RFC 7636) of the verifier that the command line keeps.',
      }),
    ),
    cli_state: Type.Optional(
      Type.String({ maxLength: 128, description: 'Returned to the command line unchanged.' }),
    ),
  },
  closed,
);

/** `POST /auth/confirm`, form-encoded. */
export const CONFIRMATION = Type.Object(
  {
    confirmation: Type.String({ minLength: 1, maxLength: 128 }),
    decision: Type.Enum(['allow', 'deny']),
  },
  { ...closed, $id: 'SignInConfirmation' },
);

/** `POST /v1/session/exchange`. */
export const SESSION_EXCHANGE = Type.Object(
  {
    code: Type.String({
      minLength: 1,
      maxLength: 128,
      description: 'As it came to cli_redirect. Good once, for 60 s.',
    }),
    verifier: Type.String({
      pattern: '^[A-Za-z0-9._~-]{43,128}$',
      description: 'What cli_challenge is the S256 of (RFC 7636 section 4.1).',
    }),
  },
  { ...closed, $id: 'SessionExchange' },
);

/** `POST /v1/session/bootstrap`. */
export const BOOTSTRAP_SIGN_IN = Type.Object(
  { token: Type.String({ minLength: 1, maxLength: 256, description: 'The bootstrap token.' }) },
  { ...closed, $id: 'BootstrapSignIn' },
);

export const SIGN_IN_METHODS = Type.Object(
  {
    identity_provider: Type.Boolean({ description: 'GET /auth/login starts a sign-in.' }),
    bootstrap_token: Type.Boolean({
      description: 'POST /v1/session/bootstrap takes the bootstrap token from this client.',
    }),
  },
  { ...closed, $id: 'SignInMethods' },
);

export const SESSION_TOKEN = Type.Object(
  {
    token: Type.String({ description: 'Send it as Authorization: Bearer. A secret, shown only here.' }),
    expires_at: Type.String({ description: 'RFC 3339.' }),
  },
  { ...closed, $id: 'SessionToken' },
);
