/** Routes of `/v1/sites/{site_id}/clients` and their grants. */

import {
  CLIENT,
  CLIENT_CHANGE,
  CLIENT_PATH,
  GRANT,
  GRANT_ACCESS,
  GRANT_PATH,
  NEW_CLIENT,
} from '../../../api-contract/clients-contract.ts';
import { SITE_PATH } from '../../../api-contract/members-contract.ts';
import type { Clients } from '../../configuration/clients.ts';
import type { Grants } from '../../configuration/grants.ts';
import type { ControlApp } from '../app.ts';
import { siteInPath } from '../places.ts';
import { registerResource } from '../resource-routes.ts';

const tags = ['Clients and grants'];
const client = { url: '/v1/sites/:site_id/clients/:client_id', params: CLIENT_PATH, place: siteInPath };

export function registerClientRoutes(app: ControlApp, clients: Clients): void {
  registerResource(app, {
    tags,
    view: CLIENT,
    permission: 'operate',
    collection: { url: '/v1/sites/:site_id/clients', params: SITE_PATH, place: siteInPath },
    item: client,
    create: {
      operationId: 'createClient',
      summary: 'Make a client, without grants',
      problems: ['already_exists', 'definition_invalid'],
      body: NEW_CLIENT,
      location: ({ site_id: siteId, client_id: id }) =>
        `/v1/sites/${encodeURIComponent(siteId)}/clients/${encodeURIComponent(id)}`,
      run: (operation, { site_id: siteId }, body) => clients.create(operation, siteId, body),
    },
    list: {
      operationId: 'listClients',
      summary: 'Clients of a site',
      page: 'ClientPage',
      cursorOf: ({ client_id: id }) => id,
      run: ({ site_id: siteId }, page) => clients.list(siteId, page),
    },
    get: {
      operationId: 'getClient',
      summary: 'A client',
      run: ({ site_id: siteId, client_id: clientId }) => clients.get(siteId, clientId),
    },
    change: {
      method: 'PATCH',
      operationId: 'changeClient',
      summary: 'Change a client',
      problems: ['definition_invalid', 'still_in_use'],
      body: CLIENT_CHANGE,
      run: (operation, { site_id: siteId, client_id: clientId }, version, change) =>
        clients.change(operation, { siteId, clientId }, version, change),
    },
    remove: {
      operationId: 'deleteClient',
      summary: 'Delete a client that no policy names and that has no living keys, with its grants',
      problems: ['still_in_use'],
      run: (operation, { site_id: siteId, client_id: clientId }, version) =>
        clients.remove(operation, { siteId, clientId }, version),
    },
  });
}

export function registerGrantRoutes(app: ControlApp, grants: Grants): void {
  registerResource(app, {
    tags,
    view: GRANT,
    permission: 'operate',
    collection: { ...client, url: `${client.url}/grants` },
    item: { url: `${client.url}/grants/:resource`, params: GRANT_PATH, place: siteInPath },
    list: {
      operationId: 'listGrants',
      summary: 'What a client, and each of its keys, may do',
      page: 'GrantPage',
      cursorOf: ({ resource }) => resource,
      run: ({ site_id: siteId, client_id: clientId }, page) => grants.list(siteId, clientId, page),
    },
    put: {
      operationId: 'putGrant',
      summary: 'Grant a resource, or change the access',
      problems: ['definition_invalid'],
      isUnversioned: true,
      body: GRANT_ACCESS,
      run: (operation, { site_id: siteId, client_id: clientId, resource }, _version, { access }) =>
        grants.put(operation, { siteId, clientId, resource }, access),
    },
    withdraw: {
      operationId: 'deleteGrant',
      summary: 'Take a grant back',
      run: (operation, { site_id: siteId, client_id: clientId, resource }) =>
        grants.remove(operation, { siteId, clientId, resource }),
    },
  });
}
