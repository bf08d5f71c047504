/** Routes of `/v1/role-grants` and `/v1/access-tokens`. */
import type { FastifyRequest } from 'fastify';
import { Compile } from 'typebox/compile';
import { NAME_FILTER, parameters } from '../../../process/http-service/members-contract.ts';
import { isJsonObject } from '../../../protocol/strict-json.ts';
import { auditEventView } from '../../configuration/audit-events.ts';
import type { AccessTokens } from '../../configuration/role-grants.ts';
import { placeOfScope, type RoleGrants, scopeOf } from '../../configuration/role-grants.ts';
import {
  ACCESS_TOKEN,
  ACCESS_TOKEN_PATH,
  ACCESS_TOKEN_WITH_SECRET,
  AUDIT_EVENT,
  AUDIT_FILTER,
  NEW_ACCESS_TOKEN,
  NEW_ROLE_GRANT,
  ROLE_GRANT,
  ROLE_GRANT_PATH,
  SCOPE,
} from '../../contract/operators-contract.ts';
import { ApiProblem } from '../../domain/api-problem.ts';
import { reachOf, type Scope } from '../../domain/roles.ts';
import type { ControlStore } from '../../store/port.ts';
import { pathText, principalOf, type ScopePathOf } from '../api-access.ts';
import type { ControlApp } from '../app.ts';
import { invalidCursor, PAGE_MEMBERS, page, pageOf } from '../pagination.ts';
import { registerAction, registerResource } from '../resource-routes.ts';

const scopes = Compile(SCOPE);

/** The place of the scope that the body names. */
const scopeInBody: ScopePathOf = ({ body }, tx) => {
  const scope = isJsonObject(body) ? body.scope : undefined;
  if (!scopes.Check(scope)) throw new ApiProblem('scope_invalid');
  return placeOfScope(tx, scopeOf(scope));
};

const grantInPath: ScopePathOf = async (request, tx) => {
  const row = await tx.operators.grant(pathText(request, 'role_grant_id'));
  return row && placeOfScope(tx, scopeOfRow(row));
};

const tokenInPath: ScopePathOf = async (request, tx) => {
  const row = await tx.accessTokens.find(pathText(request, 'access_token_id'));
  return row && placeOfScope(tx, scopeOfRow(row));
};

function scopeOfRow({ scopeKind, scopeId }: { scopeKind: Scope['kind']; scopeId: string }): Scope {
  return { kind: scopeKind, id: scopeId };
}

/** Expiry of the calling access token. Undefined for a session: its operator can sign in again. */
function makerEnd(request: FastifyRequest): number | undefined {
  const { via, expiresAtMs } = principalOf(request);
  return via === 'access_token' ? expiresAtMs : undefined;
}

export function registerRoleGrantRoutes(app: ControlApp, grants: RoleGrants): void {
  registerResource(app, {
    tags: ['Role grants'],
    view: ROLE_GRANT,
    permission: 'administer',
    collection: { url: '/v1/role-grants', params: {}, place: scopeInBody, absent: 'scope_invalid' },
    item: { url: '/v1/role-grants/:role_grant_id', params: ROLE_GRANT_PATH, place: grantInPath },
    create: {
      operationId: 'createRoleGrant',
      summary: 'Grant a role at a scope that the caller administers',
      problems: ['scope_invalid', 'already_exists'],
      body: NEW_ROLE_GRANT,
      location: ({ role_grant_id: id }) => `/v1/role-grants/${id}`,
      run: (operation, _params, grant) => grants.create(operation, grant),
    },
    listReached: {
      url: '/v1/role-grants',
      operationId: 'listRoleGrants',
      summary: 'Role grants at scopes that the caller may read',
      page: 'RoleGrantPage',
      cursorOf: ({ role_grant_id: id }) => id,
      run: (reach, page) => grants.list(reach, page),
    },
    get: {
      operationId: 'getRoleGrant',
      summary: 'A role grant',
      isLive: true,
      run: ({ role_grant_id: id }) => grants.get(id),
    },
    withdraw: {
      operationId: 'deleteRoleGrant',
      summary: 'Delete a role grant',
      run: (operation, { role_grant_id: id }) => grants.remove(operation, id),
    },
  });
}

