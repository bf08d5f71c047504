/** Routes of `/v1/sites/{site_id}/routes` and of their allowed sources. */

import { SITE_PATH } from '../../../process/http-service/members-contract.ts';
import type { Brokers } from '../../configuration/brokers.ts';
import type { Clients, Grants } from '../../configuration/clients.ts';
import type { RouteSources, Routes } from '../../configuration/routes.ts';
import {
  BROKER,
  BROKER_PATH,
  BROKER_REPLACEMENT,
  CLIENT,
  CLIENT_CHANGE,
  CLIENT_PATH,
  GRANT,
  GRANT_ACCESS,
  GRANT_PATH,
  ISSUER_PATH,
  NEW_CLIENT,
  NEW_ROUTE,
  ROUTE,
  ROUTE_PATH,
  ROUTE_REPLACEMENT,
  ROUTE_SOURCES,
  ROUTE_SOURCES_REPLACEMENT,
} from '../../contract/routes-contract.ts';
import { brokerPlace } from '../../store/repositories/brokers-repository.ts';
import { siteInPath } from '../api-access.ts';
import type { ControlApp } from '../app.ts';
import { registerResource } from '../resource-routes.ts';

const tags = ['Routes'];
/** Lists of origins, headers, allowed values and sources can be long. */
export const MAX_DEFINITION_BYTES = 2 * 1024 * 1024;
const route = { url: '/v1/sites/:site_id/routes/:route_id', params: ROUTE_PATH, place: siteInPath };

export function registerRouteRoutes(app: ControlApp, routes: Routes): void {
  registerResource(app, {
    tags,
    view: ROUTE,
    permission: 'operate',
    bodyLimit: MAX_DEFINITION_BYTES,
    collection: { url: '/v1/sites/:site_id/routes', params: SITE_PATH, place: siteInPath },
    item: route,
    create: {
      operationId: 'createRoute',
      summary: 'Create a route; bundles contain it once it has sources',
      problems: ['already_exists', 'definition_invalid', 'target_too_old'],
      body: NEW_ROUTE,
      location: ({ site_id: siteId, route_id: id }) =>
        `/v1/sites/${encodeURIComponent(siteId)}/routes/${encodeURIComponent(id)}`,
      run: (operation, { site_id: siteId }, body) => routes.create(operation, siteId, body),
    },
    list: {
      operationId: 'listRoutes',
      summary: 'Routes of a site',
      page: 'RoutePage',
      cursorOf: ({ route_id: id }) => id,
      run: ({ site_id: siteId }, page) => routes.list(siteId, page),
    },
    get: {
      operationId: 'getRoute',
      summary: 'A route',
      run: ({ site_id: siteId, route_id: routeId }) => routes.get(siteId, routeId),
    },
    change: {
      method: 'PUT',
      operationId: 'replaceRoute',
      summary: 'Replace the definition of a route',
      problems: ['definition_invalid', 'target_too_old'],
      body: ROUTE_REPLACEMENT,
      run: (operation, { site_id: siteId, route_id: routeId }, version, { definition }) =>
        routes.replace(operation, { siteId, routeId }, version, definition),
    },
    remove: {
      operationId: 'deleteRoute',
      summary: 'Delete a route with its sources',
      run: (operation, { site_id: siteId, route_id: routeId }, version) =>
        routes.remove(operation, { siteId, routeId }, version),
    },
  });
}

export function registerRouteSourcesRoutes(app: ControlApp, sources: RouteSources): void {
  registerResource(app, {
    tags,
    view: ROUTE_SOURCES,
    permission: 'operate',
    bodyLimit: MAX_DEFINITION_BYTES,
    item: { ...route, url: `${route.url}/sources` },
    get: {
      operationId: 'getRouteSources',
      summary: 'Allowed sources of a route',
      run: ({ site_id: siteId, route_id: routeId }) => sources.get(siteId, routeId),
    },
    put: {
      operationId: 'putRouteSources',
      summary: 'Set the allowed sources of a route. The first ones, without If-Match, publish it',
      problems: ['definition_invalid'],
      body: ROUTE_SOURCES_REPLACEMENT,
      run: (operation, { site_id: siteId, route_id: routeId }, version, { allowed_sources: allowed }) =>
        sources.put(operation, { siteId, routeId }, version, allowed),
    },
    remove: {
      operationId: 'deleteRouteSources',
      summary: 'Remove the allowed sources, and with them the route from bundles',
      run: (operation, { site_id: siteId, route_id: routeId }, version) =>
        sources.remove(operation, { siteId, routeId }, version),
    },
  });
}

