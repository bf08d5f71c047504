/** Routes of `/v1/sites/{site_id}/targets` and `/v1/targets/{target_id}`. */

import { SITE_PATH } from '../../../api-contract/members-contract.ts';
import {
  NEW_TARGET,
  TARGET,
  TARGET_CHANGE,
  TARGET_PATH,
  TARGET_WITH_TOKEN,
  TOKEN_ROTATION,
} from '../../../api-contract/targets-contract.ts';
import type { Targets } from '../../configuration/targets.ts';
import type { ControlApp } from '../app.ts';
import { siteInPath, targetInPath } from '../places.ts';
import { registerAction, registerResource } from '../resource-routes.ts';

export function registerTargetRoutes(app: ControlApp, targets: Targets): void {
  const basics = {
    tags: ['Targets'],
    view: TARGET,
    permission: 'administer',
    item: { url: '/v1/targets/:target_id', params: TARGET_PATH, place: targetInPath },
  } as const;
  registerResource(app, {
    ...basics,
    collection: { url: '/v1/sites/:site_id/targets', params: SITE_PATH, place: siteInPath },
    create: {
      operationId: 'createTarget',
      summary: 'Attach a target; its token is shown this once',
      body: NEW_TARGET,
      answer: TARGET_WITH_TOKEN,
      location: ({ target_id: id }) => `/v1/targets/${id}`,
      run: (operation, { site_id: siteId }, { name }) => targets.create(operation, siteId, name),
    },
    list: {
      operationId: 'listTargets',
      summary: 'Targets of a site, detached ones too',
      page: 'TargetPage',
      cursorOf: ({ target_id: id }) => id,
      run: ({ site_id: siteId }, page) => targets.list(siteId, page),
    },
    get: { operationId: 'getTarget', summary: 'A target', run: ({ target_id: id }) => targets.get(id) },
    change: {
      method: 'PATCH',
      operationId: 'renameTarget',
      summary: 'Rename a target',
      body: TARGET_CHANGE,
      run: (operation, { target_id: id }, version, { name }) => targets.rename(operation, id, version, name),
    },
  });
  registerAction(app, basics, {
    verb: 'rotate-token',
    operationId: 'rotateTargetToken',
    summary: 'Make a new token, shown this once; the one before stays good for a while',
    problems: ['target_state_conflict'],
    body: TOKEN_ROTATION,
    answer: TARGET_WITH_TOKEN,
    run: (operation, { target_id: id }, rotation) => targets.rotateToken(operation, id, rotation),
  });
  registerAction(app, basics, {
    verb: 'detach',
    operationId: 'detachTarget',
    summary: 'Detach a target: it gets nothing any more, and nothing waits for it',
    problems: ['target_state_conflict'],
    run: (operation, { target_id: id }) => targets.detach(operation, id),
  });
}
