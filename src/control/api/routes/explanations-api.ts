/** The route of `/v1/sites/{site_id}/explanations`. It changes nothing. Its body is neither audited nor logged. */
import Type from 'typebox';
import { parameters, SITE_PATH } from '../../../process/http-service/members-contract.ts';
import {
  EXPLANATION,
  EXPLANATION_REQUEST,
  MAX_EXPLANATION_BYTES,
} from '../../contract/explanation-contract.ts';
import type { Explained, Explanations } from '../../explanations/explanations.ts';
import { siteInPath } from '../api-access.ts';
import type { ControlApp } from '../app.ts';

export function registerExplanationRoute(app: ControlApp, explanations: Explanations): void {
  app.post(
    '/v1/sites/:site_id/explanations',
    {
      bodyLimit: MAX_EXPLANATION_BYTES,
      config: {
        access: { kind: 'operator', permission: 'read', place: siteInPath },
        problems: ['request_not_json', 'request_invalid', 'proof_not_expired', 'revision_not_held'],
      },
      schema: {
        operationId: 'explainRequest',
        summary: 'Explain step by step why a captured request is allowed or denied',
        description: 'Runs the steps of a verifier. Consumes, stores and logs nothing.',
        tags: ['Runtime'],
        params: parameters(SITE_PATH),
        body: EXPLANATION_REQUEST,
        response: { 200: Type.Unsafe<Explained>(EXPLANATION) },
      },
    },
    ({ params, body }) => explanations.explain(params.site_id, body),
  );
}
