/** Routes of `/v1/sites/{site_id}/blocked-callers`. */

import { nothing, parameters, REASON, SITE_PATH } from '../../../process/http-service/members-contract.ts';
import { type BlockedCallers, callerPlace } from '../../configuration/blocked-callers.ts';
import { BLOCKED_CALLER, CALLER_NAME, NEW_BLOCKED_CALLER } from '../../contract/blocked-callers-contract.ts';
import { siteInPath } from '../api-access.ts';
import type { ControlApp } from '../app.ts';
import { registerResource } from '../resource-routes.ts';
import { operationOf } from '../versions.ts';

const tags = ['Blocked callers'];
const CALLERS = { url: '/v1/sites/:site_id/blocked-callers', params: SITE_PATH, place: siteInPath };

export function registerBlockedCallerRoutes(app: ControlApp, callers: BlockedCallers): void {
  registerResource(app, {
    tags,
    view: BLOCKED_CALLER,
    permission: 'operate',
    collection: CALLERS,
    item: CALLERS,
    list: {
      operationId: 'listBlockedCallers',
      summary: 'Callers whose requests are denied, with the targets that hold the publication back',
      page: 'BlockedCallerPage',
      cursorOf: callerPlace,
      run: ({ site_id: siteId }, page) => callers.list(siteId, page),
    },
    create: {
      operationId: 'blockCaller',
      summary: 'Deny the requests of a subject or holder key of an issuer on every route',
      problems: ['already_exists', 'definition_invalid', 'reference_unknown'],
      body: NEW_BLOCKED_CALLER,
      location: ({ site_id: siteId, issuer, subject, holder_thumbprint: holder }) => {
        const selector = subject === undefined ? { holder_thumbprint: holder ?? '' } : { subject };
        const name = new URLSearchParams({ issuer, ...selector });
        return `/v1/sites/${encodeURIComponent(siteId)}/blocked-callers?${name}`;
      },
      run: (operation, { site_id: siteId }, caller) => callers.block(siteId, caller, operation),
    },
  });
  app.delete(
    CALLERS.url,
    {
      config: {
        access: { kind: 'operator', permission: 'operate', place: siteInPath },
        problems: ['definition_invalid'],
      },
      schema: {
        operationId: 'unblockCaller',
        summary: 'Admit a blocked caller again',
        tags,
        params: parameters(SITE_PATH),
        querystring: parameters({ ...CALLER_NAME, ...REASON }),
        response: { 204: nothing },
      },
    },
    async (request, reply) => {
      const { reason: _, ...caller } = request.query;
      await callers.unblock(request.params.site_id, caller, operationOf(request));
      return reply.code(204).send(null);
    },
  );
}
