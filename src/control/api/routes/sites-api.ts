/** Routes of `/v1/sites` and `/v1/fleets/{fleet_id}/sites`. */

import {
  FLEET_PATH,
  NEW_SITE,
  SITE,
  SITE_CHANGE,
  SITE_FLOOR,
  SITE_FLOOR_RAISE,
} from '../../../api-contract/hierarchy-contract.ts';
import { SITE_PATH } from '../../../api-contract/members-contract.ts';
import type { Sites } from '../../configuration/sites.ts';
import type { ControlApp } from '../app.ts';
import { fleetInPath, siteInPath } from '../places.ts';
import { registerAction, registerResource } from '../resource-routes.ts';

export function registerSiteRoutes(app: ControlApp, sites: Sites): void {
  const basics = {
    tags: ['Auth Sites'],
    view: SITE,
    permission: 'administer',
    item: { url: '/v1/sites/:site_id', params: SITE_PATH, place: siteInPath },
  } as const;
  registerResource(app, {
    ...basics,
    collection: { url: '/v1/fleets/:fleet_id/sites', params: FLEET_PATH, place: fleetInPath },
    create: {
      operationId: 'createSite',
      summary: 'Make an Auth Site, with its signing keys',
      problems: ['already_exists', 'definition_invalid'],
      body: NEW_SITE,
      location: ({ site_id: id }) => `/v1/sites/${encodeURIComponent(id)}`,
      run: (operation, { fleet_id: fleetId }, site) => sites.create(operation, fleetId, site),
    },
    list: {
      operationId: 'listSitesOfFleet',
      summary: 'Auth Sites of a fleet',
      page: 'SitePage',
      cursorOf: ({ site_id: id }) => id,
      run: ({ fleet_id: fleetId }, page) => sites.listOfFleet(fleetId, page),
    },
    listReached: {
      url: '/v1/sites',
      operationId: 'listSites',
      summary: 'Auth Sites that one may read, wherever they are',
      page: 'SitePage',
      cursorOf: ({ site_id: id }) => id,
      run: (reach, page) => sites.list(reach, page),
    },
    get: { operationId: 'getSite', summary: 'An Auth Site', run: ({ site_id: id }) => sites.get(id) },
    change: {
      method: 'PATCH',
      operationId: 'changeSite',
      summary: 'Change an Auth Site',
      description:
        'Identifier, trust domain and issuer URL are fixed: passports and enrolled workloads name them.',
      problems: ['definition_invalid'],
      body: SITE_CHANGE,
      run: (operation, { site_id: id }, version, change) => sites.change(operation, id, version, change),
    },
    remove: {
      operationId: 'deleteSite',
      summary: 'Delete an Auth Site that nothing is left on',
      problems: ['still_in_use'],
      run: (operation, { site_id: id }, version) => sites.remove(operation, id, version),
    },
  });
  registerAction(app, basics, {
    verb: 'raise-floor',
    operationId: 'raiseSiteFloor',
    summary: 'Publish above a revision, so that targets that are ahead accept bundles again',
    description:
      'The next publication is a whole bundle above it. Repeating it changes nothing, nor does a revision below the published one.',
    body: SITE_FLOOR_RAISE,
    answer: SITE_FLOOR,
    run: (operation, { site_id: id }, { above_revision: revision }) =>
      sites.raiseFloor(operation, id, revision),
  });
}
