/** Routes of `/v1/enrollments` for workloads and operators, and of `/v1/sites/{site_id}/enrollments`. */

import Type from 'typebox';
import {
  CHALLENGE_ANSWER,
  CHALLENGE_REQUEST,
  ENROLLMENT_SUBMISSION,
  WORKLOAD_ENROLLMENT,
  WORKLOAD_READINESS,
} from '../../../api-contract/enrollment-contract.ts';
import {
  ENROLLMENT,
  ENROLLMENT_DENIAL,
  ENROLLMENT_FILTER,
  ENROLLMENT_PATH,
} from '../../../api-contract/enrollments-contract.ts';
import { nothing, parameters, SITE_PATH } from '../../../api-contract/members-contract.ts';
import type { EnrollmentDecisions } from '../../enrollment/decisions.ts';
import type { WorkloadEnrollments } from '../../enrollment/workload-enrollments.ts';
import { comesAsWorkload, type PlaceOf } from '../api-access.ts';
import type { ControlApp } from '../app.ts';
import { pathText, siteInPath } from '../places.ts';
import { registerAction, registerResource } from '../resource-routes.ts';
import { sendVersioned } from '../versions.ts';

const tags = ['Enrollments'];

/** `…/enrollments/:enrollment_id…` */
const enrollmentInPath: PlaceOf = async (request, tx) => {
  const enrollment = await tx.enrollments.find(pathText(request, 'enrollment_id'));
  return enrollment && tx.hierarchy.placeOfSite(enrollment.siteId);
};

export interface EnrollmentRoutesDeps {
  readonly workloads: WorkloadEnrollments;
  readonly decisions: EnrollmentDecisions;
}

export function registerEnrollmentRoutes(app: ControlApp, deps: EnrollmentRoutesDeps): void {
  registerWorkloadRoutes(app, deps.workloads);
  registerStandingRoute(app, deps);
  registerDecisionRoutes(app, deps.decisions);
}

const POLICY_PROBLEMS = [
  'policy_not_active',
  'policy_revision_outdated',
  'source_not_active',
  'subject_blocked',
  'key_revoked',
  'token_key_limit',
] as const;

const TOKEN_PROBLEMS = [
  'token_malformed',
  'token_header',
  'token_algorithm',
  'token_key_unknown',
  'token_signature',
  'token_issuer',
  'token_audience',
  'token_subject',
  'token_expiry_missing',
  'token_expired',
  'token_not_yet_valid',
  'token_lifetime',
  'token_claims',
  'issuer_keys_unavailable',
] as const;

function registerWorkloadRoutes(app: ControlApp, workloads: WorkloadEnrollments): void {
  app.post(
    '/v1/enrollments/challenges',
    {
      config: {
        access: { kind: 'workload' },
        problems: [
          'unsupported_enrollment_provider',
          'policy_unknown',
          'public_key_invalid',
          ...POLICY_PROBLEMS,
        ],
      },
      schema: {
        operationId: 'createEnrollmentChallenge',
        summary: 'Begin to enroll a public key',
        tags,
        body: CHALLENGE_REQUEST,
        response: { 201: CHALLENGE_ANSWER },
      },
    },
    async (request, reply) => {
      await app.limits.policy(request, request.body.policy);
      reply.code(201);
      return workloads.challenge(request.body, request.id);
    },
  );
  app.post(
    '/v1/enrollments',
    {
      config: {
        access: { kind: 'workload' },
        problems: [
          'challenge_unknown',
          'challenge_expired',
          'challenge_consumed',
          'signature_invalid',
          ...POLICY_PROBLEMS,
          ...TOKEN_PROBLEMS,
        ],
      },
      schema: {
        operationId: 'submitEnrollment',
        summary: 'Answer a challenge with a workload token; the same answer again gets the same enrollment',
        tags,
        body: ENROLLMENT_SUBMISSION,
        response: { 200: WORKLOAD_ENROLLMENT, 201: WORKLOAD_ENROLLMENT },
      },
    },
    async (request, reply) => {
      const takeTurn = (reference: string) => app.limits.policy(request, reference);
      const { created, enrollment } = await workloads.submit(request.body, takeTurn, request.id);
      if (created) reply.header('location', `/v1/enrollments/${enrollment.enrollment_id}`);
      reply.code(created ? 201 : 200);
      return enrollment;
    },
  );
  app.get(
    '/v1/enrollments/:enrollment_id/readiness',
    {
      config: { access: { kind: 'workload' }, problems: ['poll_unauthorized', 'enrollment_unknown'] },
      schema: {
        operationId: 'getEnrollmentReadiness',
        summary: 'Whether the key of an enrollment can be used yet, and what blocks it; asked by the key',
        tags,
        params: parameters(ENROLLMENT_PATH),
        response: { 200: WORKLOAD_READINESS },
      },
    },
    (request) => workloads.readiness(request.params.enrollment_id, request.headers.authorization),
  );
}

/** Serves operators and workloads at one URL: a workload sees only its own enrollment. */
function registerStandingRoute(app: ControlApp, { workloads, decisions }: EnrollmentRoutesDeps): void {
  app.get(
    '/v1/enrollments/:enrollment_id',
    {
      config: {
        access: { kind: 'operator_or_workload', permission: 'read', place: enrollmentInPath },
        problems: ['poll_unauthorized', 'enrollment_unknown'],
      },
      schema: {
        operationId: 'getEnrollment',
        summary: 'How an enrollment stands: to its own key, or to an operator',
        tags,
        params: parameters(ENROLLMENT_PATH),
        response: { 200: Type.Union([WORKLOAD_ENROLLMENT, ENROLLMENT]), 304: nothing },
      },
    },
    async (request, reply) => {
      const { enrollment_id: id } = request.params;
      if (comesAsWorkload(request)) return workloads.poll(id, request.headers.authorization);
      return sendVersioned(request, reply, await decisions.enrollment(id));
    },
  );
}

function registerDecisionRoutes(app: ControlApp, decisions: EnrollmentDecisions): void {
  const basics = {
    tags,
    view: ENROLLMENT,
    permission: 'decide_enrollments',
    item: { url: '/v1/enrollments/:enrollment_id', params: ENROLLMENT_PATH, place: enrollmentInPath },
  } as const;
  registerResource(app, {
    ...basics,
    collection: { url: '/v1/sites/:site_id/enrollments', params: SITE_PATH, place: siteInPath },
    list: {
      operationId: 'listEnrollments',
      summary: 'Enrollments of a site',
      page: 'EnrollmentPage',
      filter: ENROLLMENT_FILTER,
      cursorOf: ({ enrollment_id: id }) => id,
      run: ({ site_id: siteId }, page, { state, policy_id: policyId }) =>
        decisions.ofSite(siteId, { state, policyId }, page),
    },
  });
  registerAction(app, basics, {
    verb: 'approve',
    operationId: 'approveEnrollment',
    summary: 'Issue the key; everything is checked again',
    problems: [
      'enrollment_state_conflict',
      'enrollment_expired',
      'token_key_unknown',
      'issuer_keys_unavailable',
      ...POLICY_PROBLEMS,
    ],
    run: (operation, { enrollment_id: id }) => decisions.approve(id, operation),
  });
  registerAction(app, basics, {
    verb: 'deny',
    operationId: 'denyEnrollment',
    summary: 'Let it come to nothing',
    problems: ['enrollment_state_conflict'],
    body: Type.Union([ENROLLMENT_DENIAL, nothing]),
    run: (operation, { enrollment_id: id }, denial) => decisions.deny(id, denial ?? {}, operation),
  });
}
