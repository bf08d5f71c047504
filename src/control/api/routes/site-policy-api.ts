/** Routes of `/v1/sites/{site_id}/routes` and of their allowed sources. */

import { SITE_PATH } from '../../../api-contract/members-contract.ts';
import {
  NEW_ROUTE,
  ROUTE,
  ROUTE_PATH,
  ROUTE_REPLACEMENT,
  ROUTE_SOURCES,
  ROUTE_SOURCES_REPLACEMENT,
} from '../../../api-contract/routes-contract.ts';
import type { RouteSources, Routes } from '../../configuration/routes.ts';
import type { ControlApp } from '../app.ts';
import { siteInPath } from '../places.ts';
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
      summary: 'Make a route; bundles hold it once it has sources',
      problems: ['already_exists', 'definition_invalid'],
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
      summary: 'Replace what a route is',
      problems: ['definition_invalid'],
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
      summary: 'Who may call a route',
      run: ({ site_id: siteId, route_id: routeId }) => sources.get(siteId, routeId),
    },
    put: {
      operationId: 'putRouteSources',
      summary: 'Say who may call a route. Without If-Match: its first sources, which publish it',
      problems: ['definition_invalid'],
      body: ROUTE_SOURCES_REPLACEMENT,
      run: (operation, { site_id: siteId, route_id: routeId }, version, { allowed_sources: allowed }) =>
        sources.put(operation, { siteId, routeId }, version, allowed),
    },
    remove: {
      operationId: 'deleteRouteSources',
      summary: 'Take a route out of bundles',
      run: (operation, { site_id: siteId, route_id: routeId }, version) =>
        sources.remove(operation, { siteId, routeId }, version),
    },
  });
}
