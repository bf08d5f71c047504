/**
 * An operator's operation: actor, request ID and optional idempotency key. Repeating a creation with the same
 * Idempotency-Key returns the first response and changes nothing.
 * Source: docs/operate/control-api.md "API".
 */
import { ApiProblem } from '../domain/api-problem.ts';
import {
  type AuditEntry,
  ConstraintError,
  type Lock,
  type Mutated,
  type Transactions,
} from '../store/port.ts';
import type { Transaction } from '../store/transaction.ts';

export interface Operation {
  /** The actor's name in audit rows: `oidc:<issuer>|<subject>`, `token:<id>`, `bootstrap`. */
  readonly actor: string;
  readonly requestId: string;
  /** Reason for the audit trail. */
  readonly reason?: string | undefined;
  readonly idempotency?: IdempotencyKey | undefined;
}

interface IdempotencyKey {
  readonly key: string;
  /** SHA-256 of method, path and body, base64url. */
  readonly requestHash: string;
}

/** Result of a creation: the resource's view, and secrets that are shown only once. */
export interface Creation<V extends object, S extends object> extends Mutated<V> {
  readonly shownOnce?: S;
}

export interface Created<V extends object, S extends object> {
  readonly view: V;
  /** Absent in a replayed response: it was shown once. */
  readonly shownOnce: S | undefined;
  readonly replayed: boolean;
}

/**
 * Runs a creation in one transaction with its audit rows and its stored response.
 * @throws ApiProblem `idempotency_conflict` when the key came with another request; whatever `work` throws
 */
export async function createOnce<V extends object, S extends object = never>(
  store: Transactions,
  lock: Lock,
  operation: Operation,
  nowMs: number,
  work: (tx: Transaction) => Promise<Creation<V, S>>,
): Promise<Created<V, S>> {
  const { idempotency } = operation;
  if (idempotency !== undefined) {
    const earlier = await store.read((tx) => earlierAnswer<V>(tx, operation, idempotency));
    if (earlier !== undefined) return { view: earlier, shownOnce: undefined, replayed: true };
  }
  try {
    return await store.mutate(lock, async (tx) => {
      // Checked again under the lock: two requests with one key may arrive at once.
      if (idempotency !== undefined && (await earlierAnswer<V>(tx, operation, idempotency)) !== undefined) {
        throw new AnsweredMeanwhile();
      }
      const { result, shownOnce, audit } = await work(tx);
      if (idempotency !== undefined) await keepAnswer(tx, operation, idempotency, result, nowMs);
      return { result: { view: result, shownOnce, replayed: false }, audit: withRequest(audit, operation) };
    });
  } catch (error) {
    // The table's unique constraint catches the same key under another lock.
    const cameTwice = error instanceof AnsweredMeanwhile || error instanceof ConstraintError;
    if (!cameTwice || idempotency === undefined) throw error;
    const earlier = await store.read((tx) => earlierAnswer<V>(tx, operation, idempotency));
    if (earlier === undefined) throw error;
    return { view: earlier, shownOnce: undefined, replayed: true };
  }
}

class AnsweredMeanwhile extends Error {}

async function earlierAnswer<V extends object>(
  tx: Transaction,
  { actor }: Operation,
  { key, requestHash }: IdempotencyKey,
): Promise<V | undefined> {
  const row = await tx.operators.answered(actor, key);
  if (row === undefined) return undefined;
  if (row.requestHash !== requestHash) throw new ApiProblem('idempotency_conflict');
  return JSON.parse(row.body) as V;
}

async function keepAnswer(
  tx: Transaction,
  { actor }: Operation,
  { key, requestHash }: IdempotencyKey,
  view: object,
  nowMs: number,
): Promise<void> {
  const body = JSON.stringify(view);
  await tx.operators.keepAnswer({
    actor,
    key,
    requestHash,
    status: 201,
    body,
    headers: '{}',
    createdAtMs: nowMs,
  });
}

function withRequest(
  audit: Mutated<unknown>['audit'],
  { requestId }: Operation,
): readonly [AuditEntry, ...AuditEntry[]] {
  const [first, ...rest] = audit;
  return [{ ...first, requestId }, ...rest.map((entry) => ({ ...entry, requestId }))];
}
