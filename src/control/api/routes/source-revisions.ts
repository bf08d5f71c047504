/** `/v1/sources/{source_id}/revisions/{revision}`: a revision of a source, and what moves it. */
import type { RevisionName } from '../../sources/source-changes.ts';
import type { SourceService } from '../../sources/source-service.ts';
import type { ControlApp } from '../app.ts';
import { nothing, parameters } from '../contract/members.ts';
import {
  SOURCE_ACTIVATION,
  SOURCE_REVISION,
  SOURCE_REVISION_CHANGE,
  SOURCE_REVISION_PATH,
} from '../contract/sources.ts';
import { operationOf } from '../request-operation.ts';
import { entityTag, expectedVersion, IF_MATCH, sendVersioned } from '../versions.ts';
import { sourceInPath } from './source-place.ts';

const tags = ['Trust Anchor Sources'];

const reading = { kind: 'operator', permission: 'read', place: sourceInPath } as const;
const operating = { kind: 'operator', permission: 'operate', place: sourceInPath } as const;

function nameOf(params: { readonly source_id: string; readonly revision: number }): RevisionName {
  return { sourceId: params.source_id, revision: params.revision };
}

export function registerSourceRevisionRoutes(app: ControlApp, sources: SourceService): void {
  registerOneRevisionRoutes(app, sources);
  registerTransitionRoutes(app, sources);
}

function registerOneRevisionRoutes(app: ControlApp, sources: SourceService): void {
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
        response: { 200: SOURCE_REVISION, 304: nothing },
      },
    },
    async (request, reply) => {
      const view = await sources.revision(nameOf(request.params));
      // `waiting_for` follows the targets, without a new version: the tag never makes a 304.
      reply.header('etag', entityTag(view.version));
      return view;
    },
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
