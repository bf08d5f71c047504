/**
 * Operators list and revoke derived keys and block and unblock subjects here.
 * Source: specification "Derived key"; docs/design/enrollment.md "Enrollment".
 */

import type {
  BlockedSubjectView,
  DerivedKeyView,
  KeyLastUsedView,
  KeyRevocation,
  KeyRevocationResult,
} from '../contract/derived-keys-contract.ts';
import type { KeyState } from '../contract/vocabulary.ts';
import { ApiProblem } from '../domain/api-problem.ts';
import { KEY_MACHINE, keyStateAt } from '../domain/enrollment-rules.ts';
import { move } from '../domain/machine.ts';
import { audited, momentOf, placeInSite, requireRow } from '../resource/change.ts';
import { type Created, createOnce, type Operation } from '../resource/operation.ts';
import type { AuditEntry, ControlStore } from '../store/port.ts';
import { type RangedPage, viewsOf } from '../store/repositories/ranged-list.ts';
import type { Page, RowOf } from '../store/repositories/records.ts';
import type { Transaction } from '../store/transaction.ts';
import { blockedSubjectView, derivedKeyView } from './enrollment-views.ts';
import type { PlacedTransaction } from './outcomes.ts';

interface DerivedKeyFilter {
  readonly clientId?: string | undefined;
  readonly status?: KeyState | undefined;
  /** Part of the verified subject. */
  readonly subject?: string | undefined;
  readonly fingerprint?: string | undefined;
}

interface SubjectName {
  readonly issuer: string;
  readonly subject: string;
}

export class DerivedKeys {
  readonly #store: ControlStore;
  readonly #nowMs: () => number;

  constructor(store: ControlStore, nowMs: () => number) {
    this.#store = store;
    this.#nowMs = nowMs;
  }

  /** @throws ApiProblem `not_found` */
  key(keyId: string): Promise<DerivedKeyView> {
    return this.#store.read((tx) => this.#view(tx, keyId));
  }

  async #view(tx: Transaction, keyId: string): Promise<DerivedKeyView> {
    const lastUsed = await tx.keyUses.lastOf([keyId]);
    return derivedKeyView(requireRow(await tx.keys.find(keyId)), this.#nowMs(), lastUsed.get(keyId));
  }

