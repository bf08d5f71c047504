/** Routes of `/v1/sites/{site_id}/oauth-issuers/{issuer}`, with a percent-encoded issuer. */
import { SITE_PATH } from '../../../process/http-service/members-contract.ts';
import type { OAuthIssuers } from '../../configuration/oauth-issuers.ts';
import {
  OAUTH_ISSUER,
  OAUTH_ISSUER_PATH,
  OAUTH_ISSUER_REPLACEMENT,
} from '../../contract/oauth-issuers-contract.ts';
import { siteInPath } from '../api-access.ts';
import type { ControlApp } from '../app.ts';
import { registerResource } from '../resource-routes.ts';

const URL = '/v1/sites/:site_id/oauth-issuers';

export function registerOAuthIssuerRoutes(app: ControlApp, issuers: OAuthIssuers): void {
  registerResource(app, {
    tags: ['OAuth issuers'],
    view: OAUTH_ISSUER,
    permission: 'administer',
    collection: { url: URL, params: SITE_PATH, place: siteInPath },
    item: { url: `${URL}/:issuer`, params: OAUTH_ISSUER_PATH, place: siteInPath },
    list: {
      operationId: 'listOAuthIssuers',
      summary: 'OAuth authorization servers of a site',
      page: 'OAuthIssuerPage',
      cursorOf: ({ issuer }) => issuer,
      run: ({ site_id: siteId }, page) => issuers.list(siteId, page),
    },
    get: {
      operationId: 'getOAuthIssuer',
      summary: 'An OAuth authorization server, with the keys that Control fetched',
      // Fetches change its keys without a new version.
      isLive: true,
      run: ({ site_id: siteId, issuer }) => issuers.get(siteId, issuer),
    },
    put: {
      operationId: 'putOAuthIssuer',
      summary:
        'Create an authorization server without If-Match, or change it with If-Match; fetches its keys again',
      problems: ['definition_invalid', 'target_too_old'],
      body: OAUTH_ISSUER_REPLACEMENT,
      run: (operation, { site_id: siteId, issuer }, version, { definition }) =>
        issuers.put(operation, { siteId, issuer }, version, definition),
    },
    remove: {
      operationId: 'deleteOAuthIssuer',
      summary: 'Remove an authorization server',
      run: (operation, { site_id: siteId, issuer }, version) =>
        issuers.remove(operation, { siteId, issuer }, version),
    },
  });
}
