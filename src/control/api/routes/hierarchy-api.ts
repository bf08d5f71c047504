/** Routes of environments, fleets, Auth Sites and their signing keys. */

import { NAME_FILTER, parameters, SITE_PATH } from '../../../process/http-service/members-contract.ts';
import type { Environments, Fleets } from '../../configuration/environments.ts';
import type { SigningKeyAdministration } from '../../configuration/signing-keys.ts';
import type { Sites } from '../../configuration/sites.ts';
import {
  ENVIRONMENT,
  ENVIRONMENT_PATH,
  FLEET,
  FLEET_PATH,
  NAMED,
  NEW_SITE,
  SIGNING_KEY,
  SIGNING_KEY_PATH,
  SIGNING_KEY_RETIREMENT,
  SIGNING_KEY_ROTATION,
  SIGNING_KEYS,
  SITE,
  SITE_CHANGE,
  SITE_FLOOR,
  SITE_FLOOR_RAISE,
} from '../../contract/hierarchy-contract.ts';
import { environmentInPath, fleetInPath, installation, siteInPath } from '../api-access.ts';
import type { ControlApp } from '../app.ts';
import { registerAction, registerRead, registerResource } from '../resource-routes.ts';
import { operationOf } from '../versions.ts';

const tags = ['Environments and fleets'];
const environment = {
  url: '/v1/environments/:environment_id',
  params: ENVIRONMENT_PATH,
  place: environmentInPath,
};

export function registerEnvironmentRoutes(app: ControlApp, environments: Environments): void {
  registerResource(app, {
    tags,
    view: ENVIRONMENT,
    permission: 'administer',
    collection: { url: '/v1/environments', params: {}, place: installation },
    item: environment,
    create: {
      operationId: 'createEnvironment',
      summary: 'Create an environment',
      problems: ['already_exists'],
      body: NAMED,
      location: ({ environment_id: id }) => `/v1/environments/${id}`,
      run: (operation, _params, { name }) => environments.create(operation, name),
    },
    listReached: {
      url: '/v1/environments',
      operationId: 'listEnvironments',
      summary: 'Environments that the caller may read',
      page: 'EnvironmentPage',
      cursorOf: ({ environment_id: id }) => id,
      filter: NAME_FILTER,
      run: (reach, page, { name }) => environments.list(reach, page, name),
    },
    get: {
      operationId: 'getEnvironment',
      summary: 'An environment',
      run: ({ environment_id: id }) => environments.get(id),
    },
    change: {
      method: 'PATCH',
      operationId: 'renameEnvironment',
      summary: 'Rename an environment',
      problems: ['already_exists'],
      body: NAMED,
      run: (operation, { environment_id: id }, version, { name }) =>
        environments.rename(operation, id, version, name),
    },
    remove: {
      operationId: 'deleteEnvironment',
      summary: 'Delete an environment without fleets',
      problems: ['still_in_use'],
      run: (operation, { environment_id: id }, version) => environments.remove(operation, id, version),
    },
  });
}

export function registerFleetRoutes(app: ControlApp, fleets: Fleets): void {
  registerResource(app, {
    tags,
    view: FLEET,
    permission: 'administer',
    collection: { ...environment, url: `${environment.url}/fleets` },
    item: { url: '/v1/fleets/:fleet_id', params: FLEET_PATH, place: fleetInPath },
    create: {
      operationId: 'createFleet',
      summary: 'Create a fleet',
      problems: ['already_exists'],
      body: NAMED,
      location: ({ fleet_id: id }) => `/v1/fleets/${id}`,
      run: (operation, { environment_id: environmentId }, { name }) =>
        fleets.create(operation, environmentId, name),
    },
    list: {
      operationId: 'listFleets',
      summary: 'Fleets of an environment',
      page: 'FleetPage',
      cursorOf: ({ fleet_id: id }) => id,
      filter: NAME_FILTER,
      run: ({ environment_id: environmentId }, page, { name }) => fleets.list(environmentId, page, name),
    },
    get: { operationId: 'getFleet', summary: 'A fleet', run: ({ fleet_id: id }) => fleets.get(id) },
    change: {
      method: 'PATCH',
      operationId: 'renameFleet',
      summary: 'Rename a fleet',
      problems: ['already_exists'],
      body: NAMED,
      run: (operation, { fleet_id: id }, version, { name }) => fleets.rename(operation, id, version, name),
    },
    remove: {
      operationId: 'deleteFleet',
      summary: 'Delete a fleet without sites',
      problems: ['still_in_use'],
      run: (operation, { fleet_id: id }, version) => fleets.remove(operation, id, version),
    },
  });
}

