/** `/v1/sites/{site_id}/enrollment-policies` and `/v1/enrollment-policies`, with the Enrollment Command Generator. */
import type { EnrollCommands } from '../../enrollment/enroll-command.ts';
import type { EnrollmentPolicies } from '../../enrollment/policies.ts';
import type { PlaceOf } from '../access.ts';
import type { ControlApp } from '../app.ts';
import {
  ENROLLMENT_COMMAND,
  ENROLLMENT_POLICY,
  ENROLLMENT_POLICY_CHANGE,
  ENROLLMENT_POLICY_CREATION,
  POLICY_PATH,
} from '../contract/enrollment-policies.ts';
import { nothing, parameters, SITE_PATH } from '../contract/members.ts';
import { PAGE_QUERY, page, pageOf } from '../pagination.ts';
import { pathText, siteInPath } from '../places.ts';
import { IDEMPOTENCY_KEY, operationOf, sendCreated } from '../request-operation.ts';
import { entityTag, expectedVersion, IF_MATCH, sendVersioned } from '../versions.ts';

const tags = ['Enrollment policies'];

/** `…/enrollment-policies/:policy_id…` */
const policyInPath: PlaceOf = async (request, tx) => {
  const policy = await tx.policies.find(pathText(request, 'policy_id'));
  return policy && tx.hierarchy.placeOfSite(policy.siteId);
};

const reading = { kind: 'operator', permission: 'read', place: policyInPath } as const;
const operating = { kind: 'operator', permission: 'operate', place: policyInPath } as const;

export interface EnrollmentPolicyRoutesDeps {
  readonly policies: EnrollmentPolicies;
  readonly commands: EnrollCommands;
}

export function registerEnrollmentPolicyRoutes(app: ControlApp, deps: EnrollmentPolicyRoutesDeps): void {
  registerSitePolicyRoutes(app, deps.policies);
  registerOnePolicyRoutes(app, deps.policies);
  registerPolicyActionRoutes(app, deps);
}

function registerSitePolicyRoutes(app: ControlApp, policies: EnrollmentPolicies): void {
  const params = parameters(SITE_PATH);
  app.post(
    '/v1/sites/:site_id/enrollment-policies',
    {
      config: {
        access: { kind: 'operator', permission: 'operate', place: siteInPath },
        problems: [
          'reference_unknown',
          'source_not_active',
          'policy_revision_outdated',
          'policy_issuer_mismatch',
          'verified_subject_invalid',
          'idempotency_conflict',
        ],
      },
      schema: {
        operationId: 'createEnrollmentPolicy',
        summary: 'Bind an active source revision and an identity to a client',
        tags,
        params,
        headers: IDEMPOTENCY_KEY,
        body: ENROLLMENT_POLICY_CREATION,
        response: { 201: ENROLLMENT_POLICY },
      },
    },
    async (request, reply) => {
      const created = await policies.create(request.params.site_id, request.body, operationOf(request));
      return sendCreated(reply, created, ({ policy_id: id }) => `/v1/enrollment-policies/${id}`);
    },
  );
  app.get(
    '/v1/sites/:site_id/enrollment-policies',
    {
      config: { access: { kind: 'operator', permission: 'read', place: siteInPath } },
      schema: {
        operationId: 'listEnrollmentPolicies',
        summary: 'Enrollment policies of a site, without deleted ones',
        tags,
        params,
        querystring: PAGE_QUERY,
        response: { 200: pageOf(ENROLLMENT_POLICY, 'EnrollmentPolicyPage') },
      },
    },
    (request) =>
      page(
        request.query,
        (asked) => policies.ofSite(request.params.site_id, asked),
        ({ policy_id: id }) => id,
        (policy) => policy,
      ),
  );
}

function registerOnePolicyRoutes(app: ControlApp, policies: EnrollmentPolicies): void {
  const params = parameters(POLICY_PATH);
  app.get(
    '/v1/enrollment-policies/:policy_id',
    {
      config: { access: reading },
      schema: {
        operationId: 'getEnrollmentPolicy',
        summary: 'An enrollment policy',
        tags,
        params,
        response: { 200: ENROLLMENT_POLICY },
      },
    },
    async (request, reply) => {
      const view = await policies.policy(request.params.policy_id);
      // `refuses_with` follows the source, without a new version: the tag never makes a 304.
      reply.header('etag', entityTag(view.version));
      return view;
    },
  );
  app.patch(
    '/v1/enrollment-policies/:policy_id',
    {
      config: {
        access: operating,
        problems: [
          'precondition_required',
          'precondition_failed',
          'policy_state_conflict',
          'reference_unknown',
          'source_not_active',
          'policy_revision_outdated',
          'policy_issuer_mismatch',
        ],
      },
      schema: {
        operationId: 'changeEnrollmentPolicy',
        summary: 'Bind it to another active revision, or change its terms',
        tags,
        params,
        headers: IF_MATCH,
        body: ENROLLMENT_POLICY_CHANGE,
        response: { 200: ENROLLMENT_POLICY },
      },
    },
    async (request, reply) => {
      const { policy_id: id } = request.params;
      const view = await policies.change(id, request.body, expectedVersion(request), operationOf(request));
      return sendVersioned(request, reply, view);
    },
  );
  app.delete(
    '/v1/enrollment-policies/:policy_id',
    {
      config: {
        access: operating,
        problems: ['precondition_required', 'precondition_failed', 'policy_state_conflict'],
      },
      schema: {
        operationId: 'deleteEnrollmentPolicy',
        summary: 'End it for good; keys that were issued live on',
        tags,
        params,
        headers: IF_MATCH,
        response: { 204: nothing },
      },
    },
    async (request, reply) => {
      await policies.delete(request.params.policy_id, expectedVersion(request), operationOf(request));
      return reply.code(204).send(null);
    },
  );
}

function registerPolicyActionRoutes(
  app: ControlApp,
  { policies, commands }: EnrollmentPolicyRoutesDeps,
): void {
  const params = parameters(POLICY_PATH);
  const actions = [
    ['deactivate', 'deactivateEnrollmentPolicy', 'Let nobody in; who waits for approval is denied'],
    ['reactivate', 'reactivateEnrollmentPolicy', 'Let workloads in again'],
  ] as const;
  for (const [verb, operationId, summary] of actions) {
    app.post(
      `/v1/enrollment-policies/:policy_id/${verb}`,
      {
        config: { access: operating, problems: ['policy_state_conflict'] },
        schema: { operationId, summary, tags, params, response: { 200: ENROLLMENT_POLICY } },
      },
      async (request, reply) => {
        const view = await policies[verb](request.params.policy_id, operationOf(request));
        return sendVersioned(request, reply, view);
      },
    );
  }
  app.get(
    '/v1/enrollment-policies/:policy_id/command',
    {
      config: { access: reading, problems: ['policy_not_active'] },
      schema: {
        operationId: 'getEnrollmentCommand',
        summary: 'What to run in a workload, or put into its pod template, to enroll under the policy',
        tags,
        params,
        response: { 200: ENROLLMENT_COMMAND },
      },
    },
    (request) => commands.commandOf(request.params.policy_id),
  );
}