/** Routes of `/v1/sites/{site_id}/brokers/{issuer}/{trust_domain}`, with a percent-encoded issuer. */
export function registerBrokerRoutes(app: ControlApp, brokers: Brokers): void {
  registerResource(app, {
    ...BROKER_RESOURCE,
    collection: { url: BROKERS_URL, params: SITE_PATH, place: siteInPath },
    item: { url: `${BROKERS_URL}/:issuer/:trust_domain`, params: BROKER_PATH, place: siteInPath },
    list: {
      operationId: 'listBrokers',
      summary: 'Brokers of a site',
      page: 'BrokerPage',
      cursorOf: ({ issuer, trust_domain: trustDomain }) => brokerPlace({ issuer, trustDomain }),
      run: ({ site_id: siteId }, page) => brokers.list(siteId, page),
    },
    get: {
      operationId: 'getBrokerOfTrustDomain',
      summary: 'A broker',
      run: ({ site_id: siteId, issuer, trust_domain: trustDomain }) =>
        brokers.get(siteId, issuer, trustDomain),
    },
    put: {
      operationId: 'putBrokerOfTrustDomain',
      summary: 'Create a broker without If-Match, or change it with If-Match',
      problems: ['definition_invalid'],
      body: BROKER_REPLACEMENT,
      run: (operation, { site_id: siteId, issuer, trust_domain: trustDomain }, version, body) =>
        brokers.put(operation, { siteId, issuer, trustDomain }, version, body),
    },
    remove: {
      operationId: 'deleteBrokerOfTrustDomain',
      summary: 'Remove a broker',
      run: (operation, { site_id: siteId, issuer, trust_domain: trustDomain }, version) =>
        brokers.remove(operation, { siteId, issuer, trustDomain }, version),
    },
  });
  registerBrokersByIssuer(app, brokers);
}

const BROKERS_URL = '/v1/sites/:site_id/brokers';
const BROKER_RESOURCE = {
  tags: ['Brokers'],
  view: BROKER,
  permission: 'administer',
  bodyLimit: MAX_DEFINITION_BYTES,
} as const;

/** For command lines up to 0.3.0, which know one broker of each issuer. */
function registerBrokersByIssuer(app: ControlApp, brokers: Brokers): void {
  registerResource(app, {
    ...BROKER_RESOURCE,
    item: { url: `${BROKERS_URL}/:issuer`, params: ISSUER_PATH, place: siteInPath },
    get: {
      operationId: 'getBroker',
      summary: 'The only broker of an issuer',
      problems: ['broker_ambiguous'],
      run: ({ site_id: siteId, issuer }) => brokers.getByIssuer({ siteId, issuer }),
    },
    put: {
      operationId: 'putBroker',
      summary: 'Create a broker without If-Match, or change the only one of the issuer with If-Match',
      problems: ['definition_invalid', 'broker_ambiguous'],
      body: BROKER_REPLACEMENT,
      run: (operation, { site_id: siteId, issuer }, version, body) =>
        brokers.putByIssuer(operation, { siteId, issuer }, version, body),
    },
    remove: {
      operationId: 'deleteBroker',
      summary: 'Remove the only broker of an issuer',
      problems: ['broker_ambiguous'],
      run: (operation, { site_id: siteId, issuer }, version) =>
        brokers.removeByIssuer(operation, { siteId, issuer }, version),
    },
  });
}

/** Routes of `/v1/sites/{site_id}/clients` and their grants. */
const CLIENT_TAGS = ['Clients and grants'];
const client = { url: '/v1/sites/:site_id/clients/:client_id', params: CLIENT_PATH, place: siteInPath };

export function registerClientRoutes(app: ControlApp, clients: Clients): void {
  registerResource(app, {
    tags: CLIENT_TAGS,
    view: CLIENT,
    permission: 'operate',
    collection: { url: '/v1/sites/:site_id/clients', params: SITE_PATH, place: siteInPath },
    item: client,
    create: {
      operationId: 'createClient',
      summary: 'Create a client, without grants',
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
      summary: 'Delete a client that has no policies and no valid keys, with its grants',
      problems: ['still_in_use'],
      run: (operation, { site_id: siteId, client_id: clientId }, version) =>
        clients.remove(operation, { siteId, clientId }, version),
    },
  });
}

export function registerGrantRoutes(app: ControlApp, grants: Grants): void {
  registerResource(app, {
    tags: CLIENT_TAGS,
    view: GRANT,
    permission: 'read',
    collection: { url: '/v1/sites/:site_id/grants', params: SITE_PATH, place: siteInPath },
    item: client,
    list: {
      operationId: 'listSiteGrants',
      summary: 'Grants of all clients of a site',
      page: 'SiteGrantPage',
      cursorOf: ({ client_id: clientId, resource }) => `${clientId} ${resource}`,
      run: ({ site_id: siteId }, page) => grants.listOfSite(siteId, page),
    },
  });
  registerResource(app, {
    tags: CLIENT_TAGS,
    view: GRANT,
    permission: 'operate',
    collection: { ...client, url: `${client.url}/grants` },
    item: { url: `${client.url}/grants/:resource`, params: GRANT_PATH, place: siteInPath },
    list: {
      operationId: 'listGrants',
      summary: 'Grants of a client, which each of its keys inherits',
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
      summary: 'Delete a grant',
      run: (operation, { site_id: siteId, client_id: clientId, resource }) =>
        grants.remove(operation, { siteId, clientId, resource }),
    },
  });
}
