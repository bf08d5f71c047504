/** `/v1/role-grants` and `/v1/access-tokens`: who may do what. */

import type { FastifyRequest } from 'fastify';
import { Compile } from 'typebox/compile';
import { isJsonObject } from '../../../protocol/strict-json.ts';
import { type AccessTokens, accessTokenView } from '../../configuration/access-tokens.ts';
import { placeOfScope, type RoleGrants, roleGrantView, scopeOf } from '../../configuration/role-grants.ts';
import { Refusal } from '../../domain/refusal.ts';
import { reachOf, type Scope } from '../../domain/roles.ts';
import { type PlaceOf, principalOf } from '../access.ts';
import type { ControlApp } from '../app.ts';
import { nothing, parameters } from '../contract/members.ts';
import {
  ACCESS_TOKEN,
  ACCESS_TOKEN_PATH,
  ACCESS_TOKEN_WITH_SECRET,
  NEW_ACCESS_TOKEN,
  NEW_ROLE_GRANT,
  ROLE_GRANT,
  ROLE_GRANT_PATH,
  SCOPE,
} from '../contract/operators.ts';
import { PAGE_QUERY, page, pageOf } from '../pagination.ts';
import { pathText } from '../places.ts';
import { IDEMPOTENCY_KEY, operationOf, sendCreated } from '../request-operation.ts';
import { entityTag, expectedVersion, IF_MATCH } from '../versions.ts';

const grantTags = ['Role grants'];
const tokenTags = ['Access tokens'];

const scopes = Compile(SCOPE);

/** Where the role of the body is to hold. */
const scopeInBody: PlaceOf = ({ body }, tx) => {
  const scope = isJsonObject(body) ? body.scope : undefined;
  if (!scopes.Check(scope)) throw new Refusal('scope_invalid');
  return placeOfScope(tx, scopeOf(scope));
};

const grantInPath: PlaceOf = async (request, tx) => {
  const row = await tx.operators.grant(pathText(request, 'role_grant_id'));
  return row && placeOfScope(tx, scopeOfRow(row));
};

const tokenInPath: PlaceOf = async (request, tx) => {
  const row = await tx.accessTokens.find(pathText(request, 'access_token_id'));
  return row && placeOfScope(tx, scopeOfRow(row));
};

function scopeOfRow({ scopeKind, scopeId }: { scopeKind: Scope['kind']; scopeId: string }): Scope {
  return { kind: scopeKind, id: scopeId };
}

export function registerRoleGrantRoutes(app: ControlApp, grants: RoleGrants): void {
  app.post(
    '/v1/role-grants',
    {
      config: {
        access: { kind: 'operator', permission: 'administer', place: scopeInBody, absent: 'scope_invalid' },
        problems: ['scope_invalid', 'already_exists', 'idempotency_conflict'],
      },
      schema: {
        operationId: 'createRoleGrant',
        summary: 'Give a role at a scope that one administers',
        tags: grantTags,
        headers: IDEMPOTENCY_KEY,
        body: NEW_ROLE_GRANT,
        response: { 201: ROLE_GRANT },
      },
    },
    async (request, reply) => {
      const created = await grants.create(operationOf(request), request.body);
      return sendCreated(reply, created, ({ role_grant_id: id }) => `/v1/role-grants/${id}`);
    },
  );
  app.get(
    '/v1/role-grants',
    {
      config: { access: { kind: 'signed_in' } },
      schema: {
        operationId: 'listRoleGrants',
        summary: 'Role grants at scopes that one may read',
        tags: grantTags,
        querystring: PAGE_QUERY,
        response: { 200: pageOf(ROLE_GRANT, 'RoleGrantPage') },
      },
    },
    (request) => {
      const reach = reachOf(principalOf(request).roles, 'read');
      return page(
        request.query,
        (asked) => grants.list(reach, asked),
        ({ id }) => id,
        roleGrantView,
      );
    },
  );
  registerOneRoleGrantRoutes(app, grants);
}

function registerOneRoleGrantRoutes(app: ControlApp, grants: RoleGrants): void {
  const params = parameters(ROLE_GRANT_PATH);
  app.get(
    '/v1/role-grants/:role_grant_id',
    {
      config: { access: { kind: 'operator', permission: 'read', place: grantInPath } },
      schema: {
        operationId: 'getRoleGrant',
        summary: 'A role grant',
        tags: grantTags,
        params,
        response: { 200: ROLE_GRANT },
      },
    },
    (request) => grants.get(request.params.role_grant_id),
  );
  app.delete(
    '/v1/role-grants/:role_grant_id',
    {
      config: { access: { kind: 'operator', permission: 'administer', place: grantInPath } },
      schema: {
        operationId: 'deleteRoleGrant',
        summary: 'Take a role back',
        tags: grantTags,
        params,
        response: { 204: nothing },
      },
    },
    async (request, reply) => {
      await grants.remove(operationOf(request), request.params.role_grant_id);
      return reply.code(204).send(null);
    },
  );
}

