/** `/v1/environments` and `/v1/fleets`. */
import { type Environments, environmentView } from '../../configuration/environments.ts';
import { type Fleets, fleetView } from '../../configuration/fleets.ts';
import { reachOf } from '../../domain/roles.ts';
import { principalOf } from '../access.ts';
import type { ControlApp } from '../app.ts';
import { ENVIRONMENT, ENVIRONMENT_PATH, FLEET, FLEET_PATH, NAMED } from '../contract/hierarchy.ts';
import { nothing, parameters } from '../contract/members.ts';
import { PAGE_QUERY, page, pageOf } from '../pagination.ts';
import { environmentInPath, fleetInPath, installation } from '../places.ts';
import { IDEMPOTENCY_KEY, operationOf, sendCreated } from '../request-operation.ts';
import { expectedVersion, IF_MATCH, sendVersioned } from '../versions.ts';

const tags = ['Environments and fleets'];

export function registerEnvironmentRoutes(app: ControlApp, environments: Environments): void {
  app.post(
    '/v1/environments',
    {
      config: {
        access: { kind: 'operator', permission: 'administer', place: installation },
        problems: ['already_exists', 'idempotency_conflict'],
      },
      schema: {
        operationId: 'createEnvironment',
        summary: 'Make an environment',
        tags,
        headers: IDEMPOTENCY_KEY,
        body: NAMED,
        response: { 201: ENVIRONMENT },
      },
    },
    async (request, reply) => {
      const created = await environments.create(operationOf(request), request.body.name);
      return sendCreated(reply, created, ({ environment_id: id }) => `/v1/environments/${id}`);
    },
  );
  app.get(
    '/v1/environments',
    {
      config: { access: { kind: 'signed_in' } },
      schema: {
        operationId: 'listEnvironments',
        summary: 'Environments that one may read',
        tags,
        querystring: PAGE_QUERY,
        response: { 200: pageOf(ENVIRONMENT, 'EnvironmentPage') },
      },
    },
    (request) => {
      const reach = reachOf(principalOf(request).roles, 'read');
      return page(
        request.query,
        (asked) => environments.list(reach, asked),
        ({ id }) => id,
        environmentView,
      );
    },
  );
  registerOneEnvironmentRoutes(app, environments);
}

function registerOneEnvironmentRoutes(app: ControlApp, environments: Environments): void {
  const params = parameters(ENVIRONMENT_PATH);
  app.get(
    '/v1/environments/:environment_id',
    {
      config: { access: { kind: 'operator', permission: 'read', place: environmentInPath } },
      schema: {
        operationId: 'getEnvironment',
        summary: 'An environment',
        tags,
        params,
        response: { 200: ENVIRONMENT, 304: nothing },
      },
    },
    async (request, reply) =>
      sendVersioned(request, reply, await environments.get(request.params.environment_id)),
  );
  registerEnvironmentChanges(app, environments);
}

function registerEnvironmentChanges(app: ControlApp, environments: Environments): void {
  const params = parameters(ENVIRONMENT_PATH);
  app.patch(
    '/v1/environments/:environment_id',
    {
      config: {
        access: { kind: 'operator', permission: 'administer', place: environmentInPath },
        problems: ['precondition_required', 'precondition_failed', 'already_exists'],
      },
      schema: {
        operationId: 'renameEnvironment',
        summary: 'Rename an environment',
        tags,
        params,
        headers: IF_MATCH,
        body: NAMED,
        response: { 200: ENVIRONMENT },
      },
    },
    async (request, reply) => {
      const { environment_id: id } = request.params;
      const version = expectedVersion(request);
      const view = await environments.rename(operationOf(request), id, version, request.body.name);
      return sendVersioned(request, reply, view);
    },
  );
  app.delete(
    '/v1/environments/:environment_id',
    {
      config: {
        access: { kind: 'operator', permission: 'administer', place: environmentInPath },
        problems: ['precondition_required', 'precondition_failed', 'still_in_use'],
      },
      schema: {
        operationId: 'deleteEnvironment',
        summary: 'Delete an environment without fleets',
        tags,
        params,
        headers: IF_MATCH,
        response: { 204: nothing },
      },
    },
    async (request, reply) => {
      const { environment_id: id } = request.params;
      await environments.remove(operationOf(request), id, expectedVersion(request));
      return reply.code(204).send(null);
    },
  );
}

