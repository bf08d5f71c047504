/**
 * Enrollment policies: each binds one exact active revision of a source, and one exact identity, to one client.
 * Source: specification "Enrollment policy"; docs/design/enrollment.md "Enrollment".
 */

import { isIdentifier } from '../../protocol/identifiers.ts';
import type {
  EnrollmentPolicyChange,
  EnrollmentPolicyCreation,
  EnrollmentPolicyRebinding,
  EnrollmentPolicyView,
} from '../contract/sources-contract.ts';
import { MAX_KEYS_PER_TOKEN, SOURCE_STATES, type SourceState } from '../contract/vocabulary.ts';
import { ApiProblem } from '../domain/api-problem.ts';
import { POLICY_MACHINE, type PolicyEvent } from '../domain/enrollment-rules.ts';
import { move } from '../domain/machine.ts';
import { newId, newPolicyReference } from '../domain/resource-identifiers.ts';
import { canStillBeEdited, IN_PROGRESS_STATES } from '../domain/source-states.ts';
import { policyView } from '../keys/enrollment-views.ts';
import { denyWaiting } from '../keys/outcomes.ts';
import { isBoundTo } from '../keys/policy-facts.ts';
import { newVersion, placeInSite, requireRow } from '../resource/change.ts';
import type { Created, Operation } from '../resource/operation.ts';
import { oneByOne, type ResourceDeps, siteLock, VersionedResource } from '../resource/versioned-resource.ts';
import { whyNotActive } from '../sources/source-views.ts';
import type { Page, RowOf } from '../store/repositories/records.ts';
import type { Transaction } from '../store/transaction.ts';

export class EnrollmentPolicies extends VersionedResource<
  'enrollment_policy',
  'enrollmentPolicy',
  EnrollmentPolicyView
