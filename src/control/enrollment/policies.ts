/**
 * Enrollment policies: each binds one exact active revision of a source, and one exact identity, to one client.
 * Source: specification "Enrollment policy"; docs/control.md "Enrollment".
 */
import type {
  EnrollmentPolicyChange,
  EnrollmentPolicyCreation,
  EnrollmentPolicyView,
} from '../api/contract/enrollment-policies.ts';
import type { AuditVerb } from '../domain/audit-kinds.ts';
import { MAX_KEYS_PER_TOKEN, POLICY_MACHINE, type PolicyEvent } from '../domain/enrollment.ts';
import { newId, newPolicyReference } from '../domain/identifiers.ts';
import { move } from '../domain/machine.ts';
import { Refusal } from '../domain/refusal.ts';
import type { Place } from '../domain/roles.ts';
import { type Created, createOnce, type Operation } from '../operation.ts';
import { whyNotActive } from '../sources/awaited-targets.ts';
import type { AuditEntry, ControlStore, Mutated } from '../store/port.ts';
import type { Page, RowOf } from '../store/repositories/records.ts';
import type { Transaction } from '../store/transaction.ts';
import { denyWaiting } from './denials.ts';
import { policyView } from './policy-views.ts';
import { isPossibleSubject } from './verified-subject.ts';

interface PolicyInHand {
  readonly tx: Transaction;
  readonly row: RowOf<'enrollmentPolicy'>;
  readonly place: Place;
}

export class EnrollmentPolicies {
  readonly #store: ControlStore;
  readonly #nowMs: () => number;

  constructor(store: ControlStore, nowMs: () => number) {
    this.#store = store;
    this.#nowMs = nowMs;
  }

  /**
   * @throws Refusal `reference_unknown`, `source_not_active`, `policy_revision_outdated`, `policy_issuer_mismatch`,
   *   `verified_subject_invalid`
   */
  create(
    siteId: string,
    creation: EnrollmentPolicyCreation,
    operation: Operation,
  ): Promise<Created<EnrollmentPolicyView, never>> {
    if (!isPossibleSubject(creation.verified_subject)) throw new Refusal('verified_subject_invalid');
    const nowMs = this.#nowMs();
    return createOnce(this.#store, { kind: 'site', siteId }, operation, nowMs, async (tx) => {
      const { source_id: sourceId, source_revision: sourceRevision, client_id: clientId } = creation;
      await requireBinding(tx, {
        siteId,
        sourceId,
        sourceRevision,
        verifiedIssuer: creation.verified_issuer,
      });
      if ((await tx.clients.find(siteId, clientId)) === undefined) {
        throw new Refusal('reference_unknown', 'client_id: there is no such client in this Auth Site');
      }
      const row = newPolicy(siteId, creation, nowMs);
      await tx.policies.add(row);
      const view = await policyView(tx, row);
      const place = (await tx.hierarchy.placeOfSite(siteId)) ?? { siteId };
      return { result: view, audit: [policyAudit('create', operation, { row, place }, undefined, view)] };
    });
  }

  /** @throws Refusal `not_found` */
  policy(id: string): Promise<EnrollmentPolicyView> {
    return this.#store.read(async (tx) => policyView(tx, await requirePolicy(tx, id)));
  }

  /** Without deleted ones. */
  async ofSite(siteId: string, page: Page): Promise<readonly EnrollmentPolicyView[]> {
    return this.#store.read(async (tx) => {
      const views: EnrollmentPolicyView[] = [];
      for (const row of await tx.policies.ofSite(siteId, page)) views.push(await policyView(tx, row));
      return views;
    });
  }

  /**
   * What was issued stays as it is. Another revision of the source must be active, and of the same issuer.
   * @throws Refusal as `create`, `precondition_failed`, `policy_state_conflict` when it is deleted
   */
  change(
    id: string,
    change: EnrollmentPolicyChange,
    expectedVersion: number,
    operation: Operation,
  ): Promise<EnrollmentPolicyView> {
    return this.#mutate(id, async (hand) => {
      const { tx, row } = hand;
      if (row.version !== expectedVersion) throw new Refusal('precondition_failed');
      if (row.state === 'deleted') throw new Refusal('policy_state_conflict', 'the policy is deleted');
      const sourceRevision = change.source_revision ?? row.sourceRevision;
      if (sourceRevision !== row.sourceRevision) await requireBinding(tx, { ...row, sourceRevision });
      return this.#write(hand, 'change', operation, {
        displayName: change.display_name ?? row.displayName,
        sourceRevision,
        approval: change.approval ?? row.approval,
        maxKeyLifetimeSeconds: change.max_key_lifetime_seconds ?? row.maxKeyLifetimeSeconds,
        maxKeysPerToken: change.max_keys_per_token ?? row.maxKeysPerToken,
      });
    });
  }

  /** Whoever waits for approval is denied. @throws Refusal `policy_state_conflict` */
  deactivate(id: string, operation: Operation): Promise<EnrollmentPolicyView> {
    return this.#mutate(id, (hand) => this.#end(hand, 'deactivate', operation));
  }

  /** @throws Refusal `policy_state_conflict` */
  reactivate(id: string, operation: Operation): Promise<EnrollmentPolicyView> {
    return this.#mutate(id, (hand) =>
      this.#write(hand, 'reactivate', operation, { state: stateAfter(hand.row, 'reactivate') }),
    );
  }

  /** For good. @throws Refusal `policy_state_conflict`, `precondition_failed` */
  delete(id: string, expectedVersion: number, operation: Operation): Promise<EnrollmentPolicyView> {
    return this.#mutate(id, (hand) => {
      if (hand.row.version !== expectedVersion) throw new Refusal('precondition_failed');
      return this.#end(hand, 'delete', operation);
    });
  }

  async #end(
    hand: PolicyInHand,
    event: 'deactivate' | 'delete',
    operation: Operation,
  ): Promise<Mutated<EnrollmentPolicyView>> {
    const state = stateAfter(hand.row, event);
    const waiting = await hand.tx.enrollments.pendingOfPolicy(hand.row.id);
    const denials = await denyWaiting(hand, waiting, 'policy_not_active', operation, this.#nowMs());
    const { result, audit } = await this.#write(hand, event, operation, { state });
    return { result, audit: [...audit, ...denials] };
  }

  async #write(
    { tx, row, place }: PolicyInHand,
    verb: AuditVerb<'enrollment_policy'>,
    operation: Operation,
    set: Parameters<Transaction['policies']['change']>[1],
  ): Promise<Mutated<EnrollmentPolicyView>> {
    const before = await policyView(tx, row);
    await tx.policies.change(row, set, this.#nowMs());
    const view = await policyView(tx, await requirePolicy(tx, row.id));
    return { result: view, audit: [policyAudit(verb, operation, { row, place }, before, view)] };
  }

  async #mutate<T>(id: string, work: (hand: PolicyInHand) => Promise<Mutated<T>>): Promise<T> {
    const { siteId } = await this.#store.read((tx) => requirePolicy(tx, id));
    return this.#store.mutate({ kind: 'site', siteId }, async (tx) => {
      const row = await requirePolicy(tx, id);
      return work({ tx, row, place: (await tx.hierarchy.placeOfSite(siteId)) ?? { siteId } });
    });
  }
}

