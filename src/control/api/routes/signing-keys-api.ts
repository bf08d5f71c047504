/** Routes of `/v1/sites/{site_id}/signing-keys`: list, rotate, and retire early. */

import { parameters, SITE_PATH } from '../../../api-contract/members-contract.ts';
import {
  SIGNING_KEY,
  SIGNING_KEY_PATH,
  SIGNING_KEY_RETIREMENT,
  SIGNING_KEY_ROTATION,
  SIGNING_KEYS,
} from '../../../api-contract/signing-keys-contract.ts';
import type { SigningKeyAdministration } from '../../configuration/signing-keys.ts';
import type { ControlApp } from '../app.ts';
import { siteInPath } from '../places.ts';
import { operationOf } from '../versions.ts';

const tags = ['Signing keys'];

export function registerSigningKeyRoutes(app: ControlApp, keys: SigningKeyAdministration): void {
  const params = parameters(SITE_PATH);
  app.get(
    '/v1/sites/:site_id/signing-keys',
    {
      config: { access: { kind: 'operator', permission: 'read', place: siteInPath } },
      schema: {
        operationId: 'listSigningKeys',
        summary: 'Public halves of the keys that sign for a site, oldest first',
        tags,
        params,
        response: { 200: SIGNING_KEYS },
      },
    },
    async (request) => ({ items: await keys.list(request.params.site_id) }),
  );
  app.post(
    '/v1/sites/:site_id/signing-keys/rotate',
    {
      config: { access: { kind: 'operator', permission: 'administer', place: siteInPath } },
      schema: {
        operationId: 'rotateSigningKey',
        summary: 'Make a new key; the one before signs beside it for a while',
        tags,
        params,
        body: SIGNING_KEY_ROTATION,
        response: { 201: SIGNING_KEY },
      },
    },
    async (request, reply) => {
      const key = await keys.rotate(operationOf(request), request.params.site_id, request.body);
      return reply.code(201).send(key);
    },
  );
  app.post(
    '/v1/sites/:site_id/signing-keys/:signing_key_id/retire',
    {
      config: {
        access: { kind: 'operator', permission: 'administer', place: siteInPath },
        problems: ['signing_key_state_conflict'],
      },
      schema: {
        operationId: 'retireSigningKey',
        summary: 'End a retiring key now, or sooner than planned',
        description:
          'From then on verifiers that pin it and not the key after it refuse what is published, and deny once what they have is too old. It cannot be undone.',
        tags,
        params: parameters(SIGNING_KEY_PATH),
        body: SIGNING_KEY_RETIREMENT,
        response: { 200: SIGNING_KEY },
      },
    },
    (request) => {
      const { site_id: siteId, signing_key_id: id } = request.params;
      return keys.retire(operationOf(request), siteId, id, request.body);
    },
  );
}