> {
  constructor(deps: ResourceDeps) {
    super(deps, {
      audited: 'enrollment_policy',
      table: (tx) => tx.policies,
      lock: async ([id], store) =>
        siteLock([requireRow(await store.read((tx) => tx.policies.find(id))).siteId]),
      place: (tx, { siteId }) => placeInSite(tx, siteId),
      id: ({ id }) => id,
      views: oneByOne(policyView),
    });
  }

  /**
   * @param mayWait stores the policy as `waiting` when its source revision is not active yet
   * @throws ApiProblem `reference_unknown`, `source_not_active`, `policy_revision_outdated`, `policy_issuer_mismatch`,
   *   `verified_subject_invalid`
   */
  async create(
    siteId: string,
    creation: EnrollmentPolicyCreation,
    operation: Operation,
    mayWait = false,
  ): Promise<Created<EnrollmentPolicyView, never>> {
    if (!isPossibleSubject(creation.verified_subject)) throw new ApiProblem('verified_subject_invalid');
    return this.createRow(operation, siteLock([siteId]), async (tx, nowMs) => {
      const policy = newPolicy(siteId, creation, nowMs);
      const { state } = await requireBinding(tx, policy, mayWait ? WITH_FUTURE : ACTIVE);
      const row = state === 'active' ? policy : { ...policy, state: 'waiting' as const };
      if ((await tx.clients.find(siteId, row.clientId)) === undefined) {
        throw new ApiProblem('reference_unknown', 'client_id: there is no such client in this Auth Site');
      }
      await tx.policies.add(row);
      return { name: [row.id] };
    });
  }

  /** Without deleted ones. */
  ofSite(siteId: string, page: Page, name?: string): Promise<readonly EnrollmentPolicyView[]> {
    return this.listRows((tx) => tx.policies.ofSite(siteId, page, name));
  }

  /**
   * Issued keys do not change. A newly named source revision must be active and have the same issuer.
   * @param mayWait the policy moves later when the revision is not active yet
   * @throws ApiProblem as `create`, `precondition_failed`, `policy_state_conflict` when it is deleted
   */
  change(
    id: string,
    change: EnrollmentPolicyChange,
    expectedVersion: number,
    operation: Operation,
    mayWait = false,
  ): Promise<EnrollmentPolicyView> {
    return this.changeRow(operation, [id], expectedVersion, async (tx, row) => {
      if (row.state === 'deleted') throw new ApiProblem('policy_state_conflict', 'the policy is deleted');
      const binding = await boundTo(tx, row, change.source_revision, mayWait);
      const set = {
        displayName: change.display_name ?? row.displayName,
        ...binding,
        approval: change.approval ?? row.approval,
        maxKeyLifetimeSeconds: change.max_key_lifetime_seconds ?? row.maxKeyLifetimeSeconds,
        maxKeysPerToken: change.max_keys_per_token ?? row.maxKeysPerToken,
      };
      return { set };
    });
  }

  /**
   * Binds the policy to a revision of any source of its site, which is active or about to be. Reference, subject, client and
   * issued keys stay. Pending enrollments that another revision has verified are denied.
   * @throws ApiProblem as `create`, `precondition_failed`, `policy_state_conflict` when it is deleted
   */
  rebind(
    id: string,
    {
      source_id: sourceId,
      source_revision: sourceRevision,
      expected_issuer: issuer,
    }: EnrollmentPolicyRebinding,
    expectedVersion: number,
    operation: Operation,
  ): Promise<EnrollmentPolicyView> {
    const rebind = async (tx: Transaction, row: RowOf<'enrollmentPolicy'>, nowMs: number) => {
      const binding = { sourceId, sourceRevision, verifiedIssuer: issuer };
      const bound = await requireBinding(tx, { ...binding, siteId: row.siteId }, COMING);
      const state = stateAfter(row, bound.state === 'active' ? 'rebind' : 'rebind_waiting');
      const pending = await tx.enrollments.pendingOfPolicy(id);
      const outdated = pending.filter((enrollment) => !isBoundTo(enrollment, binding));
      const placed = { tx, place: await placeInSite(tx, row.siteId) };
      const alsoAudited = await denyWaiting(placed, outdated, 'policy_rebound', operation, nowMs);
      return { set: { ...binding, state, nextSourceRevision: null }, alsoAudited };
    };
    return this.changeRow(operation, [id], expectedVersion, rebind, 'rebind');
  }

  /** Denies pending enrollments. @throws ApiProblem `policy_state_conflict` */
  deactivate(id: string, operation: Operation): Promise<EnrollmentPolicyView> {
    return this.#end('deactivate', id, undefined, operation);
  }

  /** @throws ApiProblem `policy_state_conflict`, also while its source revision can still be edited */
  reactivate(id: string, operation: Operation): Promise<EnrollmentPolicyView> {
    const reactivate = async (tx: Transaction, row: RowOf<'enrollmentPolicy'>) => {
      const state = stateAfter(row, 'reactivate');
      const bound = await tx.sourceRevisions.find(row.sourceId, row.sourceRevision);
      if (bound !== undefined && canStillBeEdited(bound.state)) {
        const detail = `${await whyNotActive(tx, bound)}: reactivate the policy when it is active`;
        throw new ApiProblem('policy_state_conflict', detail);
      }
      return { set: { state } };
    };
    return this.changeRow(operation, [id], undefined, reactivate, 'reactivate');
  }

  /** Cannot be undone. @throws ApiProblem `policy_state_conflict`, `precondition_failed` */
  delete(id: string, expectedVersion: number, operation: Operation): Promise<EnrollmentPolicyView> {
    return this.#end('delete', id, expectedVersion, operation);
  }

  #end(
    event: 'deactivate' | 'delete',
    id: string,
    version: number | undefined,
    operation: Operation,
  ): Promise<EnrollmentPolicyView> {
    const end = async (tx: Transaction, row: RowOf<'enrollmentPolicy'>, nowMs: number) => {
      const state = stateAfter(row, event);
      const waiting = await tx.enrollments.pendingOfPolicy(id);
      const placed = { tx, place: await placeInSite(tx, row.siteId) };
      const alsoAudited = await denyWaiting(placed, waiting, 'policy_not_active', operation, nowMs);
      return { set: { state }, alsoAudited };
    };
    return this.changeRow(operation, [id], version, end, event);
  }
}

type Binding = Pick<RowOf<'enrollmentPolicy'>, 'siteId' | 'sourceId' | 'sourceRevision' | 'verifiedIssuer'>;

