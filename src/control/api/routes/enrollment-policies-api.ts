/** Routes of `/v1/sites/{site_id}/enrollment-policies` and `/v1/enrollment-policies`, with the Enrollment Command Generator. */

import {
  ENROLLMENT_COMMAND,
  ENROLLMENT_POLICY,
  ENROLLMENT_POLICY_CHANGE,
  ENROLLMENT_POLICY_CREATION,
  POLICY_PATH,
} from '../../../api-contract/enrollment-policies-contract.ts';
import { parameters, SITE_PATH } from '../../../api-contract/members-contract.ts';
import type { EnrollCommands } from '../../enrollment/enroll-command-line.ts';
import type { EnrollmentPolicies } from '../../enrollment/policies.ts';
import type { PlaceOf } from '../api-access.ts';
import type { ControlApp } from '../app.ts';
import { pathText, siteInPath } from '../places.ts';
import { registerAction, registerResource } from '../resource-routes.ts';

/** `…/enrollment-policies/:policy_id…` */
const policyInPath: PlaceOf = async (request, tx) => {
  const policy = await tx.policies.find(pathText(request, 'policy_id'));
  return policy && tx.hierarchy.placeOfSite(policy.siteId);
};

const BASICS = {
  tags: ['Enrollment policies'],
  view: ENROLLMENT_POLICY,
  permission: 'operate',
  item: { url: '/v1/enrollment-policies/:policy_id', params: POLICY_PATH, place: policyInPath },
} as const;

const BINDING_PROBLEMS = [
  'reference_unknown',
  'source_not_active',
  'policy_revision_outdated',
  'policy_issuer_mismatch',
] as const;

export interface EnrollmentPolicyRoutesDeps {
  readonly policies: EnrollmentPolicies;
  readonly commands: EnrollCommands;
}

export function registerEnrollmentPolicyRoutes(
  app: ControlApp,
  { policies, commands }: EnrollmentPolicyRoutesDeps,
): void {
  registerResource(app, {
    ...BASICS,
    collection: { url: '/v1/sites/:site_id/enrollment-policies', params: SITE_PATH, place: siteInPath },
    create: {
      operationId: 'createEnrollmentPolicy',
      summary: 'Bind an active source revision and an identity to a client',
      problems: [...BINDING_PROBLEMS, 'verified_subject_invalid'],
      body: ENROLLMENT_POLICY_CREATION,
      location: ({ policy_id: id }) => `/v1/enrollment-policies/${id}`,
      run: (operation, { site_id: siteId }, creation) => policies.create(siteId, creation, operation),
    },
    list: {
      operationId: 'listEnrollmentPolicies',
      summary: 'Enrollment policies of a site, without deleted ones',
      page: 'EnrollmentPolicyPage',
      cursorOf: ({ policy_id: id }) => id,
      run: ({ site_id: siteId }, page) => policies.ofSite(siteId, page),
    },
    get: {
      operationId: 'getEnrollmentPolicy',
      summary: 'An enrollment policy',
      // `refuses_with` follows the source's state.
      isLive: true,
      run: ({ policy_id: id }) => policies.get(id),
    },
    change: {
      method: 'PATCH',
      operationId: 'changeEnrollmentPolicy',
      summary: 'Bind it to another active revision, or change its terms',
      problems: ['policy_state_conflict', ...BINDING_PROBLEMS],
      body: ENROLLMENT_POLICY_CHANGE,
      run: (operation, { policy_id: id }, version, change) => policies.change(id, change, version, operation),
    },
    remove: {
      operationId: 'deleteEnrollmentPolicy',
      summary: 'Delete it permanently; issued keys stay valid',
      problems: ['policy_state_conflict'],
      run: (operation, { policy_id: id }, version) => policies.delete(id, version, operation),
    },
  });
  registerAction(app, BASICS, {
    verb: 'deactivate',
    operationId: 'deactivateEnrollmentPolicy',
    summary: 'Deactivate the policy; pending enrollments are denied',
    problems: ['policy_state_conflict'],
    run: (operation, { policy_id: id }) => policies.deactivate(id, operation),
  });
  registerAction(app, BASICS, {
    verb: 'reactivate',
    operationId: 'reactivateEnrollmentPolicy',
    summary: 'Let workloads in again',
    problems: ['policy_state_conflict'],
    run: (operation, { policy_id: id }) => policies.reactivate(id, operation),
  });
  app.get(
    `${BASICS.item.url}/command`,
    {
      config: {
        access: { kind: 'operator', permission: 'read', place: policyInPath },
        problems: ['policy_not_active'],
      },
      schema: {
        operationId: 'getEnrollmentCommand',
        summary: 'What to run in a workload, or put into its pod template, to enroll under the policy',
        tags: BASICS.tags,
        params: parameters(POLICY_PATH),
        response: { 200: ENROLLMENT_COMMAND },
      },
    },
    (request) => commands.commandOf(request.params.policy_id),
  );
}
