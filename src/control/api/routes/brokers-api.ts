/** Routes of `/v1/sites/{site_id}/brokers/{issuer}`, with a percent-encoded issuer. */

import { SITE_PATH } from '../../../api-contract/members-contract.ts';
import { BROKER, BROKER_PATH, BROKER_REPLACEMENT } from '../../../api-contract/routes-contract.ts';
import type { Brokers } from '../../configuration/brokers.ts';
import type { ControlApp } from '../app.ts';
import { siteInPath } from '../places.ts';
import { registerResource } from '../resource-routes.ts';
import { MAX_DEFINITION_BYTES } from './site-policy-api.ts';

export function registerBrokerRoutes(app: ControlApp, brokers: Brokers): void {
  registerResource(app, {
    tags: ['Brokers'],
    view: BROKER,
    permission: 'administer',
    bodyLimit: MAX_DEFINITION_BYTES,
    collection: { url: '/v1/sites/:site_id/brokers', params: SITE_PATH, place: siteInPath },
    item: { url: '/v1/sites/:site_id/brokers/:issuer', params: BROKER_PATH, place: siteInPath },
    list: {
      operationId: 'listBrokers',
      summary: 'Brokers of a site',
      page: 'BrokerPage',
      cursorOf: ({ issuer }) => issuer,
      run: ({ site_id: siteId }, page) => brokers.list(siteId, page),
    },
    get: {
      operationId: 'getBroker',
      summary: 'A broker',
      run: ({ site_id: siteId, issuer }) => brokers.get(siteId, issuer),
    },
    put: {
      operationId: 'putBroker',
      summary: 'Trust a broker, or change what it may. Without If-Match: a new one',
      problems: ['definition_invalid'],
      body: BROKER_REPLACEMENT,
      run: (operation, { site_id: siteId, issuer }, version, { definition }) =>
        brokers.put(operation, { siteId, issuer }, version, definition),
    },
    remove: {
      operationId: 'deleteBroker',
      summary: 'Trust a broker no longer',
      run: (operation, { site_id: siteId, issuer }, version) =>
        brokers.remove(operation, { siteId, issuer }, version),
    },
  });
}
