/** The route of `/v1/sites/{site_id}/declaration`. */

import { parameters, SITE_PATH } from '../../../process/http-service/members-contract.ts';
import { compileAllButBody } from '../../../process/http-service/request-shape.ts';
import {
  DECLARATION_QUERY,
  DECLARATION_RESULT,
  type DeclarationResult,
  MAX_DECLARATION_BYTES,
  SITE_DECLARATION,
} from '../../contract/declaration-contract.ts';
import type { Declarations } from '../../declaration/declarations.ts';
import { ApiProblem } from '../../domain/api-problem.ts';
import { principalOf } from '../api-access.ts';
import type { ControlApp } from '../app.ts';
import { type DeclarationRoom, DeclarationSpace } from '../declaration-space.ts';
import { IF_MATCH } from '../versions.ts';

export function registerDeclarationRoute(app: ControlApp, declarations: Pick<Declarations, 'apply'>): void {
  const space = new DeclarationSpace();
  const rooms = new WeakMap<object, DeclarationRoom>();
  app.put(
    '/v1/sites/:site_id/declaration',
    {
      bodyLimit: MAX_DECLARATION_BYTES,
      validatorCompiler: compileAllButBody,
      onRequest: async (request, reply) => {
        const bytes = Number(request.headers['content-length'] ?? MAX_DECLARATION_BYTES);
        rooms.set(request.raw, space.take(Math.min(bytes, MAX_DECLARATION_BYTES), reply.raw));
      },
      config: {
        isBodyParsedLater: true,
        // The steps decide which permissions are required, and where: the site may not exist yet.
        access: { kind: 'signed_in' },
        problems: [
          'not_found',
          'permission_denied',
          'precondition_required',
          'precondition_failed',
          'member_fixed',
          'broker_keys_differ',
          'definition_invalid',
          'already_exists',
          'still_in_use',
          'request_too_large',
          'rate_limited',
          'audience_taken',
          'target_too_old',
          'source_state_conflict',
          'source_scope_mismatch',
          'source_revision_in_progress',
          'source_capacity_exhausted',
          'policy_state_conflict',
          'policy_revision_outdated',
          'verified_subject_invalid',
        ],
      },
      schema: {
        operationId: 'declareSite',
        summary: 'Make a site as declared, in one transaction',
        description:
          'Creates a missing site, with its environment and fleet. Send If-Match with the ETag of a dry run; only a new site needs none. Each step requires the permission of its own operation, a dry run only read. The activation of sources continues in the background.',
        tags: ['Sites'],
        params: parameters(SITE_PATH),
        querystring: parameters(DECLARATION_QUERY),
        headers: IF_MATCH,
        body: SITE_DECLARATION,
        response: { 200: DECLARATION_RESULT },
      },
    },
    async (request, reply) => {
      const { query, headers, params } = request;
      const body: unknown = request.body;
      const room = rooms.get(request.raw);
      if (!Buffer.isBuffer(body) || room === undefined) throw missingBody();
      const { actor, roles } = principalOf(request);
      const dryRun = query.dry_run === 'true';
      const declaration = {
        ...{
          operation: { actor, requestId: request.id, reason: query.reason },
          body,
          siteId: params.site_id,
          roles,
          dryRun,
        },
        prune: query.prune === 'true',
        contents: query.contents === 'true',
        ifMatch: headers['if-match'],
      };
      const declared = await room.during((signal) => declarations.apply({ ...declaration, signal }));
      if (declared.kind === 'applied') return declared.result;
      if (dryRun) reply.header('etag', declared.tag);
      // The result was already serialized by its schema.
      reply.type('application/json; charset=utf-8');
      return declared.answer as unknown as DeclarationResult;
    },
  );
}

function missingBody(): ApiProblem {
  return new ApiProblem('request_malformed', undefined, {
    faults: [{ pointer: '/body', reason: 'missing' }],
  });
}
