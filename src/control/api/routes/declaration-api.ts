/** The route of `/v1/sites/{site_id}/declaration`. */
import {
  DECLARATION_QUERY,
  DECLARATION_RESULT,
  MAX_DECLARATION_BYTES,
  SITE_DECLARATION,
} from '../../../api-contract/declaration-contract.ts';
import { parameters, SITE_PATH } from '../../../api-contract/members-contract.ts';
import type { Declarations } from '../../declaration/declarations.ts';
import { ApiProblem } from '../../domain/api-problem.ts';
import { principalOf } from '../api-access.ts';
import type { ControlApp } from '../app.ts';
import { IF_MATCH } from '../versions.ts';

export function registerDeclarationRoute(app: ControlApp, declarations: Declarations): void {
  app.put(
    '/v1/sites/:site_id/declaration',
    {
      bodyLimit: MAX_DECLARATION_BYTES,
      config: {
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
          'audience_taken',
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
      const { body, query, headers, params } = request;
      if (body.site.site_id !== params.site_id) {
        const faults = [{ pointer: '/body/site/site_id', reason: 'must be the site of the path' }];
        throw new ApiProblem('request_malformed', undefined, { faults });
      }
      const { actor, roles } = principalOf(request);
      const { result, tag } = await declarations.apply({
        operation: { actor, requestId: request.id },
        roles,
        declaration: body,
        dryRun: query.dry_run === 'true',
        prune: query.prune === 'true',
        ifMatch: headers['if-match'],
      });
      if (result.dry_run) reply.header('etag', tag);
      return result;
    },
  );
}
