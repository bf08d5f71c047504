/** `/v1/sites/{site_id}/routes` and who may call each. */
import type { RouteSources } from '../../configuration/route-sources.ts';
import type { Routes } from '../../configuration/routes.ts';
import type { ControlApp } from '../app.ts';
import { nothing, parameters, SITE_PATH } from '../contract/members.ts';
import {
  NEW_ROUTE,
  ROUTE,
  ROUTE_PATH,
  ROUTE_REPLACEMENT,
  ROUTE_SOURCES,
  ROUTE_SOURCES_REPLACEMENT,
} from '../contract/routes.ts';
import { PAGE_QUERY, page, pageOf } from '../pagination.ts';
import { siteInPath } from '../places.ts';
import { IDEMPOTENCY_KEY, operationOf, sendCreated } from '../request-operation.ts';
import { expectedVersion, IF_MATCH, optionalVersion, sendVersioned } from '../versions.ts';

const tags = ['Routes'];
/** Lists of origins, headers, allowed values and sources are long where they are long. */
export const MAX_DEFINITION_BYTES = 2 * 1024 * 1024;

export function registerRouteRoutes(app: ControlApp, routes: Routes): void {
  const params = parameters(SITE_PATH);
  app.post(
    '/v1/sites/:site_id/routes',
    {
      bodyLimit: MAX_DEFINITION_BYTES,
      config: {
        access: { kind: 'operator', permission: 'operate', place: siteInPath },
        problems: ['already_exists', 'definition_invalid', 'idempotency_conflict'],
      },
      schema: {
        operationId: 'createRoute',
        summary: 'Make a route; bundles hold it once it has sources',
        tags,
        params,
        headers: IDEMPOTENCY_KEY,
        body: NEW_ROUTE,
        response: { 201: ROUTE },
      },
    },
    async (request, reply) => {
      const created = await routes.create(operationOf(request), request.params.site_id, request.body);
      return sendCreated(reply, created, (view) => routePath(view.site_id, view.route_id));
    },
  );
  app.get(
    '/v1/sites/:site_id/routes',
    {
      config: { access: { kind: 'operator', permission: 'read', place: siteInPath } },
      schema: {
        operationId: 'listRoutes',
        summary: 'Routes of a site',
        tags,
        params,
        querystring: PAGE_QUERY,
        response: { 200: pageOf(ROUTE, 'RoutePage') },
      },
    },
    (request) => {
      const { site_id: siteId } = request.params;
      return page(
        request.query,
        (asked) => routes.list(siteId, asked),
        ({ route_id: id }) => id,
        (route) => route,
      );
    },
  );
  registerOneRouteRoutes(app, routes);
}

function routePath(siteId: string, routeId: string): string {
  return `/v1/sites/${encodeURIComponent(siteId)}/routes/${encodeURIComponent(routeId)}`;
}

function registerOneRouteRoutes(app: ControlApp, routes: Routes): void {
  const params = parameters(ROUTE_PATH);
  app.get(
    '/v1/sites/:site_id/routes/:route_id',
    {
      config: { access: { kind: 'operator', permission: 'read', place: siteInPath } },
      schema: {
        operationId: 'getRoute',
        summary: 'A route',
        tags,
        params,
        response: { 200: ROUTE, 304: nothing },
      },
    },
    async (request, reply) => {
      const { site_id: siteId, route_id: routeId } = request.params;
      return sendVersioned(request, reply, await routes.get({ siteId, routeId }));
    },
  );
  registerRouteChanges(app, routes);
}

