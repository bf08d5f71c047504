/** `/v1/sites/{site_id}/brokers/{issuer}`: the issuer percent-encoded. */
import { type Brokers, brokerView } from '../../configuration/brokers.ts';
import type { ControlApp } from '../app.ts';
import { nothing, parameters, SITE_PATH } from '../contract/members.ts';
import { BROKER, BROKER_PATH, BROKER_REPLACEMENT } from '../contract/routes.ts';
import { PAGE_QUERY, page, pageOf } from '../pagination.ts';
import { siteInPath } from '../places.ts';
import { operationOf } from '../request-operation.ts';
import { expectedVersion, IF_MATCH, optionalVersion, sendVersioned } from '../versions.ts';
import { MAX_DEFINITION_BYTES } from './routes.ts';

const tags = ['Brokers'];

export function registerBrokerRoutes(app: ControlApp, brokers: Brokers): void {
  const params = parameters(BROKER_PATH);
  app.get(
    '/v1/sites/:site_id/brokers',
    {
      config: { access: { kind: 'operator', permission: 'read', place: siteInPath } },
      schema: {
        operationId: 'listBrokers',
        summary: 'Brokers of a site',
        tags,
        params: parameters(SITE_PATH),
        querystring: PAGE_QUERY,
        response: { 200: pageOf(BROKER, 'BrokerPage') },
      },
    },
    (request) => {
      const { site_id: siteId } = request.params;
      return page(
        request.query,
        (asked) => brokers.list(siteId, asked),
        ({ issuer }) => issuer,
        brokerView,
      );
    },
  );
  app.get(
    '/v1/sites/:site_id/brokers/:issuer',
    {
      config: { access: { kind: 'operator', permission: 'read', place: siteInPath } },
      schema: {
        operationId: 'getBroker',
        summary: 'A broker',
        tags,
        params,
        response: { 200: BROKER, 304: nothing },
      },
    },
    async (request, reply) => {
      const { site_id: siteId, issuer } = request.params;
      return sendVersioned(request, reply, await brokers.get({ siteId, issuer }));
    },
  );
  registerBrokerChanges(app, brokers);
}

function registerBrokerChanges(app: ControlApp, brokers: Brokers): void {
  const params = parameters(BROKER_PATH);
  app.put(
    '/v1/sites/:site_id/brokers/:issuer',
    {
      bodyLimit: MAX_DEFINITION_BYTES,
      config: {
        access: { kind: 'operator', permission: 'administer', place: siteInPath },
        problems: ['precondition_required', 'precondition_failed', 'definition_invalid'],
      },
      schema: {
        operationId: 'putBroker',
        summary: 'Trust a broker, or change what it may. Without If-Match: a new one',
        tags,
        params,
        headers: IF_MATCH,
        body: BROKER_REPLACEMENT,
        response: { 200: BROKER, 201: BROKER },
      },
    },
    async (request, reply) => {
      const { site_id: siteId, issuer } = request.params;
      const version = optionalVersion(request);
      const { definition } = request.body;
      const put = await brokers.put(operationOf(request), { siteId, issuer }, version, definition);
      reply.code(put.created ? 201 : 200);
      return sendVersioned(request, reply, put.view);
    },
  );
  app.delete(
    '/v1/sites/:site_id/brokers/:issuer',
    {
      config: {
        access: { kind: 'operator', permission: 'administer', place: siteInPath },
        problems: ['precondition_required', 'precondition_failed'],
      },
      schema: {
        operationId: 'deleteBroker',
        summary: 'Trust a broker no longer',
        tags,
        params,
        headers: IF_MATCH,
        response: { 204: nothing },
      },
    },
    async (request, reply) => {
      const { site_id: siteId, issuer } = request.params;
      await brokers.remove(operationOf(request), { siteId, issuer }, expectedVersion(request));
      return reply.code(204).send(null);
    },
  );
}
