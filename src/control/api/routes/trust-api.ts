/** Routes of Trust Anchor Sources and their revisions: `/v1/sites/{site_id}/sources` and `/v1/sources`. */

import {
  NAME_FILTER,
  nothing,
  parameters,
  SITE_PATH,
} from '../../../process/http-service/members-contract.ts';
import {
  ENROLLMENT_COMMAND,
  ENROLLMENT_POLICY,
  ENROLLMENT_POLICY_CHANGE,
  ENROLLMENT_POLICY_CREATION,
  ENROLLMENT_POLICY_REBINDING,
  POLICY_PATH,
  SOURCE,
  SOURCE_ACTIVATION,
  SOURCE_CHANGE,
  SOURCE_CREATION,
  SOURCE_KEYS,
  SOURCE_PATH,
  SOURCE_REVISION,
  SOURCE_REVISION_CHANGE,
  SOURCE_REVISION_PATH,
} from '../../contract/sources-contract.ts';
import type { EnrollmentPlane, Sources } from '../../enrollment/enrollment-plane.ts';
import type { EnrollmentPolicies } from '../../enrollment/policies.ts';
import type { RevisionName } from '../../sources/source-changes.ts';
import type { ScopePathOf } from '../api-access.ts';
import { pathText, siteInPath } from '../api-access.ts';
import type { ControlApp } from '../app.ts';
import { registerAction, registerRead, registerResource } from '../resource-routes.ts';
import { expectedVersion, tagged } from '../versions.ts';

/** `…/sources/:source_id…` */
const sourceInPath: ScopePathOf = async (request, tx) => {
  const source = await tx.sources.find(pathText(request, 'source_id'));
  return source && tx.hierarchy.placeOfSite(source.siteId);
};

const tags = ['Trust Anchor Sources'];
const source = { url: '/v1/sources/:source_id', params: SOURCE_PATH, place: sourceInPath };
const SOURCE_RESOURCE = { tags, view: SOURCE, permission: 'operate', item: source } as const;
const REVISION = {
  tags,
  view: SOURCE_REVISION,
  permission: 'operate',
  item: { url: `${source.url}/revisions/:revision`, params: SOURCE_REVISION_PATH, place: sourceInPath },
} as const;

function nameOf(params: { readonly source_id: string; readonly revision: number }): RevisionName {
  return { sourceId: params.source_id, revision: params.revision };
}

export function registerSourceRoutes(app: ControlApp, sources: Sources): void {
  registerResource(app, {
    ...SOURCE_RESOURCE,
    collection: { url: '/v1/sites/:site_id/sources', params: SITE_PATH, place: siteInPath },
    create: {
      operationId: 'createSource',
      summary: 'Create a source with its first draft',
      problems: ['audience_taken'],
      body: SOURCE_CREATION,
      location: ({ source_id: id }) => `/v1/sources/${id}`,
      run: (operation, { site_id: siteId }, creation) => sources.drafts.create(siteId, creation, operation),
    },
    list: {
      operationId: 'listSources',
      summary: 'Sources of a site, with their revisions',
      page: 'SourcePage',
      cursorOf: ({ source_id: id }) => id,
      filter: NAME_FILTER,
      run: ({ site_id: siteId }, page, { name }) => sources.drafts.ofSite(siteId, page, name),
    },
    get: {
      operationId: 'getSource',
      summary: 'A source, with its revisions',
      // Its revisions change state without a new version of the source.
      isLive: true,
      run: ({ source_id: id }) => sources.drafts.get(id),
    },
    change: {
      method: 'PATCH',
      operationId: 'changeSource',
      summary: 'Change the name or the key policy of a source',
      body: SOURCE_CHANGE,
      run: (operation, { source_id: id }, version, change) =>
        sources.drafts.change(id, change, version, operation),
    },
    remove: {
      operationId: 'deleteSource',
      summary: 'Delete a source that has only drafts',
      problems: ['source_state_conflict'],
      run: (operation, { source_id: id }, version) => sources.drafts.deleteSource(id, version, operation),
    },
  });
  registerRead(app, SOURCE_RESOURCE, {
    below: '/keys',
    operationId: 'getSourceKeys',
    summary: "The issuer's keys that Control holds for a source, and when it refreshed them",
    answer: SOURCE_KEYS,
    run: ({ source_id: id }) => sources.drafts.keys(id),
  });
  registerAction(app, SOURCE_RESOURCE, {
    verb: 'retire',
    operationId: 'retireSource',
    summary: 'Retire every revision of a source, and delete its draft',
    problems: ['source_state_conflict'],
    run: (operation, { source_id: id }) => sources.lifecycle.retireSource(id, operation),
  });
  registerRevisionRoutes(app, sources);
  registerTransitions(app, sources);
}

