/**
 * Operators approve or deny pending enrollments. An approval checks the enrollment again as if it were submitted now.
 * Source: specification "Authentication", enrollment plane; docs/design/enrollment.md "Enrollment".
 */

import type {
  EnrollmentApproval,
  EnrollmentDenial,
  EnrollmentView,
} from '../contract/derived-keys-contract.ts';
import type { EnrollmentState } from '../contract/vocabulary.ts';
import { ApiProblem } from '../domain/api-problem.ts';
import { submissionProblem } from '../domain/enrollment-rules.ts';
import { parseKeySetText } from '../issuers/key-set.ts';
import { isTimely } from '../issuers/source-keys.ts';
import { enrollmentView } from '../keys/enrollment-views.ts';
import {
  type Decided,
  decide,
  enrollmentStateAfter,
  issueKey,
  type PlacedTransaction,
} from '../keys/outcomes.ts';
import { isBoundTo, submissionFacts } from '../keys/policy-facts.ts';
import { BY_CONTROL, type By, placeInSite, requireRow, requireVersion } from '../resource/change.ts';
import type { Operation } from '../resource/operation.ts';
import { whyNotActive } from '../sources/source-views.ts';
import type { AuditEntry, ControlStore } from '../store/port.ts';
import { type RangedPage, viewsOf } from '../store/repositories/ranged-list.ts';
import type { Page, RowOf } from '../store/repositories/records.ts';
import type { Transaction } from '../store/transaction.ts';

export interface EnrollmentListFilter {
  readonly state?: EnrollmentState | undefined;
  readonly policyId?: string | undefined;
}

/** The version that the operator saw, if it was named. */
interface Seen {
  readonly version?: number | undefined;
}

interface EnrollmentContext extends PlacedTransaction {
  readonly row: RowOf<'enrollment'>;
}

type Decision = (
  context: EnrollmentContext,
  nowMs: number,
) => Promise<Decided & { readonly alsoAudited?: readonly AuditEntry[] }>;

export class EnrollmentDecisions {
  readonly #store: ControlStore;
  readonly #nowMs: () => number;

  constructor(store: ControlStore, nowMs: () => number) {
    this.#store = store;
    this.#nowMs = nowMs;
  }

  /** @throws ApiProblem `enrollment_unknown` */
  enrollment(id: string): Promise<EnrollmentView> {
    return this.#store.read(async (tx) => enrollmentView(await requireEnrollment(tx, id)));
  }

  async ofSite(
    siteId: string,
    filter: EnrollmentListFilter,
    page: Page,
  ): Promise<RangedPage<EnrollmentView>> {
    const rows = await this.#store.readAside((tx) => tx.enrollments.ofSite(siteId, page, filter));
    return viewsOf(rows, enrollmentView);
  }