function registerRouteChanges(app: ControlApp, routes: Routes): void {
  const params = parameters(ROUTE_PATH);
  app.put(
    '/v1/sites/:site_id/routes/:route_id',
    {
      bodyLimit: MAX_DEFINITION_BYTES,
      config: {
        access: { kind: 'operator', permission: 'operate', place: siteInPath },
        problems: ['precondition_required', 'precondition_failed', 'definition_invalid'],
      },
      schema: {
        operationId: 'replaceRoute',
        summary: 'Replace what a route is',
        tags,
        params,
        headers: IF_MATCH,
        body: ROUTE_REPLACEMENT,
        response: { 200: ROUTE },
      },
    },
    async (request, reply) => {
      const { site_id: siteId, route_id: routeId } = request.params;
      const version = expectedVersion(request);
      const { definition } = request.body;
      const view = await routes.replace(operationOf(request), { siteId, routeId }, version, definition);
      return sendVersioned(request, reply, view);
    },
  );
  app.delete(
    '/v1/sites/:site_id/routes/:route_id',
    {
      config: {
        access: { kind: 'operator', permission: 'operate', place: siteInPath },
        problems: ['precondition_required', 'precondition_failed'],
      },
      schema: {
        operationId: 'deleteRoute',
        summary: 'Delete a route with its sources',
        tags,
        params,
        headers: IF_MATCH,
        response: { 204: nothing },
      },
    },
    async (request, reply) => {
      const { site_id: siteId, route_id: routeId } = request.params;
      await routes.remove(operationOf(request), { siteId, routeId }, expectedVersion(request));
      return reply.code(204).send(null);
    },
  );
}

export function registerRouteSourcesRoutes(app: ControlApp, sources: RouteSources): void {
  const params = parameters(ROUTE_PATH);
  app.get(
    '/v1/sites/:site_id/routes/:route_id/sources',
    {
      config: { access: { kind: 'operator', permission: 'read', place: siteInPath } },
      schema: {
        operationId: 'getRouteSources',
        summary: 'Who may call a route',
        tags,
        params,
        response: { 200: ROUTE_SOURCES, 304: nothing },
      },
    },
    async (request, reply) => {
      const { site_id: siteId, route_id: routeId } = request.params;
      return sendVersioned(request, reply, await sources.get({ siteId, routeId }));
    },
  );
  registerRouteSourcesChanges(app, sources);
}

function registerRouteSourcesChanges(app: ControlApp, sources: RouteSources): void {
  const params = parameters(ROUTE_PATH);
  app.put(
    '/v1/sites/:site_id/routes/:route_id/sources',
    {
      bodyLimit: MAX_DEFINITION_BYTES,
      config: {
        access: { kind: 'operator', permission: 'operate', place: siteInPath },
        problems: ['precondition_required', 'precondition_failed', 'definition_invalid'],
      },
      schema: {
        operationId: 'putRouteSources',
        summary: 'Say who may call a route. Without If-Match: its first sources, which publish it',
        tags,
        params,
        headers: IF_MATCH,
        body: ROUTE_SOURCES_REPLACEMENT,
        response: { 200: ROUTE_SOURCES, 201: ROUTE_SOURCES },
      },
    },
    async (request, reply) => {
      const { site_id: siteId, route_id: routeId } = request.params;
      const version = optionalVersion(request);
      const { allowed_sources: allowed } = request.body;
      const put = await sources.put(operationOf(request), { siteId, routeId }, version, allowed);
      reply.code(put.created ? 201 : 200);
      return sendVersioned(request, reply, put.view);
    },
  );
  app.delete(
    '/v1/sites/:site_id/routes/:route_id/sources',
    {
      config: {
        access: { kind: 'operator', permission: 'operate', place: siteInPath },
        problems: ['precondition_required', 'precondition_failed'],
      },
      schema: {
        operationId: 'deleteRouteSources',
        summary: 'Take a route out of bundles',
        tags,
        params,
        headers: IF_MATCH,
        response: { 204: nothing },
      },
    },
    async (request, reply) => {
      const { site_id: siteId, route_id: routeId } = request.params;
      await sources.remove(operationOf(request), { siteId, routeId }, expectedVersion(request));
      return reply.code(204).send(null);
    },
  );
}