function registerRevisionRoutes(app: ControlApp, sources: Sources): void {
  app.get(
    REVISION.item.url,
    {
      config: { access: { kind: 'operator', permission: 'read', place: sourceInPath } },
      schema: {
        operationId: 'getSourceRevision',
        summary: 'A revision of a source',
        tags,
        params: parameters(SOURCE_REVISION_PATH),
        response: { 200: SOURCE_REVISION, 304: nothing },
      },
    },
    // `waiting_for` follows the targets without a new version, so the tag never leads to a 304.
    async (request, reply) => tagged(reply, await sources.drafts.revision(nameOf(request.params))),
  );
  registerResource(app, {
    ...REVISION,
    collection: { ...source, url: `${source.url}/revisions` },
    create: {
      operationId: 'createSourceRevision',
      summary: 'Create a draft beside the newest revision',
      problems: ['source_revision_in_progress', 'source_state_conflict', 'audience_taken'],
      body: SOURCE_REVISION_CHANGE,
      location: ({ source_id: id, revision }) => `/v1/sources/${id}/revisions/${revision}`,
      run: (operation, { source_id: id }, change) => sources.drafts.addRevision(id, change, operation),
    },
    change: {
      method: 'PATCH',
      operationId: 'changeSourceRevision',
      summary: 'Edit a draft or a validated revision, which becomes a draft',
      problems: ['source_state_conflict', 'audience_taken'],
      body: SOURCE_REVISION_CHANGE,
      run: (operation, params, version, change) =>
        sources.drafts.editRevision(nameOf(params), change, version, operation),
    },
    remove: {
      operationId: 'deleteSourceRevision',
      summary: 'Delete a draft beside other revisions',
      problems: ['source_state_conflict'],
      run: (operation, params, version) => sources.drafts.deleteRevision(nameOf(params), version, operation),
    },
  });
}

function registerTransitions(app: ControlApp, { lifecycle }: Sources): void {
  registerAction(app, REVISION, {
    verb: 'validate',
    operationId: 'validateSourceRevision',
    summary: 'Fetch and validate the metadata and keys of the issuer',
    problems: ['source_state_conflict', 'precondition_failed'],
    run: (operation, params) => lifecycle.validate(nameOf(params), operation),
  });
  registerAction(app, REVISION, {
    verb: 'suspend',
    operationId: 'suspendSourceRevision',
    summary: 'Reject new enrollments until the revision is resumed',
    problems: ['source_state_conflict'],
    run: (operation, params) => lifecycle.suspend(nameOf(params), operation),
  });
  registerAction(app, REVISION, {
    verb: 'resume',
    operationId: 'resumeSourceRevision',
    summary: 'Publish a suspended revision again',
    problems: ['source_state_conflict', 'source_revision_in_progress'],
    run: (operation, params) => lifecycle.resume(nameOf(params), operation),
  });
  registerAction(app, REVISION, {
    verb: 'retire',
    operationId: 'retireSourceRevision',
    summary: 'Reject new enrollments for good, and free the slot',
    problems: ['source_state_conflict'],
    run: (operation, params) => lifecycle.retire(nameOf(params), operation),
  });
  registerAction(app, REVISION, {
    verb: 'activate',
    operationId: 'activateSourceRevision',
    summary: 'Take a slot and start the activation; the request names the expected scope',
    problems: [
      'source_state_conflict',
      'source_scope_mismatch',
      'source_revision_in_progress',
      'source_capacity_exhausted',
      'audience_taken',
    ],
    body: SOURCE_ACTIVATION,
    run: (operation, params, { expected_scope: scope }) =>
      lifecycle.activate(nameOf(params), scope, operation),
  });
}

/** `…/enrollment-policies/:policy_id…` */
const policyInPath: ScopePathOf = async (request, tx) => {
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

interface EnrollmentPolicyRoutesDeps {
  readonly policies: EnrollmentPolicies;
  readonly commandOf: EnrollmentPlane['commandOf'];
}

export function registerEnrollmentPolicyRoutes(
  app: ControlApp,
  { policies, commandOf }: EnrollmentPolicyRoutesDeps,
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
      filter: NAME_FILTER,
      run: ({ site_id: siteId }, page, { name }) => policies.ofSite(siteId, page, name),
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
    verb: 'rebind',
    operationId: 'rebindEnrollmentPolicy',
    summary: 'Bind it to a revision of any source; it keeps its reference, and issued keys stay valid',
    problems: ['policy_state_conflict', ...BINDING_PROBLEMS],
    ifMatch: 'required',
    body: ENROLLMENT_POLICY_REBINDING,
    run: (operation, { policy_id: id }, rebinding, request) =>
      policies.rebind(id, rebinding, expectedVersion(request), operation),
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
    summary: 'Accept enrollments under the policy again',
    problems: ['policy_state_conflict'],
    run: (operation, { policy_id: id }) => policies.reactivate(id, operation),
  });
  registerRead(app, BASICS, {
    below: '/command',
    operationId: 'getEnrollmentCommand',
    summary: 'Commands and pod template parts with which a workload enrolls under the policy',
    problems: ['policy_not_active'],
    answer: ENROLLMENT_COMMAND,
    run: ({ policy_id: id }) => commandOf(id),
  });
}
