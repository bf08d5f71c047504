/** Routes of `/v1/environments` and `/v1/fleets`. */

import {
  ENVIRONMENT,
  ENVIRONMENT_PATH,
  FLEET,
  FLEET_PATH,
  NAMED,
} from '../../../api-contract/hierarchy-contract.ts';
import type { Environments } from '../../configuration/environments.ts';
import type { Fleets } from '../../configuration/fleets.ts';
import type { ControlApp } from '../app.ts';
import { environmentInPath, fleetInPath, installation } from '../places.ts';
import { registerResource } from '../resource-routes.ts';

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
      summary: 'Make an environment',
      problems: ['already_exists'],
      body: NAMED,
      location: ({ environment_id: id }) => `/v1/environments/${id}`,
      run: (operation, _params, { name }) => environments.create(operation, name),
    },
    listReached: {
      url: '/v1/environments',
      operationId: 'listEnvironments',
      summary: 'Environments that one may read',
      page: 'EnvironmentPage',
      cursorOf: ({ environment_id: id }) => id,
      run: (reach, page) => environments.list(reach, page),
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
      summary: 'Make a fleet',
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
      run: ({ environment_id: environmentId }, page) => fleets.list(environmentId, page),
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
