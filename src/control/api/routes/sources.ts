/** `/v1/sites/{site_id}/sources` and `/v1/sources`: Trust Anchor Sources. */
import type { SourceService } from '../../sources/source-service.ts';
import type { ControlApp } from '../app.ts';
import { nothing, parameters, SITE_PATH } from '../contract/members.ts';
import {
  SOURCE,
  SOURCE_CHANGE,
  SOURCE_CREATION,
  SOURCE_PATH,
  SOURCE_REVISION,
  SOURCE_REVISION_CHANGE,
} from '../contract/sources.ts';
import { PAGE_QUERY, page, pageOf } from '../pagination.ts';
import { siteInPath } from '../places.ts';
import { IDEMPOTENCY_KEY, operationOf, sendCreated } from '../request-operation.ts';
import { entityTag, expectedVersion, IF_MATCH, sendVersioned } from '../versions.ts';
import { sourceInPath } from './source-place.ts';
import { registerSourceRevisionRoutes } from './source-revisions.ts';

const tags = ['Trust Anchor Sources'];

const reading = { kind: 'operator', permission: 'read', place: sourceInPath } as const;
const operating = { kind: 'operator', permission: 'operate', place: sourceInPath } as const;

export function registerSourceRoutes(app: ControlApp, sources: SourceService): void {
  registerSiteSourceRoutes(app, sources);
  registerOneSourceRoutes(app, sources);
  registerSourceRevisionRoutes(app, sources);
}

function registerSiteSourceRoutes(app: ControlApp, sources: SourceService): void {
  const params = parameters(SITE_PATH);
  app.post(
    '/v1/sites/:site_id/sources',
    {
      config: {
        access: { kind: 'operator', permission: 'operate', place: siteInPath },
        problems: ['audience_taken', 'idempotency_conflict'],
      },
      schema: {
        operationId: 'createSource',
        summary: 'Make a source with its first draft',
        tags,
        params,
        headers: IDEMPOTENCY_KEY,
        body: SOURCE_CREATION,
        response: { 201: SOURCE },
      },
    },
    async (request, reply) => {
      const { site_id: siteId } = request.params;
      const created = await sources.drafts.create(siteId, request.body, operationOf(request));
      return sendCreated(reply, created, ({ source_id: id }) => `/v1/sources/${id}`);
    },
  );
  app.get(
    '/v1/sites/:site_id/sources',
    {
      config: { access: { kind: 'operator', permission: 'read', place: siteInPath } },
      schema: {
        operationId: 'listSources',
        summary: 'Sources of a site, with their revisions',
        tags,
        params,
        querystring: PAGE_QUERY,
        response: { 200: pageOf(SOURCE, 'SourcePage') },
      },
    },
    (request) =>
      page(
        request.query,
        (asked) => sources.sourcesOfSite(request.params.site_id, asked),
        ({ source_id: id }) => id,
        (source) => source,
      ),
  );
}

function registerOneSourceRoutes(app: ControlApp, sources: SourceService): void {
  const params = parameters(SOURCE_PATH);
  app.get(
    '/v1/sources/:source_id',
    {
      config: { access: reading },
      schema: {
        operationId: 'getSource',
        summary: 'A source, with its revisions',
        tags,
        params,
        response: { 200: SOURCE },
      },
    },
    async (request, reply) => {
      const view = await sources.source(request.params.source_id);
      // The tag is the source's own: revisions move without it, so it never makes a 304.
      reply.header('etag', entityTag(view.version));
      return view;
    },
  );
  app.patch(
    '/v1/sources/:source_id',
    {
      config: { access: operating, problems: ['precondition_required', 'precondition_failed'] },
      schema: {
        operationId: 'changeSource',
        summary: 'Change its name, or what happens to its keys',
        tags,
        params,
        headers: IF_MATCH,
        body: SOURCE_CHANGE,
        response: { 200: SOURCE },
      },
    },
    async (request, reply) => {
      const { source_id: id } = request.params;
      const operation = operationOf(request);
      const view = await sources.drafts.change(id, request.body, expectedVersion(request), operation);
      return sendVersioned(request, reply, view);
    },
  );
  app.delete(
    '/v1/sources/:source_id',
    {
      config: {
        access: operating,
        problems: ['precondition_required', 'precondition_failed', 'source_state_conflict'],
      },
      schema: {
        operationId: 'deleteSource',
        summary: 'Delete a source of nothing but drafts',
        tags,
        params,
        headers: IF_MATCH,
        response: { 204: nothing },
      },
    },
    async (request, reply) => {
      const { source_id: id } = request.params;
      await sources.drafts.deleteSource(id, expectedVersion(request), operationOf(request));
      return reply.code(204).send(null);
    },
  );
  app.post(
    '/v1/sources/:source_id/revisions',
    {
      config: {
        access: operating,
        problems: [
          'source_revision_in_progress',
          'source_state_conflict',
          'audience_taken',
          'idempotency_conflict',
        ],
      },
      schema: {
        operationId: 'createSourceRevision',
        summary: 'Make a draft beside the newest revision',
        tags,
        params,
        headers: IDEMPOTENCY_KEY,
        body: SOURCE_REVISION_CHANGE,
        response: { 201: SOURCE_REVISION },
      },
    },
    async (request, reply) => {
      const { source_id: id } = request.params;
      const created = await sources.drafts.addRevision(id, request.body, operationOf(request));
      return sendCreated(reply, created, ({ revision }) => `/v1/sources/${id}/revisions/${revision}`);
    },
  );
}
