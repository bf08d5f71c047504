/** `/v1/sites/{site_id}/clients` with their grants. */
import type { Clients } from '../../configuration/clients.ts';
import { type Grants, grantView } from '../../configuration/grants.ts';
import type { ControlApp } from '../app.ts';
import {
  CLIENT,
  CLIENT_CHANGE,
  CLIENT_PATH,
  GRANT,
  GRANT_ACCESS,
  GRANT_PATH,
  NEW_CLIENT,
} from '../contract/clients.ts';
import { nothing, parameters, SITE_PATH } from '../contract/members.ts';
import { PAGE_QUERY, page, pageOf } from '../pagination.ts';
import { siteInPath } from '../places.ts';
import { IDEMPOTENCY_KEY, operationOf, sendCreated } from '../request-operation.ts';
import { expectedVersion, IF_MATCH, sendVersioned } from '../versions.ts';

const tags = ['Clients and grants'];

export function registerClientRoutes(app: ControlApp, clients: Clients): void {
  const params = parameters(SITE_PATH);
  app.post(
    '/v1/sites/:site_id/clients',
    {
      config: {
        access: { kind: 'operator', permission: 'operate', place: siteInPath },
        problems: ['already_exists', 'definition_invalid', 'idempotency_conflict'],
      },
      schema: {
        operationId: 'createClient',
        summary: 'Make a client, without grants',
        tags,
        params,
        headers: IDEMPOTENCY_KEY,
        body: NEW_CLIENT,
        response: { 201: CLIENT },
      },
    },
    async (request, reply) => {
      const created = await clients.create(operationOf(request), request.params.site_id, request.body);
      return sendCreated(reply, created, (view) => clientPath(view.site_id, view.client_id));
    },
  );
  app.get(
    '/v1/sites/:site_id/clients',
    {
      config: { access: { kind: 'operator', permission: 'read', place: siteInPath } },
      schema: {
        operationId: 'listClients',
        summary: 'Clients of a site',
        tags,
        params,
        querystring: PAGE_QUERY,
        response: { 200: pageOf(CLIENT, 'ClientPage') },
      },
    },
    (request) => {
      const { site_id: siteId } = request.params;
      return page(
        request.query,
        (asked) => clients.list(siteId, asked),
        ({ client_id: id }) => id,
        (client) => client,
      );
    },
  );
  registerOneClientRoutes(app, clients);
}

function clientPath(siteId: string, clientId: string): string {
  return `/v1/sites/${encodeURIComponent(siteId)}/clients/${encodeURIComponent(clientId)}`;
}

function registerOneClientRoutes(app: ControlApp, clients: Clients): void {
  const params = parameters(CLIENT_PATH);
  app.get(
    '/v1/sites/:site_id/clients/:client_id',
    {
      config: { access: { kind: 'operator', permission: 'read', place: siteInPath } },
      schema: {
        operationId: 'getClient',
        summary: 'A client',
        tags,
        params,
        response: { 200: CLIENT, 304: nothing },
      },
    },
    async (request, reply) => {
      const { site_id: siteId, client_id: clientId } = request.params;
      return sendVersioned(request, reply, await clients.get(siteId, clientId));
    },
  );
  registerClientChanges(app, clients);
}

function registerClientChanges(app: ControlApp, clients: Clients): void {
  const params = parameters(CLIENT_PATH);
  app.patch(
    '/v1/sites/:site_id/clients/:client_id',
    {
      config: {
        access: { kind: 'operator', permission: 'operate', place: siteInPath },
        problems: ['precondition_required', 'precondition_failed', 'definition_invalid', 'still_in_use'],
      },
      schema: {
        operationId: 'changeClient',
        summary: 'Change a client',
        tags,
        params,
        headers: IF_MATCH,
        body: CLIENT_CHANGE,
        response: { 200: CLIENT },
      },
    },
    async (request, reply) => {
      const { site_id: siteId, client_id: clientId } = request.params;
      const name = { siteId, clientId };
      const view = await clients.change(operationOf(request), name, expectedVersion(request), request.body);
      return sendVersioned(request, reply, view);
    },
  );
  app.delete(
    '/v1/sites/:site_id/clients/:client_id',
    {
      config: {
        access: { kind: 'operator', permission: 'operate', place: siteInPath },
        problems: ['precondition_required', 'precondition_failed', 'still_in_use'],
      },
      schema: {
        operationId: 'deleteClient',
        summary: 'Delete a client that no policy names and that has no living keys, with its grants',
        tags,
        params,
        headers: IF_MATCH,
        response: { 204: nothing },
      },
    },
    async (request, reply) => {
      const { site_id: siteId, client_id: clientId } = request.params;
      await clients.remove(operationOf(request), { siteId, clientId }, expectedVersion(request));
      return reply.code(204).send(null);
    },
  );
}

export function registerGrantRoutes(app: ControlApp, grants: Grants): void {
  app.get(
    '/v1/sites/:site_id/clients/:client_id/grants',
    {
      config: { access: { kind: 'operator', permission: 'read', place: siteInPath } },
      schema: {
        operationId: 'listGrants',
        summary: 'What a client, and each of its keys, may do',
        tags,
        params: parameters(CLIENT_PATH),
        querystring: PAGE_QUERY,
        response: { 200: pageOf(GRANT, 'GrantPage') },
      },
    },
    (request) => {
      const { site_id: siteId, client_id: clientId } = request.params;
      return page(
        request.query,
        (asked) => grants.list(siteId, clientId, asked),
        ({ resource }) => resource,
        grantView,
      );
    },
  );
  registerGrantChanges(app, grants);
}

function registerGrantChanges(app: ControlApp, grants: Grants): void {
  app.put(
    '/v1/sites/:site_id/clients/:client_id/grants/:resource',
    {
      config: {
        access: { kind: 'operator', permission: 'operate', place: siteInPath },
        problems: ['definition_invalid'],
      },
      schema: {
        operationId: 'putGrant',
        summary: 'Grant a resource, or change the access',
        tags,
        params: parameters(GRANT_PATH),
        body: GRANT_ACCESS,
        response: { 200: GRANT, 201: GRANT },
      },
    },
    async (request, reply) => {
      const { site_id: siteId, client_id: clientId, resource } = request.params;
      const name = { siteId, clientId, resource };
      const { view, created } = await grants.put(operationOf(request), name, request.body.access);
      return reply.code(created ? 201 : 200).send(view);
    },
  );
  app.delete(
    '/v1/sites/:site_id/clients/:client_id/grants/:resource',
    {
      config: { access: { kind: 'operator', permission: 'operate', place: siteInPath } },
      schema: {
        operationId: 'deleteGrant',
        summary: 'Take a grant back',
        tags,
        params: parameters(GRANT_PATH),
        response: { 204: nothing },
      },
    },
    async (request, reply) => {
      const { site_id: siteId, client_id: clientId, resource } = request.params;
      await grants.remove(operationOf(request), { siteId, clientId, resource });
      return reply.code(204).send(null);
    },
  );
}