  /**
   * Issues the key. After an error the enrollment stays pending, unless it has expired.
   * @throws ApiProblem `enrollment_state_conflict`, `enrollment_expired`, `policy_not_active`, `policy_issuer_mismatch`,
   *   `policy_revision_outdated`, `source_not_active`, `subject_blocked`, `key_revoked`, `token_key_limit`, `token_key_unknown`,
   *   `issuer_keys_unavailable`, `precondition_failed`
   */
  async approve(
    id: string,
    { reason, version }: EnrollmentApproval & Seen,
    operation: Operation,
  ): Promise<EnrollmentView> {
    const view = await this.#decideOne(id, async (context, nowMs) => {
      const { row } = context;
      if (version !== undefined) requireVersion(row, version);
      const state = enrollmentStateAfter(row.state, 'approve');
      if (isOver(row, nowMs)) return expire(context, operation, nowMs);
      await rejectApproval(context, nowMs);
      const { keyId, audit } = await issueKey(context, row, operation, nowMs);
      const outcome = { verb: 'approve', state, keyId, reason } as const;
      return { ...(await decide(context, row, outcome, operation, nowMs)), alsoAudited: [audit] };
    });
    // Thrown inside the transaction, it would roll back the expiry.
    if (view.state === 'expired') throw new ApiProblem('enrollment_expired');
    return view;
  }

  /** @throws ApiProblem `enrollment_state_conflict`, `precondition_failed` */
  deny(
    id: string,
    { reason, version }: EnrollmentDenial & Seen,
    operation: Operation,
  ): Promise<EnrollmentView> {
    return this.#decideOne(id, async (context, nowMs) => {
      if (version !== undefined) requireVersion(context.row, version);
      const state = enrollmentStateAfter(context.row.state, 'deny');
      const outcome = { verb: 'deny', state, denialCode: 'denied_by_operator', reason } as const;
      return decide(context, context.row, outcome, operation, nowMs);
    });
  }

  /** Expires pending enrollments whose key would have ended, each in its own transaction. @returns how many */
  async expireOverdue(limit: number): Promise<number> {
    const nowSeconds = Math.floor(this.#nowMs() / 1000);
    const overdue = await this.#store.read((tx) => tx.enrollments.overdue(nowSeconds, limit));
    for (const row of overdue) {
      const expired = this.#decide(row, (context, nowMs) => expire(context, BY_CONTROL, nowMs));
      await expired.catch(ignoreDecided);
    }
    return overdue.length;
  }

  /** @throws ApiProblem `enrollment_unknown`, and what `work` throws */
  async #decideOne(id: string, work: Decision): Promise<EnrollmentView> {
    // An enrollment never leaves its site, so this read only names the lock.
    return this.#decide(await this.#store.read((tx) => requireEnrollment(tx, id)), work);
  }

  /** Decides on the row as it is under the site's lock. */
  #decide({ id, siteId }: Pick<RowOf<'enrollment'>, 'id' | 'siteId'>, work: Decision) {
    return this.#store.mutate({ kind: 'site', siteId }, async (tx) => {
      const context = { tx, row: await requireEnrollment(tx, id), place: await placeInSite(tx, siteId) };
      const { row, audit, alsoAudited = [] } = await work(context, this.#nowMs());
      return { result: enrollmentView(row), audit: [audit, ...alsoAudited] };
    });
  }
}

function expire(context: EnrollmentContext, by: By, nowMs: number): Promise<Decided> {
  const state = enrollmentStateAfter(context.row.state, 'expire');
  return decide(context, context.row, { verb: 'expire', state }, by, nowMs);
}

/** Ignores that an operator decided the enrollment between the read and the lock. */
function ignoreDecided(error: unknown): void {
  const isDecided =
    error instanceof ApiProblem && ['enrollment_state_conflict', 'enrollment_unknown'].includes(error.code);
  if (!isDecided) throw error;
}

function isOver({ keyExpiresAtSeconds }: RowOf<'enrollment'>, nowMs: number): boolean {
  return keyExpiresAtSeconds <= Math.floor(nowMs / 1000);
}

/** @throws ApiProblem */
async function rejectApproval({ tx, row }: EnrollmentContext, nowMs: number): Promise<void> {
  const policy = requireRow(await tx.policies.find(row.policyId));
  const problem = submissionProblem(await submissionFacts(tx, policy, row.thumbprint, row.tokenHash));
  if (problem === 'source_not_active') {
    const revision = await tx.sourceRevisions.find(policy.sourceId, policy.sourceRevision);
    throw new ApiProblem(problem, revision && (await whyNotActive(tx, revision)));
  }
  if (problem !== undefined) throw new ApiProblem(problem);
  // The revision that the policy is bound to now has not verified this token.
  if (!isBoundTo(policy, row)) {
    throw new ApiProblem('policy_revision_outdated');
  }
  await rejectWithdrawnKey(tx, row, nowMs);
}

/** Rejects a token whose signing key the issuer has withdrawn since. @throws ApiProblem */
async function rejectWithdrawnKey(tx: Transaction, row: RowOf<'enrollment'>, nowMs: number): Promise<void> {
  // An older version, without this column, accepted the enrollment.
  if (row.tokenKeyThumbprint === null) return;
  const kept = await tx.sources.keySet(row.sourceId, row.sourceRevision);
  const keys = kept && parseKeySetText(kept.jwks);
  if (kept === undefined || keys === undefined || !isTimely(kept.fetchedAtMs, nowMs)) {
    throw new ApiProblem('issuer_keys_unavailable');
  }
  if (!keys.some(({ thumbprint }) => thumbprint === row.tokenKeyThumbprint)) {
    throw new ApiProblem('token_key_unknown', 'the issuer took back the key that signed the token');
  }
}

/** @throws ApiProblem `enrollment_unknown` */
export async function requireEnrollment(tx: Transaction, id: string): Promise<RowOf<'enrollment'>> {
  const row = await tx.enrollments.find(id);
  if (row === undefined) throw new ApiProblem('enrollment_unknown');
  return row;
}