/** Routes of `/v1/sites` and `/v1/fleets/{fleet_id}/sites`. */
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
      summary: 'Create an Auth Site, with its signing keys',
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
      summary: 'Auth Sites that the caller may read',
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
      problems: ['definition_invalid', 'target_too_old'],
      body: SITE_CHANGE,
      run: (operation, { site_id: id }, version, change) => sites.change(operation, id, version, change),
    },
    remove: {
      operationId: 'deleteSite',
      summary: 'Delete an Auth Site without dependent resources',
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

/** Routes of `/v1/sites/{site_id}/signing-keys`: list, rotate, and retire early. */
const SIGNING_KEY_TAGS = ['Signing keys'];
const SIGNING_KEYS_URL = '/v1/sites/:site_id/signing-keys';

export function registerSigningKeyRoutes(app: ControlApp, keys: SigningKeyAdministration): void {
  registerRead(
    app,
    { tags: SIGNING_KEY_TAGS, item: { url: SIGNING_KEYS_URL, params: SITE_PATH, place: siteInPath } },
    {
      below: '',
      operationId: 'listSigningKeys',
      summary: 'Public keys that verifiers of a site pin, oldest first',
      answer: SIGNING_KEYS,
      run: async ({ site_id: siteId }) => ({ items: await keys.list(siteId, 'verifiers') }),
    },
  );
  registerRead(
    app,
    {
      tags: SIGNING_KEY_TAGS,
      item: { url: '/v1/sites/:site_id/receipt-keys', params: SITE_PATH, place: siteInPath },
    },
    {
      below: '',
      operationId: 'listReceiptKeys',
      summary: 'Public keys that sign the revocation receipts of a site, with retired ones, oldest first',
      answer: SIGNING_KEYS,
      run: async ({ site_id: siteId }) => ({ items: await keys.list(siteId, 'receipts') }),
    },
  );
  app.post(
    `${SIGNING_KEYS_URL}/rotate`,
    {
      config: { access: { kind: 'operator', permission: 'administer', place: siteInPath } },
      schema: {
        operationId: 'rotateSigningKey',
        summary: 'Create a new key; the previous one also signs for a while',
        tags: SIGNING_KEY_TAGS,
        params: parameters(SITE_PATH),
        body: SIGNING_KEY_ROTATION,
        response: { 201: SIGNING_KEY },
      },
    },
    async (request, reply) => {
      const key = await keys.rotate(operationOf(request), request.params.site_id, request.body);
      return reply.code(201).send(key);
    },
  );
  const key = {
    tags: SIGNING_KEY_TAGS,
    view: SIGNING_KEY,
    permission: 'administer',
    item: { url: `${SIGNING_KEYS_URL}/:signing_key_id`, params: SIGNING_KEY_PATH, place: siteInPath },
  } as const;
  registerAction(app, key, {
    verb: 'retire',
    operationId: 'retireSigningKey',
    summary: 'End a retiring key now, or sooner than planned',
    description:
      'From then on, verifiers that pin this key and not its successor reject new publications, and deny once their bundle is too old. This cannot be undone.',
    problems: ['signing_key_state_conflict'],
    body: SIGNING_KEY_RETIREMENT,
    run: (operation, { site_id: siteId, signing_key_id: id }, retirement) =>
      keys.retire(operation, siteId, id, retirement),
  });
}
