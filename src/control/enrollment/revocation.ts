/**
 * Revokes keys. A revoked public key is rejected for ever. All its living key IDs end in the same transaction, because
 * the holder of the private key can use them all.
 * Source: docs/control.md "Enrollment".
 */
import type { RowOf } from '../store/repositories/records.ts';
import type { Transaction } from '../store/transaction.ts';

export interface Revocation {
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

/** Revokes every living key ID with this public key. @returns the rows before the revocation */
export async function revokePublicKey(
  tx: Transaction,
  { siteId, thumbprint }: Pick<RowOf<'derivedKey'>, 'siteId' | 'thumbprint'>,
  { by, reason, nowMs }: Revocation,
): Promise<readonly RowOf<'derivedKey'>[]> {
  const living = await tx.keys.livingWithThumbprint(siteId, thumbprint, Math.floor(nowMs / 1000));
  const set = {
    status: 'revoked',
    revokedAtMs: nowMs,
    revokedBy: by,
    revokedReason: reason ?? null,
  } as const;
  for (const row of living) {
    await tx.keys.change(row, set, nowMs);
    await tx.changes.record(siteId, { kind: 'key', keyId: row.keyId }, nowMs);
  }
  await tx.keys.refusePublicKey(siteId, thumbprint, nowMs);
  tx.notify({ topic: 'site_changed', reference: siteId });
  return living;
}
