/** Routes of `/v1/enrollments` for workloads and operators, and of `/v1/sites/{site_id}/enrollments`. */

import Type from 'typebox';
import { nothing, parameters, REASON, SITE_PATH } from '../../../process/http-service/members-contract.ts';
import {
  BLOCKED_SUBJECT,
  BLOCKED_SUBJECT_NAME,
  DERIVED_KEY,
  DERIVED_KEY_FILTER,
  DERIVED_KEY_PATH,
  ENROLLMENT,
  ENROLLMENT_APPROVAL,
  ENROLLMENT_DENIAL,
  ENROLLMENT_FILTER,
  ENROLLMENT_PATH,
  KEY_LAST_USED,
  KEY_REVOCATION,
  KEY_REVOCATION_RESULT,
  NEW_BLOCKED_SUBJECT,
} from '../../contract/derived-keys-contract.ts';
import {
  CHALLENGE_ANSWER,
  CHALLENGE_REQUEST,
  ENROLLMENT_SUBMISSION,
  WORKLOAD_ENROLLMENT,
  WORKLOAD_READINESS,
} from '../../contract/enrollment-contract.ts';
import type { EnrollmentDecisions } from '../../enrollment/decisions.ts';
import type { EnrollmentPlane } from '../../enrollment/enrollment-plane.ts';
import type { WorkloadEnrollments } from '../../enrollment/workload-enrollments.ts';
import { TOKEN_PROBLEM_CODES } from '../../issuers/token-envelope.ts';
import { blockedSubjectPlace, type DerivedKeys } from '../../keys/derived-keys.ts';
import { isFromWorkload, pathText, type ScopePathOf, siteInPath } from '../api-access.ts';
import type { ControlApp } from '../app.ts';
import { registerAction, registerRead, registerResource } from '../resource-routes.ts';
import { operationOf, optionalVersion, sendVersioned } from '../versions.ts';
import { registerEnrollmentPolicyRoutes, registerSourceRoutes } from './trust-api.ts';

const tags = ['Enrollments'];

/** `…/enrollments/:enrollment_id…` */
const enrollmentInPath: ScopePathOf = async (request, tx) => {
  const enrollment = await tx.enrollments.find(pathText(request, 'enrollment_id'));
  return enrollment && tx.hierarchy.placeOfSite(enrollment.siteId);
};

interface EnrollmentRoutesDeps {
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
  'policy_issuer_mismatch',
  'policy_revision_outdated',
  'source_not_active',
  'subject_blocked',
  'key_revoked',
  'token_key_limit',
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
        summary: 'Start the enrollment of a public key',
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
          ...TOKEN_PROBLEM_CODES,
        ],
      },
      schema: {
        operationId: 'submitEnrollment',
        summary: 'Answer a challenge with a workload token; a repeated request returns the same enrollment',
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
        summary: 'Whether the key of an enrollment is ready, and what blocks it; for the key itself',
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
        summary: 'Get an enrollment, as its own key or as an operator',
        tags,
        params: parameters(ENROLLMENT_PATH),
        response: { 200: Type.Union([WORKLOAD_ENROLLMENT, ENROLLMENT]), 304: nothing },
      },
    },
    async (request, reply) => {
      const { enrollment_id: id } = request.params;
      if (isFromWorkload(request)) return workloads.poll(id, request.headers.authorization);
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
    ifMatch: 'optional',
    operationId: 'approveEnrollment',
    summary: 'Approve an enrollment after repeating all checks, and issue the key',
    problems: [
      'enrollment_state_conflict',
      'enrollment_expired',
      'token_key_unknown',
      'issuer_keys_unavailable',
      ...POLICY_PROBLEMS,
    ],
    body: Type.Union([ENROLLMENT_APPROVAL, nothing]),
    isReasonInBody: true,
    run: (operation, { enrollment_id: id }, approval, request) =>
      decisions.approve(id, { ...approval, version: optionalVersion(request) }, operation),
  });
  registerAction(app, basics, {
    verb: 'deny',
    ifMatch: 'optional',
    operationId: 'denyEnrollment',
    summary: 'Deny an enrollment',
    problems: ['enrollment_state_conflict'],
    body: Type.Union([ENROLLMENT_DENIAL, nothing]),
    isReasonInBody: true,
    run: (operation, { enrollment_id: id }, denial, request) =>
      decisions.deny(id, { ...denial, version: optionalVersion(request) }, operation),
  });
}

/** `…/derived-keys/:key_id…` */
export const derivedKeyInPath: ScopePathOf = async (request, tx) => {
  const key = await tx.keys.find(pathText(request, 'key_id'));
  return key && tx.hierarchy.placeOfSite(key.siteId);
};