  /** The last use of a key at each target. @throws ApiProblem `not_found` */
  lastUsed(keyId: string): Promise<KeyLastUsedView> {
    return this.#store.read(async (tx) => {
      const { keyId: key_id } = requireRow(await tx.keys.find(keyId));
      const uses = await tx.keyUses.byTarget(key_id);
      const targets = uses.map(({ name, targetId: target_id, usedAtSeconds }) => {
        return { target_id, name, last_used_at: momentOf(usedAtSeconds * 1000) };
      });
      return { key_id, targets };
    });
  }

  async ofSite(
    siteId: string,
    { clientId, status, subject, fingerprint }: DerivedKeyFilter,
    page: Page,
  ): Promise<RangedPage<DerivedKeyView>> {
    const nowMs = this.#nowMs();
    const state = status && { status, nowSeconds: Math.floor(nowMs / 1000) };
    const filter = { clientId, state, subject, thumbprint: fingerprint };
    return this.#store.readAside(async (tx) => {
      const rows = await tx.keys.ofSite(siteId, page, filter);
      const lastUsed = await tx.keyUses.lastOf(rows.map((row) => row.keyId));
      return viewsOf(rows, (row) => derivedKeyView(row, nowMs, lastUsed.get(row.keyId)));
    });
  }

  /**
   * Revokes every living key ID of this public key and rejects the public key for good. An expired key stays expired, but
   * its public key is rejected too.
   * @throws ApiProblem `not_found`, `key_state_conflict` when the public key is already rejected
   */
  async revoke(
    keyId: string,
    { reason, block_subject: blocksSubject = false }: KeyRevocation,
    operation: Operation,
  ): Promise<KeyRevocationResult> {
    const { siteId } = await this.#store.read(async (tx) => requireRow(await tx.keys.find(keyId)));
    return this.#store.mutate({ kind: 'site', siteId }, async (tx) => {
      const row = requireRow(await tx.keys.find(keyId));
      const nowMs = this.#nowMs();
      const state = keyStateAt(row.status, row.expiresAtSeconds, Math.floor(nowMs / 1000));
      await assertRevocable(tx, row, state);
      const place = await placeInSite(tx, siteId);
      const ended = await revokePublicKey(tx, row, { by: operation.actor, reason, nowMs });
      const blocks = blocksSubject ? [await blockSubject({ tx, place }, row, operation, nowMs)] : [];
      const result = {
        key: await this.#view(tx, keyId),
        revoked_key_ids: ended.map(({ after }) => after.keyId),
        subject_blocked: blocksSubject,
      };
      const entries = ended.map((one) => revocationAudit({ tx, place }, one, operation, nowMs));
      if (state === 'expired') entries.push(refusalAudit({ tx, place }, row, reason, operation));
      const [first, ...rest] = entries;
      if (first === undefined) throw new Error('the key is active and was not found among the living');
      return { result, audit: [first, ...rest, ...blocks] };
    });
  }

  /** The subject need not have a key. @throws ApiProblem `already_exists` */
  blockSubject(
    siteId: string,
    { issuer, subject }: SubjectName,
    operation: Operation,
  ): Promise<Created<BlockedSubjectView, never>> {
    const nowMs = this.#nowMs();
    return createOnce(this.#store, { kind: 'site', siteId }, operation, nowMs, async (tx) => {
      if (await tx.keys.subjectIsBlocked(siteId, issuer, subject)) {
        throw new ApiProblem('already_exists', 'the subject is blocked already');
      }
      const place = await placeInSite(tx, siteId);
      const named = { siteId, verifiedIssuer: issuer, verifiedSubject: subject };
      const entry = await blockSubject({ tx, place }, named, operation, nowMs);
      const row = { siteId, issuer, subject, blockedAtMs: nowMs, blockedBy: operation.actor };
      return { result: blockedSubjectView(row), audit: [entry] };
    });
  }

  /** Ordered by {@link blockedSubjectPlace}. */
  async blockedSubjects(siteId: string, { after, limit }: Page): Promise<readonly BlockedSubjectView[]> {
    const [issuer, subject] = after?.split(PLACE_SEPARATOR) ?? [];
    const last = issuer === undefined || subject === undefined ? undefined : { issuer, subject };
    const rows = await this.#store.readAside((tx) => tx.keys.blockedSubjects(siteId, { after: last, limit }));
    return rows.map(blockedSubjectView);
  }

  /** @throws ApiProblem `not_found` */
  unblockSubject(siteId: string, { issuer, subject }: SubjectName, operation: Operation): Promise<void> {
    return this.#store.mutate({ kind: 'site', siteId }, async (tx) => {
      const place = await placeInSite(tx, siteId);
      const isRemoved = await tx.keys.unblockSubject(siteId, issuer, subject);
      if (!isRemoved) throw new ApiProblem('not_found');
      const id = `${issuer}|${subject}`;
      const before = { issuer, subject };
      const entry = audited(operation, { what: 'blocked_subject.unblock', id, place, before });
      return { result: undefined, audit: [entry] };
    });
  }
}

/** Neither part contains a space. */
const PLACE_SEPARATOR = ' ';

/** List position of a blocked subject. */
export function blockedSubjectPlace({ issuer, subject }: SubjectName): string {
  return `${issuer}${PLACE_SEPARATOR}${subject}`;
}