export function registerFleetRoutes(app: ControlApp, fleets: Fleets): void {
  app.post(
    '/v1/environments/:environment_id/fleets',
    {
      config: {
        access: { kind: 'operator', permission: 'administer', place: environmentInPath },
        problems: ['already_exists', 'idempotency_conflict'],
      },
      schema: {
        operationId: 'createFleet',
        summary: 'Make a fleet',
        tags,
        params: parameters(ENVIRONMENT_PATH),
        headers: IDEMPOTENCY_KEY,
        body: NAMED,
        response: { 201: FLEET },
      },
    },
    async (request, reply) => {
      const { environment_id: environmentId } = request.params;
      const created = await fleets.create(operationOf(request), environmentId, request.body.name);
      return sendCreated(reply, created, ({ fleet_id: id }) => `/v1/fleets/${id}`);
    },
  );
  app.get(
    '/v1/environments/:environment_id/fleets',
    {
      config: { access: { kind: 'operator', permission: 'read', place: environmentInPath } },
      schema: {
        operationId: 'listFleets',
        summary: 'Fleets of an environment',
        tags,
        params: parameters(ENVIRONMENT_PATH),
        querystring: PAGE_QUERY,
        response: { 200: pageOf(FLEET, 'FleetPage') },
      },
    },
    (request) => {
      const { environment_id: environmentId } = request.params;
      return page(
        request.query,
        (asked) => fleets.list(environmentId, asked),
        ({ id }) => id,
        fleetView,
      );
    },
  );
  registerOneFleetRoutes(app, fleets);
}

function registerOneFleetRoutes(app: ControlApp, fleets: Fleets): void {
  const params = parameters(FLEET_PATH);
  app.get(
    '/v1/fleets/:fleet_id',
    {
      config: { access: { kind: 'operator', permission: 'read', place: fleetInPath } },
      schema: {
        operationId: 'getFleet',
        summary: 'A fleet',
        tags,
        params,
        response: { 200: FLEET, 304: nothing },
      },
    },
    async (request, reply) => sendVersioned(request, reply, await fleets.get(request.params.fleet_id)),
  );
  registerFleetChanges(app, fleets);
}

function registerFleetChanges(app: ControlApp, fleets: Fleets): void {
  const params = parameters(FLEET_PATH);
  app.patch(
    '/v1/fleets/:fleet_id',
    {
      config: {
        access: { kind: 'operator', permission: 'administer', place: fleetInPath },
        problems: ['precondition_required', 'precondition_failed', 'already_exists'],
      },
      schema: {
        operationId: 'renameFleet',
        summary: 'Rename a fleet',
        tags,
        params,
        headers: IF_MATCH,
        body: NAMED,
        response: { 200: FLEET },
      },
    },
    async (request, reply) => {
      const version = expectedVersion(request);
      const { fleet_id: id } = request.params;
      const view = await fleets.rename(operationOf(request), id, version, request.body.name);
      return sendVersioned(request, reply, view);
    },
  );
  app.delete(
    '/v1/fleets/:fleet_id',
    {
      config: {
        access: { kind: 'operator', permission: 'administer', place: fleetInPath },
        problems: ['precondition_required', 'precondition_failed', 'still_in_use'],
      },
      schema: {
        operationId: 'deleteFleet',
        summary: 'Delete a fleet without sites',
        tags,
        params,
        headers: IF_MATCH,
        response: { 204: nothing },
      },
    },
    async (request, reply) => {
      await fleets.remove(operationOf(request), request.params.fleet_id, expectedVersion(request));
      return reply.code(204).send(null);
    },
  );
}