const KEY = {
  tags: ['Derived keys'],
  view: DERIVED_KEY,
  permission: 'operate',
  item: { url: '/v1/derived-keys/:key_id', params: DERIVED_KEY_PATH, place: derivedKeyInPath },
} as const;

export function registerDerivedKeyRoutes(app: ControlApp, keys: DerivedKeys): void {
  registerResource(app, {
    ...KEY,
    collection: { url: '/v1/sites/:site_id/derived-keys', params: SITE_PATH, place: siteInPath },
    list: {
      operationId: 'listDerivedKeys',
      summary: 'Derived keys of a site',
      page: 'DerivedKeyPage',
      filter: DERIVED_KEY_FILTER,
      cursorOf: ({ key_id: id }) => id,
      run: ({ site_id: siteId }, page, { client_id: clientId, status, subject, fingerprint }) =>
        keys.ofSite(siteId, { clientId, status, subject, fingerprint }, page),
    },
    get: {
      operationId: 'getDerivedKey',
      summary: 'A derived key',
      // The view changes without a new version when the key expires or a bundle lists it.
      isLive: true,
      run: ({ key_id: id }) => keys.key(id),
    },
  });
  registerRead(app, KEY, {
    below: '/last-used',
    operationId: 'getKeyLastUsed',
    summary: 'When the key last signed a request that each target allowed, as the targets reported it',
    answer: KEY_LAST_USED,
    run: ({ key_id: id }) => keys.lastUsed(id),
  });
  registerAction(app, KEY, {
    verb: 'revoke',
    operationId: 'revokeDerivedKey',
    summary: 'Revoke every valid key with this public key, and block the public key; also for an expired key',
    problems: ['key_state_conflict'],
    body: Type.Union([KEY_REVOCATION, nothing]),
    isReasonInBody: true,
    answer: KEY_REVOCATION_RESULT,
    run: (operation, { key_id: id }, revocation) => keys.revoke(id, revocation ?? {}, operation),
  });
  registerBlockedSubjectRoutes(app, keys);
}

function registerBlockedSubjectRoutes(app: ControlApp, keys: DerivedKeys): void {
  const subjects = { url: '/v1/sites/:site_id/blocked-subjects', params: SITE_PATH, place: siteInPath };
  const basics = {
    tags: KEY.tags,
    view: BLOCKED_SUBJECT,
    permission: 'operate',
    collection: subjects,
    item: subjects,
  } as const;
  registerResource(app, {
    ...basics,
    list: {
      operationId: 'listBlockedSubjects',
      summary: 'Subjects that may not enroll',
      page: 'BlockedSubjectPage',
      cursorOf: blockedSubjectPlace,
      run: ({ site_id: siteId }, page) => keys.blockedSubjects(siteId, page),
    },
  });
  registerResource(app, {
    ...basics,
    create: {
      operationId: 'blockSubject',
      summary: 'Block new enrollments of a subject, with or without keys; its keys stay valid',
      problems: ['already_exists'],
      body: NEW_BLOCKED_SUBJECT,
      location: ({ site_id: siteId, issuer, subject }) => {
        const name = new URLSearchParams({ issuer, subject });
        return `/v1/sites/${encodeURIComponent(siteId)}/blocked-subjects?${name}`;
      },
      run: (operation, { site_id: siteId }, name) => keys.blockSubject(siteId, name, operation),
    },
  });
  app.delete(
    '/v1/sites/:site_id/blocked-subjects',
    {
      config: { access: { kind: 'operator', permission: 'operate', place: siteInPath } },
      schema: {
        operationId: 'unblockSubject',
        summary: 'Unblock a subject',
        tags: KEY.tags,
        params: parameters(SITE_PATH),
        querystring: parameters({ ...BLOCKED_SUBJECT_NAME, ...REASON }),
        response: { 204: nothing },
      },
    },
    async (request, reply) => {
      const { issuer, subject } = request.query;
      await keys.unblockSubject(request.params.site_id, { issuer, subject }, operationOf(request));
      return reply.code(204).send(null);
    },
  );
}

/** Registers the routes of sources, enrollment policies, enrollments and derived keys. */
export function registerEnrollmentPlaneRoutes(app: ControlApp, plane: EnrollmentPlane): void {
  registerSourceRoutes(app, plane.sources);
  registerEnrollmentPolicyRoutes(app, plane);
  registerEnrollmentRoutes(app, plane);
  registerDerivedKeyRoutes(app, plane.keys);
}