/** @throws Refusal `not_found` */
export async function requirePolicy(tx: Transaction, id: string): Promise<RowOf<'enrollmentPolicy'>> {
  const row = await tx.policies.find(id);
  if (row === undefined) throw new Refusal('not_found');
  return row;
}

type Binding = Pick<RowOf<'enrollmentPolicy'>, 'siteId' | 'sourceId' | 'sourceRevision' | 'verifiedIssuer'>;

/** The exact revision must be there, active, and of the issuer that the policy names. @throws Refusal */
async function requireBinding(tx: Transaction, binding: Binding): Promise<void> {
  const { siteId, sourceId, sourceRevision, verifiedIssuer } = binding;
  const revisions = await tx.sources.revisions(sourceId);
  const bound = revisions.find(({ revision }) => revision === sourceRevision);
  if (bound === undefined || bound.siteId !== siteId) {
    throw new Refusal('reference_unknown', 'source_id, source_revision: not in this Auth Site');
  }
  if (bound.state !== 'active') {
    const isOutdated = revisions.some(({ state }) => state === 'active');
    throw new Refusal(
      isOutdated ? 'policy_revision_outdated' : 'source_not_active',
      await whyNotActive(tx, bound),
    );
  }
  if (bound.issuer !== verifiedIssuer) throw new Refusal('policy_issuer_mismatch');
}

function stateAfter(row: RowOf<'enrollmentPolicy'>, event: PolicyEvent) {
  const moved = move(POLICY_MACHINE, row.state, event);
  if (moved.kind === 'moved') return moved.to;
  throw new Refusal('policy_state_conflict', `the policy is ${row.state}`);
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
    clientId: creation.client_id,
    approval: creation.approval,
    maxKeyLifetimeSeconds: creation.max_key_lifetime_seconds,
    verifiedSubject: creation.verified_subject,
    verifiedIssuer: creation.verified_issuer,
    maxKeysPerToken: creation.max_keys_per_token ?? MAX_KEYS_PER_TOKEN,
    state: 'active',
    version: 1,
    createdAtMs: nowMs,
    updatedAtMs: nowMs,
  };
}

function policyAudit(
  verb: AuditVerb<'enrollment_policy'>,
  { actor, requestId }: Operation,
  { row, place }: Pick<PolicyInHand, 'row' | 'place'>,
  before: object | undefined,
  after: object | undefined,
): AuditEntry {
  return {
    kind: `proofgate.control.enrollment_policy.${verb}`,
    actor,
    resource: { kind: 'enrollment_policy', id: row.id },
    place,
    before,
    after,
    requestId,
  };
}
