/** `/v1/sites/{site_id}/targets` and `/v1/targets/{target_id}`. */
import { type Targets, targetView } from '../../configuration/targets.ts';
import type { ControlApp } from '../app.ts';
import { nothing, parameters, SITE_PATH } from '../contract/members.ts';
import {
  NEW_TARGET,
  TARGET,
  TARGET_CHANGE,
  TARGET_PATH,
  TARGET_WITH_TOKEN,
  TOKEN_ROTATION,
} from '../contract/targets.ts';
import { PAGE_QUERY, page, pageOf } from '../pagination.ts';
import { siteInPath, targetInPath } from '../places.ts';
import { IDEMPOTENCY_KEY, operationOf, sendCreated } from '../request-operation.ts';
import { entityTag, expectedVersion, IF_MATCH, sendVersioned } from '../versions.ts';

const tags = ['Targets'];

export function registerTargetRoutes(app: ControlApp, targets: Targets): void {
  app.post(
    '/v1/sites/:site_id/targets',
    {
      config: {
        access: { kind: 'operator', permission: 'administer', place: siteInPath },
        problems: ['idempotency_conflict'],
      },
      schema: {
        operationId: 'createTarget',
        summary: 'Attach a target; its token is shown this once',
        tags,
        params: parameters(SITE_PATH),
        headers: IDEMPOTENCY_KEY,
        body: NEW_TARGET,
        response: { 201: TARGET_WITH_TOKEN },
      },
    },
    async (request, reply) => {
      const created = await targets.create(operationOf(request), request.params.site_id, request.body.name);
      return sendCreated(reply, created, ({ target_id: id }) => `/v1/targets/${id}`);
    },
  );
  app.get(
    '/v1/sites/:site_id/targets',
    {
      config: { access: { kind: 'operator', permission: 'read', place: siteInPath } },
      schema: {
        operationId: 'listTargets',
        summary: 'Targets of a site, detached ones too',
        tags,
        params: parameters(SITE_PATH),
        querystring: PAGE_QUERY,
        response: { 200: pageOf(TARGET, 'TargetPage') },
      },
    },
    (request) => {
      const { site_id: siteId } = request.params;
      return page(
        request.query,
        (asked) => targets.list(siteId, asked),
        ({ id }) => id,
        targetView,
      );
    },
  );
  registerOneTargetRoutes(app, targets);
  registerTargetActions(app, targets);
}

function registerOneTargetRoutes(app: ControlApp, targets: Targets): void {
  const params = parameters(TARGET_PATH);
  app.get(
    '/v1/targets/:target_id',
    {
      config: { access: { kind: 'operator', permission: 'read', place: targetInPath } },
      schema: {
        operationId: 'getTarget',
        summary: 'A target',
        tags,
        params,
        response: { 200: TARGET, 304: nothing },
      },
    },
    async (request, reply) => sendVersioned(request, reply, await targets.get(request.params.target_id)),
  );
  app.patch(
    '/v1/targets/:target_id',
    {
      config: {
        access: { kind: 'operator', permission: 'administer', place: targetInPath },
        problems: ['precondition_required', 'precondition_failed'],
      },
      schema: {
        operationId: 'renameTarget',
        summary: 'Rename a target',
        tags,
        params,
        headers: IF_MATCH,
        body: TARGET_CHANGE,
        response: { 200: TARGET },
      },
    },
    async (request, reply) => {
      const version = expectedVersion(request);
      const { target_id: id } = request.params;
      const view = await targets.rename(operationOf(request), id, version, request.body.name);
      return sendVersioned(request, reply, view);
    },
  );
}

function registerTargetActions(app: ControlApp, targets: Targets): void {
  const params = parameters(TARGET_PATH);
  app.post(
    '/v1/targets/:target_id/rotate-token',
    {
      config: {
        access: { kind: 'operator', permission: 'administer', place: targetInPath },
        problems: ['target_state_conflict'],
      },
      schema: {
        operationId: 'rotateTargetToken',
        summary: 'Make a new token, shown this once; the one before stays good for a while',
        tags,
        params,
        body: TOKEN_ROTATION,
        response: { 200: TARGET_WITH_TOKEN },
      },
    },
    async (request, reply) => {
      const { target_id: id } = request.params;
      const { view, token } = await targets.rotateToken(operationOf(request), id, request.body);
      reply.header('etag', entityTag(view.version));
      return { ...view, token };
    },
  );
  app.post(
    '/v1/targets/:target_id/detach',
    {
      config: {
        access: { kind: 'operator', permission: 'administer', place: targetInPath },
        problems: ['target_state_conflict'],
      },
      schema: {
        operationId: 'detachTarget',
        summary: 'Detach a target: it gets nothing any more, and nothing waits for it',
        tags,
        params,
        response: { 200: TARGET },
      },
    },
    async (request, reply) => {
      const view = await targets.detach(operationOf(request), request.params.target_id);
      return sendVersioned(request, reply, view);
    },
  );
}