export function registerAccessTokenRoutes(app: ControlApp, tokens: AccessTokens): void {
  const basics = {
    tags: ['Access tokens'],
    view: ACCESS_TOKEN,
    permission: 'administer',
    item: { url: '/v1/access-tokens/:access_token_id', params: ACCESS_TOKEN_PATH, place: tokenInPath },
  } as const;
  registerResource(app, {
    ...basics,
    collection: { url: '/v1/access-tokens', params: {}, place: scopeInBody, absent: 'scope_invalid' },
    create: {
      operationId: 'createAccessToken',
      summary: 'Create a token for automation; it is shown only once',
      problems: ['scope_invalid', 'definition_invalid'],
      body: NEW_ACCESS_TOKEN,
      answer: ACCESS_TOKEN_WITH_SECRET,
      location: ({ access_token_id: id }) => `/v1/access-tokens/${id}`,
      run: (operation, _params, token, request) => tokens.create(operation, token, makerEnd(request)),
    },
    listReached: {
      url: '/v1/access-tokens',
      operationId: 'listAccessTokens',
      summary: 'Access tokens at scopes that the caller may read',
      page: 'AccessTokenPage',
      cursorOf: ({ access_token_id: id }) => id,
      filter: NAME_FILTER,
      run: (reach, page, { name }) => tokens.list(reach, page, name),
    },
    get: {
      operationId: 'getAccessToken',
      summary: 'An access token, without its secret',
      isLive: true,
      run: ({ access_token_id: id }) => tokens.get(id),
    },
    remove: {
      operationId: 'deleteAccessToken',
      summary: 'Delete an access token',
      run: (operation, { access_token_id: id }, version) => tokens.remove(operation, id, version),
    },
  });
  registerAction(app, basics, {
    verb: 'rotate',
    operationId: 'rotateAccessToken',
    summary: 'Replace the secret, shown only once; the previous one expires at once',
    problems: ['definition_invalid'],
    answer: ACCESS_TOKEN_WITH_SECRET,
    run: (operation, { access_token_id: id }, _body, request) =>
      tokens.rotate(operation, id, makerEnd(request)),
  });
}

/** Routes of `/v1/audit-events`: the audit trail, newest first. */
export function registerAuditEventRoutes(app: ControlApp, store: ControlStore): void {
  app.get(
    '/v1/audit-events',
    {
      config: { access: { kind: 'signed_in' } },
      schema: {
        operationId: 'listAuditEvents',
        summary: 'Audit events that the caller may read, newest first',
        tags: ['Audit trail'],
        querystring: parameters({ ...PAGE_MEMBERS, ...AUDIT_FILTER }),
        response: { 200: pageOf(AUDIT_EVENT, 'AuditEventPage') },
      },
    },
    (request) => {
      const { environment_id, fleet_id, site_id, kind, resource_id, actor, since, until } = request.query;
      const reach = reachOf(principalOf(request).roles, 'read');
      const filter = {
        reach,
        environmentId: environment_id,
        fleetId: fleet_id,
        siteId: site_id,
        kind,
        resourceId: resource_id,
        actor,
        sinceMs: since === undefined ? undefined : Date.parse(since),
        untilMs: until === undefined ? undefined : Date.parse(until),
      };
      return page(
        request.query,
        ({ after, limit }) =>
          store.readAside((tx) => tx.audit.list({ ...filter, limit, beforeSeq: sequence(after) })),
        ({ seq }) => String(seq),
        auditEventView,
      );
    },
  );
}

function sequence(cursor: string | undefined): number | undefined {
  if (cursor === undefined) return undefined;
  if (!/^[1-9][0-9]{0,15}$/.test(cursor)) throw invalidCursor();
  return Number(cursor);
}