/** The columns that bind a policy to a revision, now or when it is active. @throws ApiProblem as {@link requireBinding} */
async function boundTo(
  tx: Transaction,
  row: RowOf<'enrollmentPolicy'>,
  revision: number | undefined,
  mayWait: boolean,
): Promise<Partial<Pick<RowOf<'enrollmentPolicy'>, 'state' | 'sourceRevision' | 'nextSourceRevision'>>> {
  if (revision === undefined || (revision === row.sourceRevision && row.nextSourceRevision === null))
    return {};
  const isSame = revision === row.sourceRevision;
  const bound = isSame
    ? undefined
    : await requireBinding(tx, { ...row, sourceRevision: revision }, mayWait ? WITH_FUTURE : ACTIVE);
  const isActive = bound === undefined || bound.state === 'active';
  if (isActive && row.state === 'waiting' && bound !== undefined) {
    return { state: stateAfter(row, 'source_active'), sourceRevision: revision, nextSourceRevision: null };
  }
  if (isActive || row.state === 'waiting') return { sourceRevision: revision, nextSourceRevision: null };
  return { nextSourceRevision: revision };
}

const ACTIVE: readonly SourceState[] = ['active'];
const COMING: readonly SourceState[] = [...IN_PROGRESS_STATES, 'active'];
const WITH_FUTURE = SOURCE_STATES.filter((state) => state !== 'retired' && state !== 'removed');

/**
 * The revision must exist, be in one of the states, and have the issuer that the policy names.
 * @throws ApiProblem
 */
async function requireBinding(
  tx: Transaction,
  binding: Binding,
  states: readonly SourceState[],
): Promise<RowOf<'sourceRevision'>> {
  const { siteId, sourceId, sourceRevision, verifiedIssuer } = binding;
  const revisions = await tx.sources.revisions(sourceId);
  const bound = revisions.find(({ revision }) => revision === sourceRevision);
  if (bound === undefined || bound.siteId !== siteId) {
    throw new ApiProblem('reference_unknown', 'source_id, source_revision: not in this Auth Site');
  }
  if (!states.includes(bound.state)) {
    const isOutdated = revisions.some(({ state }) => state === 'active');
    throw new ApiProblem(
      isOutdated ? 'policy_revision_outdated' : 'source_not_active',
      await whyNotActive(tx, bound),
    );
  }
  if (bound.issuer !== verifiedIssuer) throw new ApiProblem('policy_issuer_mismatch');
  return bound;
}

function stateAfter(row: RowOf<'enrollmentPolicy'>, event: PolicyEvent) {
  const moved = move(POLICY_MACHINE, row.state, event);
  if (moved.kind === 'moved') return moved.to;
  throw new ApiProblem('policy_state_conflict', `the policy is ${row.state}`);
}

function newPolicy(
  siteId: string,
  creation: EnrollmentPolicyCreation,
  nowMs: number,
): RowOf<'enrollmentPolicy'> {
  return {
    id: newId('enrollmentPolicy', nowMs),
    siteId,
    reference: newPolicyReference(),
    displayName: creation.display_name,
    sourceId: creation.source_id,
    sourceRevision: creation.source_revision,
    nextSourceRevision: null,
    clientId: creation.client_id,
    approval: creation.approval,
    maxKeyLifetimeSeconds: creation.max_key_lifetime_seconds,
    verifiedSubject: creation.verified_subject,
    verifiedIssuer: creation.verified_issuer,
    maxKeysPerToken: creation.max_keys_per_token ?? MAX_KEYS_PER_TOKEN,
    state: 'active',
    ...newVersion(nowMs),
  };
}

/** Validates a policy's subject: without it, a typing error would show only when a workload fails to enroll. */

const SERVICE_ACCOUNT = 'system:serviceaccount:';
/** RFC 1123 labels; a service account's name may have several, joined by dots. */
const LABEL = '[a-z0-9](?:[-a-z0-9]{0,61}[a-z0-9])?';
const KUBERNETES = new RegExp(`^${SERVICE_ACCOUNT}(?<namespace>${LABEL}):(?<name>${LABEL}(?:\\.${LABEL})*)$`);
const MAX_SERVICE_ACCOUNT_NAME = 253;

/** Subjects compare exactly; there are no patterns. A `*` in what looks like a service account is thus a mistake. */
export function isPossibleSubject(subject: string): boolean {
  if (!isIdentifier(subject)) return false;
  if (!subject.toLowerCase().startsWith(SERVICE_ACCOUNT)) return true;
  const name = KUBERNETES.exec(subject)?.groups?.name;
  return name !== undefined && name.length <= MAX_SERVICE_ACCOUNT_NAME;
}

/** Namespace and name, when the subject is a service account. */
export function serviceAccountOf(
  subject: string,
): { readonly namespace: string; readonly name: string } | undefined {
  const { namespace, name } = KUBERNETES.exec(subject)?.groups ?? {};
  return namespace === undefined || name === undefined ? undefined : { namespace, name };
}
