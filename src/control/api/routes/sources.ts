/** `/v1/sites/{site_id}/sources` and `/v1/sources`: Trust Anchor Sources and their revisions. */
import type { RevisionName } from '../../sources/source-changes.ts';
import type { SourceService } from '../../sources/source-service.ts';
import type { PlaceOf } from '../access.ts';
import type { ControlApp } from '../app.ts';
import { nothing, parameters, SITE_PATH } from '../contract/members.ts';
import {
  SOURCE,
  SOURCE_ACTIVATION,
  SOURCE_CHANGE,
  SOURCE_CREATION,
  SOURCE_PATH,
  SOURCE_REVISION,
  SOURCE_REVISION_CHANGE,
  SOURCE_REVISION_PATH,
} from '../contract/sources.ts';
import { PAGE_QUERY, page, pageOf } from '../pagination.ts';
import { pathText, siteInPath } from '../places.ts';
import { IDEMPOTENCY_KEY, operationOf, sendCreated } from '../request-operation.ts';
import { entityTag, expectedVersion, IF_MATCH, sendVersioned } from '../versions.ts';

const tags = ['Trust Anchor Sources'];

/** `…/sources/:source_id…` */
const sourceInPath: PlaceOf = async (request, tx) => {
  const source = await tx.sources.source(pathText(request, 'source_id'));
  return source && tx.hierarchy.placeOfSite(source.siteId);
};

const reading = { kind: 'operator', permission: 'read', place: sourceInPath } as const;
const operating = { kind: 'operator', permission: 'operate', place: sourceInPath } as const;

export function registerSourceRoutes(app: ControlApp, sources: SourceService): void {
  registerSiteSourceRoutes(app, sources);
  registerOneSourceRoutes(app, sources);
  registerRevisionRoutes(app, sources);
  registerTransitionRoutes(app, sources);
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

function nameOf(params: { readonly source_id: string; readonly revision: number }): RevisionName {
  return { sourceId: params.source_id, revision: params.revision };
}

function registerRevisionRoutes(app: ControlApp, sources: SourceService): void {
  const params = parameters(SOURCE_REVISION_PATH);
  app.get(
    '/v1/sources/:source_id/revisions/:revision',
    {
      config: { access: reading },
      schema: {
        operationId: 'getSourceRevision',
        summary: 'A revision of a source',
        tags,
        params,
        response: { 200: SOURCE_REVISION },
      },
    },
    async (request, reply) => sendVersioned(request, reply, await sources.revision(nameOf(request.params))),
  );
  app.patch(
    '/v1/sources/:source_id/revisions/:revision',
    {
      config: {
        access: operating,
        problems: ['precondition_required', 'precondition_failed', 'source_state_conflict', 'audience_taken'],
      },
      schema: {
        operationId: 'changeSourceRevision',
        summary: 'Edit a draft, or what was validated: then it is a draft again',
        tags,
        params,
        headers: IF_MATCH,
        body: SOURCE_REVISION_CHANGE,
        response: { 200: SOURCE_REVISION },
      },
    },
    async (request, reply) => {
      const name = nameOf(request.params);
      const version = expectedVersion(request);
      const view = await sources.drafts.editRevision(name, request.body, version, operationOf(request));
      return sendVersioned(request, reply, view);
    },
  );
  app.delete(
    '/v1/sources/:source_id/revisions/:revision',
    {
      config: {
        access: operating,
        problems: ['precondition_required', 'precondition_failed', 'source_state_conflict'],
      },
      schema: {
        operationId: 'deleteSourceRevision',
        summary: 'Delete a draft beside other revisions',
        tags,
        params,
        headers: IF_MATCH,
        response: { 204: nothing },
      },
    },
    async (request, reply) => {
      const name = nameOf(request.params);
      await sources.drafts.deleteRevision(name, expectedVersion(request), operationOf(request));
      return reply.code(204).send(null);
    },
  );
}

const TRANSITIONS = [
  {
    verb: 'validate',
    operationId: 'validateSourceRevision',
    summary: 'Ask the issuer about itself; answers with what was found',
    problems: ['source_state_conflict', 'precondition_failed'],
    run: (sources: SourceService) => sources.validator.validate.bind(sources.validator),
  },
  {
    verb: 'suspend',
    operationId: 'suspendSourceRevision',
    summary: 'No new enrollments until it is resumed',
    problems: ['source_state_conflict'],
    run: (sources: SourceService) => sources.lifecycle.suspend.bind(sources.lifecycle),
  },
  {
    verb: 'resume',
    operationId: 'resumeSourceRevision',
    summary: 'Publish a suspended revision again',
    problems: ['source_state_conflict', 'source_revision_in_progress'],
    run: (sources: SourceService) => sources.lifecycle.resume.bind(sources.lifecycle),
  },
  {
    verb: 'retire',
    operationId: 'retireSourceRevision',
    summary: 'No new enrollments ever again; gives the slot back',
    problems: ['source_state_conflict'],
    run: (sources: SourceService) => sources.lifecycle.retire.bind(sources.lifecycle),
  },
] as const;

function registerTransitionRoutes(app: ControlApp, sources: SourceService): void {
  const params = parameters(SOURCE_REVISION_PATH);
  for (const { verb, operationId, summary, problems, run } of TRANSITIONS) {
    const transition = run(sources);
    app.post(
      `/v1/sources/:source_id/revisions/:revision/${verb}`,
      {
        config: { access: operating, problems },
        schema: { operationId, summary, tags, params, response: { 200: SOURCE_REVISION } },
      },
      async (request, reply) =>
        sendVersioned(request, reply, await transition(nameOf(request.params), operationOf(request))),
    );
  }
  app.post(
    '/v1/sources/:source_id/revisions/:revision/activate',
    {
      config: {
        access: operating,
        problems: [
          'source_state_conflict',
          'source_scope_mismatch',
          'source_revision_in_progress',
          'source_capacity_exhausted',
          'audience_taken',
        ],
      },
      schema: {
        operationId: 'activateSourceRevision',
        summary: 'Take a slot and begin to activate; the operator names the scope that they expect',
        tags,
        params,
        body: SOURCE_ACTIVATION,
        response: { 200: SOURCE_REVISION },
      },
    },
    async (request, reply) => {
      const { expected_scope: scope } = request.body;
      const name = nameOf(request.params);
      const view = await sources.activation.activate(name, scope, operationOf(request));
      return sendVersioned(request, reply, view);
    },
  );
}