/** @throws ApiProblem `key_state_conflict` */
async function assertRevocable(
  tx: Transaction,
  { siteId, thumbprint }: RowOf<'derivedKey'>,
  state: KeyState,
): Promise<void> {
  if (move(KEY_MACHINE, state, 'revoke').kind === 'moved') return;
  // An expired key keeps its state, but its public key could enroll again.
  if (state === 'expired' && !(await tx.keys.publicKeyWasRevoked(siteId, thumbprint))) return;
  const detail = state === 'expired' ? 'the key is expired, and its public key refused already' : undefined;
  throw new ApiProblem('key_state_conflict', detail ?? `the key is ${state}`);
}

async function blockSubject(
  { tx, place }: PlacedTransaction,
  {
    siteId,
    verifiedIssuer: issuer,
    verifiedSubject: subject,
  }: Pick<RowOf<'derivedKey'>, 'siteId' | 'verifiedIssuer' | 'verifiedSubject'>,
  operation: Operation,
  nowMs: number,
): Promise<AuditEntry> {
  await tx.keys.blockSubject({ siteId, issuer, subject, blockedAtMs: nowMs, blockedBy: operation.actor });
  const after = { issuer, subject };
  return audited(operation, { what: 'blocked_subject.block', id: `${issuer}|${subject}`, place, after });
}

function refusalAudit(
  { place }: PlacedTransaction,
  { keyId, thumbprint }: RowOf<'derivedKey'>,
  reason: string | undefined,
  operation: Operation,
): AuditEntry {
  const after = { key_id: keyId, fingerprint: thumbprint, ...(reason === undefined ? {} : { reason }) };
  return audited(operation, { what: 'derived_key.refuse_public_key', id: keyId, place, after });
}

function revocationAudit(
  { place }: PlacedTransaction,
  { before, after }: RevokedKey,
  operation: Operation,
  nowMs: number,
): AuditEntry {
  return audited(operation, {
    what: 'derived_key.revoke',
    id: before.keyId,
    place,
    before: derivedKeyView(before, nowMs),
    after: derivedKeyView(after, nowMs),
  });
}

/**
 * Revokes keys. Control rejects a revoked public key permanently. All its living key IDs end in the same transaction, because
 * the holder of the private key can use them all.
 * Source: docs/design/enrollment.md "Enrollment".
 */

interface Revocation {
  /** The actor, as in audit rows. */
  readonly by: string;
  readonly reason: string | undefined;
  readonly nowMs: number;
}

/** Revokes every living key of a source, and keys with the same public key. @returns how many key IDs ended */
export async function revokeKeysOfSource(
  tx: Transaction,
  { id, siteId }: Pick<RowOf<'source'>, 'id' | 'siteId'>,
  { by, reason, nowMs }: Revocation,
): Promise<number> {
  const revocation = { revokedBy: by, revokedReason: reason ?? null, nowMs };
  const ended = await tx.keys.revokeLivingOfSource(siteId, id, revocation);
  if (ended > 0) tx.notify({ topic: 'site_changed', reference: siteId });
  return ended;
}

interface RevokedKey {
  readonly before: RowOf<'derivedKey'>;
  readonly after: RowOf<'derivedKey'>;
}

/** Revokes every living key ID with this public key. */
async function revokePublicKey(
  tx: Transaction,
  { siteId, thumbprint }: Pick<RowOf<'derivedKey'>, 'siteId' | 'thumbprint'>,
  { by, reason, nowMs }: Revocation,
): Promise<readonly RevokedKey[]> {
  const living = await tx.keys.livingWithThumbprint(siteId, thumbprint, Math.floor(nowMs / 1000));
  const set = {
    status: 'revoked',
    revokedAtMs: nowMs,
    revokedBy: by,
    revokedReason: reason ?? null,
  } as const;
  const revoked: RevokedKey[] = [];
  for (const before of living) {
    revoked.push({ before, after: await tx.keys.change(before, set, nowMs) });
    await tx.changes.record(siteId, { kind: 'key', keyId: before.keyId }, nowMs);
  }
  await tx.keys.rejectPublicKey(siteId, thumbprint, nowMs);
  tx.notify({ topic: 'site_changed', reference: siteId });
  return revoked;
}
