/**
 * Issues revocation receipts: which targets acknowledged a revocation, and from when on no verifier can allow requests of the key.
 * A receipt is effective only when every verifier, known or not, denies everything that it decides from a bundle without the
 * revocation. Acknowledgements alone never make it so: a verifier with an older bundle in its state directory may start.
 * Source: docs/operate/control.md "Revocation receipts".
 */
import {
  endOfKey,
  endOfUse,
  RECEIPT_ASSUMPTIONS,
  type ReceiptBound,
  type ReceiptInstance,
  type ReceiptTarget,
  type RevocationReceipt,
  signReceipt,
} from '../../bundle/format/revocation-receipt.ts';
import type { SigningKey } from '../../protocol/signing.ts';
import type { RevocationReceiptView } from '../contract/derived-keys-contract.ts';
import { ApiProblem } from '../domain/api-problem.ts';
import { audited, BY_CONTROL, momentOf, requireRow } from '../resource/change.ts';
import type { ControlStore } from '../store/port.ts';
import type { RowOf } from '../store/repositories/records.ts';
import type { Transaction } from '../store/transaction.ts';
import type { SiteSigningKeys } from './bundle-signing-keys.ts';
import { limitsOf } from './reported-limits.ts';
import { boundMembers } from './signed-bounds.ts';

type Key = RowOf<'derivedKey'>;

const MAX_WAITING = 100;

export interface ReceiptsOptions {
  readonly store: ControlStore;
  readonly keyring: SiteSigningKeys;
  readonly nowMs: () => number;
}

/** @throws ApiProblem `not_found`, `key_not_revoked` */
export async function issueReceipt(
  keyId: string,
  { keyring, nowMs, store }: ReceiptsOptions,
): Promise<RevocationReceiptView> {
  const now = nowMs();
  const found = await store.read(async (tx) => {
    const key = requireRow(await tx.keys.find(keyId));
    if (key.status !== 'revoked') throw new ApiProblem('key_not_revoked');
    const signers = await keyring.signers(tx, key.siteId, 'receipt', now);
    const targets = await tx.targets.ofSite(key.siteId);
    const names = new Map(targets.map(({ id, name }) => [id, name]));
    return { key, signer: signers[0], receipt: await receiptOf(tx, key, now), names };
  });
  const signer = found.signer ?? (await firstSigner(found.key.siteId, { keyring, nowMs, store }));
  const { no_use_from: end, state } = found.receipt;
  return {
    key_id: keyId,
    state,
    ...(end === undefined ? {} : { no_use_from: momentOf(end * 1000) }),
    waiting_for: found.receipt.waiting_for.map((instance) => {
      return { ...instance, target_name: found.names.get(instance.target_id) ?? instance.target_id };
    }),
    receipt: signReceipt(found.receipt, signer),
  };
}

/** Creates the receipt key of a site that an earlier version created. */
async function firstSigner(siteId: string, { keyring, nowMs, store }: ReceiptsOptions): Promise<SigningKey> {
  const now = nowMs();
  return store.writeUnaudited({ kind: 'site', siteId }, async (tx) => {
    const [known] = await keyring.signers(tx, siteId, 'receipt', now);
    if (known !== undefined) return known;
    const place = requireRow(await tx.hierarchy.placeOfSite(siteId));
    const { id, thumbprint } = await keyring.rotate(tx, siteId, 'receipt', { nowMs: now });
    const [signer] = await keyring.signers(tx, siteId, 'receipt', now);
    if (signer === undefined) throw new Error(`the receipt key of ${siteId} does not sign`);
    const after = { signing_key_id: id, purpose: 'receipt', thumbprint };
    const entry = audited(BY_CONTROL, { what: 'signing_key.rotate', id, place, after });
    await tx.audit.append(entry, now);
    return signer;
  });
}

/** What is known now. In doubt it is pending. */
export async function receiptOf(tx: Transaction, key: Key, nowMs: number): Promise<RevocationReceipt> {
  const { revokedRevision: revision, siteId } = key;
  const nowSeconds = Math.floor(nowMs / 1000);
  const bound = revision === null ? undefined : await boundOf(tx, siteId, revision);
  const keyEnd = endOfKey(key.expiresAtSeconds);
  // Without a bound, only the key's own end is known.
  const end = bound === undefined ? keyEnd : Math.min(keyEnd, endOfUse(bound));
  const isKnown = bound !== undefined || nowSeconds >= keyEnd;
  const targets = await tx.targets.ofSite(siteId);
  return {
    ...{ auth_site: siteId, key_id: key.keyId, thumbprint: key.thumbprint },
    key_expires_at: key.expiresAtSeconds,
    revoked_at: Math.floor((key.revokedAtMs ?? nowMs) / 1000),
    ...(revision === null ? {} : { revision }),
    state: isKnown && nowSeconds >= end ? 'effective' : 'pending',
    issued_at: nowSeconds,
    ...(isKnown ? { no_use_from: end } : {}),
    ...(bound === undefined ? {} : { bound }),
    targets: targets.map((target) => targetOf(target, revision)),
    waiting_for: await waitingFor(tx, siteId, revision, nowMs),
    assumptions: RECEIPT_ASSUMPTIONS,
  };
}

/** Undefined when it is unknown what was signed before. */
async function boundOf(tx: Transaction, siteId: string, revision: number): Promise<ReceiptBound | undefined> {
  const ends = await tx.signedBounds.ofRevocation(siteId, revision);
  const reported = await tx.signedBounds.find(siteId);
  if (ends === undefined || reported === undefined) return undefined;
  const limits = limitsOf(reported);
  return {
    ...boundMembers(ends),
    realtime_staleness_seconds: limits.realtimeStalenessSeconds,
    unlimited_until: limits.unlimitedUntilSeconds,
  };
}

function targetOf(target: RowOf<'target'>, revision: number | null): ReceiptTarget {
  const { ackedAtMs, ackedRevision, id, state } = target;
  return {
    target_id: id,
    state,
    ...(ackedRevision === null ? {} : { acked_revision: ackedRevision }),
    ...(ackedAtMs === null ? {} : { acked_at: Math.floor(ackedAtMs / 1000) }),
    has_revision: revision !== null && (ackedRevision ?? 0) >= revision,
  };
}

async function waitingFor(
  tx: Transaction,
  siteId: string,
  revision: number | null,
  nowMs: number,
): Promise<readonly ReceiptInstance[]> {
  const instances = await tx.targetInstances.ofSite(siteId, nowMs);
  const late = instances.filter(({ ackedRevision }) => revision === null || (ackedRevision ?? 0) < revision);
  return late.slice(0, MAX_WAITING).map(({ ackedRevision, instanceId, targetId }) => ({
    ...{ target_id: targetId, instance_id: instanceId },
    ...(ackedRevision === null ? {} : { acked_revision: ackedRevision }),
  }));
}
