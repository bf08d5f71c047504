/** `/v1/sites` and `/v1/fleets/{fleet_id}/sites`. */
import type { Sites } from '../../configuration/sites.ts';
import { reachOf } from '../../domain/roles.ts';
import { principalOf } from '../access.ts';
import type { ControlApp } from '../app.ts';
import {
  FLEET_PATH,
  NEW_SITE,
  SITE,
  SITE_CHANGE,
  SITE_FLOOR,
  SITE_FLOOR_RAISE,
} from '../contract/hierarchy.ts';
import { nothing, parameters, SITE_PATH } from '../contract/members.ts';
import { PAGE_QUERY, page, pageOf } from '../pagination.ts';
import { fleetInPath, siteInPath } from '../places.ts';
import { IDEMPOTENCY_KEY, operationOf, sendCreated } from '../request-operation.ts';
import { expectedVersion, IF_MATCH, sendVersioned } from '../versions.ts';

const tags = ['Auth Sites'];
const SITE_PAGE = pageOf(SITE, 'SitePage');

export function registerSiteRoutes(app: ControlApp, sites: Sites): void {
  app.post(
    '/v1/fleets/:fleet_id/sites',
    {
      config: {
        access: { kind: 'operator', permission: 'administer', place: fleetInPath },
        problems: ['already_exists', 'definition_invalid', 'idempotency_conflict'],
      },
      schema: {
        operationId: 'createSite',
        summary: 'Make an Auth Site, with its signing keys',
        tags,
        params: parameters(FLEET_PATH),
        headers: IDEMPOTENCY_KEY,
        body: NEW_SITE,
        response: { 201: SITE },
      },
    },
    async (request, reply) => {
      const created = await sites.create(operationOf(request), request.params.fleet_id, request.body);
      return sendCreated(reply, created, ({ site_id: id }) => `/v1/sites/${encodeURIComponent(id)}`);
    },
  );
  registerSiteLists(app, sites);
  registerOneSiteRoutes(app, sites);
}

function registerSiteLists(app: ControlApp, sites: Sites): void {
  app.get(
    '/v1/fleets/:fleet_id/sites',
    {
      config: { access: { kind: 'operator', permission: 'read', place: fleetInPath } },
      schema: {
        operationId: 'listSitesOfFleet',
        summary: 'Auth Sites of a fleet',
        tags,
        params: parameters(FLEET_PATH),
        querystring: PAGE_QUERY,
        response: { 200: SITE_PAGE },
      },
    },
    (request) => {
      const { fleet_id: fleetId } = request.params;
      return page(
        request.query,
        (asked) => sites.listOfFleet(fleetId, asked),
        ({ site_id: id }) => id,
        (site) => site,
      );
    },
  );
  app.get(
    '/v1/sites',
    {
      config: { access: { kind: 'signed_in' } },
      schema: {
        operationId: 'listSites',
        summary: 'Auth Sites that one may read, wherever they are',
        tags,
        querystring: PAGE_QUERY,
        response: { 200: SITE_PAGE },
      },
    },
    (request) => {
      const reach = reachOf(principalOf(request).roles, 'read');
      return page(
        request.query,
        (asked) => sites.list(reach, asked),
        ({ site_id: id }) => id,
        (site) => site,
      );
    },
  );
}

function registerOneSiteRoutes(app: ControlApp, sites: Sites): void {
  const params = parameters(SITE_PATH);
  app.get(
    '/v1/sites/:site_id',
    {
      config: { access: { kind: 'operator', permission: 'read', place: siteInPath } },
      schema: {
        operationId: 'getSite',
        summary: 'An Auth Site',
        tags,
        params,
        response: { 200: SITE, 304: nothing },
      },
    },
    async (request, reply) => sendVersioned(request, reply, await sites.get(request.params.site_id)),
  );
  registerSiteChanges(app, sites);
  registerFloorRoute(app, sites);
}

function registerSiteChanges(app: ControlApp, sites: Sites): void {
  const params = parameters(SITE_PATH);
  app.patch(
    '/v1/sites/:site_id',
    {
      config: {
        access: { kind: 'operator', permission: 'administer', place: siteInPath },
        problems: ['precondition_required', 'precondition_failed', 'definition_invalid'],
      },
      schema: {
        operationId: 'changeSite',
        summary: 'Change an Auth Site',
        description:
          'Identifier, trust domain and issuer URL are fixed: passports and enrolled workloads name them.',
        tags,
        params,
        headers: IF_MATCH,
        body: SITE_CHANGE,
        response: { 200: SITE },
      },
    },
    async (request, reply) => {
      const version = expectedVersion(request);
      const view = await sites.change(operationOf(request), request.params.site_id, version, request.body);
      return sendVersioned(request, reply, view);
    },
  );
  app.delete(
    '/v1/sites/:site_id',
    {
      config: {
        access: { kind: 'operator', permission: 'administer', place: siteInPath },
        problems: ['precondition_required', 'precondition_failed', 'still_in_use'],
      },
      schema: {
        operationId: 'deleteSite',
        summary: 'Delete an Auth Site that nothing is left on',
        tags,
        params,
        headers: IF_MATCH,
        response: { 204: nothing },
      },
    },
    async (request, reply) => {
      await sites.remove(operationOf(request), request.params.site_id, expectedVersion(request));
      return reply.code(204).send(null);
    },
  );
}

function registerFloorRoute(app: ControlApp, sites: Sites): void {
  app.post(
    '/v1/sites/:site_id/raise-floor',
    {
      config: { access: { kind: 'operator', permission: 'administer', place: siteInPath } },
      schema: {
        operationId: 'raiseSiteFloor',
        summary: 'Publish above a revision, so that targets that are ahead accept bundles again',
        description:
          'The next publication is a whole bundle above it. Repeating it changes nothing, nor does a revision below the published one.',
        tags,
        params: parameters(SITE_PATH),
        body: SITE_FLOOR_RAISE,
        response: { 200: SITE_FLOOR },
      },
    },
    (request) => {
      const { above_revision: aboveRevision } = request.body;
      return sites.raiseFloor(operationOf(request), request.params.site_id, aboveRevision);
    },
  );
}