/** When the access token that asks ends. A session ends as well, but its operator signs in again. */
function makerEnd(request: FastifyRequest): number | undefined {
  const { via, expiresAtMs } = principalOf(request);
  return via === 'access_token' ? expiresAtMs : undefined;
}

export function registerAccessTokenRoutes(app: ControlApp, tokens: AccessTokens): void {
  app.post(
    '/v1/access-tokens',
    {
      config: {
        access: { kind: 'operator', permission: 'administer', place: scopeInBody, absent: 'scope_invalid' },
        problems: ['scope_invalid', 'definition_invalid', 'idempotency_conflict'],
      },
      schema: {
        operationId: 'createAccessToken',
        summary: 'Make a token for automation; it is shown this once',
        tags: tokenTags,
        headers: IDEMPOTENCY_KEY,
        body: NEW_ACCESS_TOKEN,
        response: { 201: ACCESS_TOKEN_WITH_SECRET },
      },
    },
    async (request, reply) => {
      const created = await tokens.create(operationOf(request), request.body, makerEnd(request));
      return sendCreated(reply, created, ({ access_token_id: id }) => `/v1/access-tokens/${id}`);
    },
  );
  app.get(
    '/v1/access-tokens',
    {
      config: { access: { kind: 'signed_in' } },
      schema: {
        operationId: 'listAccessTokens',
        summary: 'Access tokens at scopes that one may read',
        tags: tokenTags,
        querystring: PAGE_QUERY,
        response: { 200: pageOf(ACCESS_TOKEN, 'AccessTokenPage') },
      },
    },
    (request) => {
      const reach = reachOf(principalOf(request).roles, 'read');
      return page(
        request.query,
        (asked) => tokens.list(reach, asked),
        ({ id }) => id,
        accessTokenView,
      );
    },
  );
  registerOneAccessTokenRoutes(app, tokens);
}

function registerOneAccessTokenRoutes(app: ControlApp, tokens: AccessTokens): void {
  const params = parameters(ACCESS_TOKEN_PATH);
  app.get(
    '/v1/access-tokens/:access_token_id',
    {
      config: { access: { kind: 'operator', permission: 'read', place: tokenInPath } },
      schema: {
        operationId: 'getAccessToken',
        summary: 'An access token, without its secret',
        tags: tokenTags,
        params,
        response: { 200: ACCESS_TOKEN },
      },
    },
    async (request, reply) => {
      const view = await tokens.get(request.params.access_token_id);
      reply.header('etag', entityTag(view.version));
      return view;
    },
  );
  registerAccessTokenChanges(app, tokens);
}

function registerAccessTokenChanges(app: ControlApp, tokens: AccessTokens): void {
  const params = parameters(ACCESS_TOKEN_PATH);
  app.delete(
    '/v1/access-tokens/:access_token_id',
    {
      config: {
        access: { kind: 'operator', permission: 'administer', place: tokenInPath },
        problems: ['precondition_required', 'precondition_failed'],
      },
      schema: {
        operationId: 'deleteAccessToken',
        summary: 'End an access token',
        tags: tokenTags,
        params,
        headers: IF_MATCH,
        response: { 204: nothing },
      },
    },
    async (request, reply) => {
      await tokens.remove(operationOf(request), request.params.access_token_id, expectedVersion(request));
      return reply.code(204).send(null);
    },
  );
  app.post(
    '/v1/access-tokens/:access_token_id/rotate',
    {
      config: {
        access: { kind: 'operator', permission: 'administer', place: tokenInPath },
        problems: ['definition_invalid'],
      },
      schema: {
        operationId: 'rotateAccessToken',
        summary: 'Replace the secret, shown this once; the one before ends at once',
        tags: tokenTags,
        params,
        response: { 200: ACCESS_TOKEN_WITH_SECRET },
      },
    },
    async (request, reply) => {
      const { view, token } = await tokens.rotate(
        operationOf(request),
        request.params.access_token_id,
        makerEnd(request),
      );
      reply.header('etag', entityTag(view.version));
      return { ...view, token };
    },
  );
}
