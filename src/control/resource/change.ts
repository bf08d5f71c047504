/** Helpers for configuration changes: audit rows, versions, and recording a change for the publisher. */

import { ApiProblem } from '../domain/api-problem.ts';
import type { AuditedChange } from '../domain/audit-kinds.ts';
import type { ScopePath } from '../domain/roles.ts';
import type { AuditEntry, Lock, Transaction, Transactions } from '../store/port.ts';
import type { Change } from '../store/repositories/changes-repository.ts';
import type { Page } from '../store/repositories/records.ts';

/**
 * Checks, inside the transaction of a change, that verifiers would accept the site's content.
 * @throws ApiProblem `definition_invalid` with each fault's place and reason
 */
export type SiteCheck = (tx: Transaction, siteId: string) => Promise<void>;

export interface ConfigurationDeps {
  readonly store: Transactions;
  readonly nowMs: () => number;
  readonly siteCheck: SiteCheck;
}

/** Lock for resources that belong to no site. */
export const INSTALLATION_LOCK: Lock = { kind: 'installation' };

/** A page of one row, to learn whether a list is empty. */
export const ONE_ROW: Page = { after: undefined, limit: 1 };

/** The actor of a change: an operator, a workload, a target, or Control itself. */
export interface By {
  readonly actor: string;
  readonly requestId?: string | undefined;
  /** Reason for the audit trail. */
  readonly reason?: string | undefined;
}

export const BY_CONTROL: By = { actor: 'control' };

/** Builds the audit row of a change. `before` and `after` are API views, so they hold no secrets. */
export function audited(
  { actor, requestId, reason }: By,
  change: {
    readonly what: AuditedChange;
    readonly id: string;
    readonly place: ScopePath;
    readonly before?: object | undefined;
    readonly after?: object | undefined;
  },
): AuditEntry {
  const { what, id, place, before, after } = change;
  return {
    kind: `proofgate.control.${what}`,
    actor,
    requestId,
    reason,
    resource: { kind: what.slice(0, what.lastIndexOf('.')), id },
    place,
    before,
    after,
  };
}

/** @throws ApiProblem `precondition_failed` when the row is not at the expected version */
export function requireVersion(row: { readonly version: number }, expected: number): void {
  if (row.version !== expected) throw new ApiProblem('precondition_failed');
}

/** @throws ApiProblem `not_found` */
export function requireRow<R>(row: R | undefined): R {
  if (row === undefined) throw new ApiProblem('not_found');
  return row;
}

/** Records a change, so that the next publication includes it. */
export async function publishChange(
  tx: Transaction,
  siteId: string,
  change: Change,
  nowMs: number,
): Promise<void> {
  await tx.changes.record(siteId, change, nowMs);
  tx.notify({ topic: 'site_changed', reference: siteId });
}

/** The place of a site. @throws ApiProblem `not_found` */
export async function placeInSite(tx: Transaction, siteId: string): Promise<ScopePath> {
  return requireRow(await tx.hierarchy.placeOfSite(siteId));
}

/** Changes many rows of a site in one mutation; without items, does nothing. @param work returns an audit entry for each */
export async function mutateEach(
  store: Transactions,
  siteId: string,
  items: readonly unknown[],
  work: (tx: Transaction) => Promise<readonly AuditEntry[]>,
): Promise<void> {
  if (items.length === 0) return;
  await store.mutate({ kind: 'site', siteId }, async (tx) => {
    const [first, ...rest] = await work(tx);
    return { result: undefined, audit: [requireRow(first), ...rest] };
  });
}

/** Runs the check of one thing, which the request names: {@link checkUnnamed}, or one of many: {@link checkNamed}. */
export type CheckOne = (name: string, check: () => void) => void;

export const checkUnnamed: CheckOne = (_name, check) => check();

/** @throws ApiProblem that names the thing */
export const checkNamed: CheckOne = (name, check) => {
  try {
    check();
  } catch (error) {
    throw withName(name, error);
  }
};

/** Puts a name in front of a problem's detail. */
export function withName(name: string, error: unknown): unknown {
  if (!(error instanceof ApiProblem)) return error;
  const { code, detail, title, faults = [] } = error;
  return new ApiProblem(code, `${name}: ${detail ?? title}`, { faults });
}

/** RFC 3339, UTC, milliseconds. */
export function momentOf(ms: number): string {
  return new Date(ms).toISOString();
}

/** Version and timestamps of a row, as every view shows them. */
export function versionOf(row: {
  readonly version: number;
  readonly createdAtMs: number;
  readonly updatedAtMs: number;
}) {
  return {
    version: row.version,
    created_at: momentOf(row.createdAtMs),
    updated_at: momentOf(row.updatedAtMs),
  };
}

/** Version and timestamps of a new record. */
export function newVersion(nowMs: number) {
  return { version: 1, createdAtMs: nowMs, updatedAtMs: nowMs };
}
