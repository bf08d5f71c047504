/**
 * A site's signing keys: one pair for bundles, deltas and links, one for freshness statements, one for revocation receipts. The master key seals the
 * private halves, each bound to its key ID. During a rotation both keys sign until the old one retires, so that verifiers
 * can switch.
 * Source: docs/operate/control.md "Scope, permissions, secrets"; docs/design/bundle.md "Signed documents".
 */
import { createPrivateKey } from 'node:crypto';
import { LRUCache } from 'lru-cache';
import { type PublicJwk, parsePublicJwk } from '../../protocol/public-key.ts';
import { generateSigningKey, type SigningKey, signingKeyOf } from '../../protocol/signing.ts';
import { ApiProblem } from '../domain/api-problem.ts';
import { newId } from '../domain/resource-identifiers.ts';
import type { MasterKeys } from '../secrets/master-keys.ts';
import type { RowOf } from '../store/repositories/records.ts';
import type { Transaction } from '../store/transaction.ts';

const SIGNING_PURPOSES = ['bundle', 'freshness', 'receipt'] as const;
export type SigningPurpose = (typeof SIGNING_PURPOSES)[number];

/** Default overlap in which a replaced key still signs. */
export const DEFAULT_RETIRING_MS = 24 * 3600 * 1000;
/** Documents take 16 signatures; repeated rotation needs no more than these. */
const MAX_SIGNERS = 5;
const MAX_LOADED_KEYS = 1000;

/** The public part of a key, which verifiers pin. */
export interface SigningKeyView {
  readonly id: string;
  readonly purpose: SigningPurpose;
  readonly state: RowOf<'signingKey'>['state'];
  readonly thumbprint: string;
  readonly jwk: PublicJwk;
  readonly createdAtMs: number;
  /** When a retiring key stops signing. */
  readonly retireAtMs: number | undefined;
}

export class SiteSigningKeys {
  readonly #masterKeys: MasterKeys;
  /** Unsealed keys by ID. A key never changes. */
  readonly #loaded = new LRUCache<string, SigningKey>({ max: MAX_LOADED_KEYS });

  constructor(masterKeys: MasterKeys) {
    this.#masterKeys = masterKeys;
  }

  /** Creates a key of each purpose, in the transaction that creates the site. It holds the lock of the installation. */
  async create(tx: Transaction, siteId: string, nowMs: number): Promise<readonly SigningKeyView[]> {
    const views: SigningKeyView[] = [];
    for (const purpose of SIGNING_PURPOSES) views.push(await this.#add(tx, siteId, purpose, nowMs));
    return views;
  }

  async #add(
    tx: Transaction,
    siteId: string,
    purpose: SigningPurpose,
    nowMs: number,
  ): Promise<SigningKeyView> {
    const id = newId('signingKey', nowMs);
    const { privateKey, publicKey } = generateSigningKey('Ed25519');
    const sealing = await this.#masterKeys.current(tx);
    const sealedPrivateKey = sealing.seal(
      privateKey.export({ type: 'pkcs8', format: 'der' }),
      sealingPurpose(id),
    );
    const { jwk, thumbprint } = publicKey;
    await tx.signingKeys.add({
      id,
      siteId,
      purpose,
      state: 'active',
      publicJwk: JSON.stringify(jwk),
      thumbprint,
      sealedPrivateKey,
      createdAtMs: nowMs,
      retireAtMs: null,
    });
    return { id, purpose, state: 'active', thumbprint, jwk, createdAtMs: nowMs, retireAtMs: undefined };
  }

  /**
   * Creates a new key. The previous one also signs for an overlap. The next publication is a whole bundle with both
   * signatures, so that a verifier which knows only the new key can start.
   * @returns the new key
   */
  async rotate(
    tx: Transaction,
    siteId: string,
    purpose: SigningPurpose,
    { nowMs, retiringMs = DEFAULT_RETIRING_MS }: { readonly nowMs: number; readonly retiringMs?: number },
  ): Promise<SigningKeyView> {
    const signing = (await tx.signingKeys.ofSite(siteId)).filter(
      (row) => row.purpose === purpose && isSigning(row, nowMs),
    );
    const view = await this.#add(tx, siteId, purpose, nowMs);
    for (const row of signing.filter(({ state }) => state === 'active')) {
      await tx.signingKeys.change(row.id, { state: 'retiring', retireAtMs: nowMs + retiringMs });
    }
    for (const row of signing.slice(0, Math.max(0, signing.length + 1 - MAX_SIGNERS))) {
      await retire(tx, row);
    }
    // No document that verifiers read has its signature.
    if (purpose === 'receipt') return view;
    await tx.hierarchy.advance(siteId, { wholeNeeded: 1 });
    tx.notify({ topic: 'site_changed', reference: siteId });
    return view;
  }

  /**
   * Retires a retiring key earlier than planned. If at once, the next publication is a whole bundle without its signature.
   * @throws ApiProblem `not_found`, `signing_key_state_conflict`
   */
  async retire(
    tx: Transaction,
    siteId: string,
    id: string,
    { nowMs, retiringMs }: { readonly nowMs: number; readonly retiringMs: number },
  ): Promise<{ readonly before: SigningKeyView; readonly after: SigningKeyView }> {
    const row = (await tx.signingKeys.ofSite(siteId)).find((candidate) => candidate.id === id);
    if (row === undefined) throw new ApiProblem('not_found');
    const retireAtMs = nowMs + retiringMs;
    rejectUnlessSooner(row, retireAtMs);
    await tx.signingKeys.change(id, { retireAtMs });
    if (retiringMs > 0) return { before: viewOf(row), after: viewOf({ ...row, retireAtMs }) };
    await retire(tx, row);
    this.#loaded.delete(id);
    await tx.hierarchy.advance(siteId, { wholeNeeded: 1 });
    tx.notify({ topic: 'site_changed', reference: siteId });
    return { before: viewOf(row), after: viewOf({ ...row, state: 'retired', retireAtMs }) };
  }

  /**
   * The keys that sign now: the active one first, then retiring ones.
   * @throws UnsealError when another master key sealed them
   */
  async signers(
    tx: Transaction,
    siteId: string,
    purpose: SigningPurpose,
    nowMs: number,
  ): Promise<readonly SigningKey[]> {
    const rows = (await tx.signingKeys.ofSite(siteId)).filter(
      (row) => row.purpose === purpose && isSigning(row, nowMs),
    );
    return rows.toSorted(byStateThenName).map((row) => this.#load(row));
  }

  #load(row: RowOf<'signingKey'>): SigningKey {
    const known = this.#loaded.get(row.id);
    if (known !== undefined) return known;
    const der = this.#masterKeys.unseal(row.sealedPrivateKey, sealingPurpose(row.id));
    const key = signingKeyOf(createPrivateKey({ key: der, format: 'der', type: 'pkcs8' }));
    if (key.publicKey.thumbprint !== row.thumbprint)
      throw new Error(`signing key ${row.id} is not what its row says`);
    this.#loaded.set(row.id, key);
    return key;
  }

  /** All keys of a site, including retired ones, oldest first. */
  async ofSite(tx: Transaction, siteId: string): Promise<readonly SigningKeyView[]> {
    return (await tx.signingKeys.ofSite(siteId)).map(viewOf);
  }

  /** Retires keys whose overlap is over and deletes their private halves. @returns how many */
  async retireDue(tx: Transaction, siteId: string, nowMs: number): Promise<number> {
    const due = (await tx.signingKeys.ofSite(siteId)).filter(
      (row) => row.state === 'retiring' && !isSigning(row, nowMs),
    );
    for (const row of due) {
      await retire(tx, row);
      this.#loaded.delete(row.id);
    }
    return due.length;
  }
}

/** Binds sealed text to its key, so that it does not open in another row. */
export function sealingPurpose(id: string): string {
  return `signing-key:${id}`;
}

function isSigning({ state, retireAtMs }: RowOf<'signingKey'>, nowMs: number): boolean {
  return state === 'active' || (state === 'retiring' && (retireAtMs ?? 0) > nowMs);
}

/** An active key must be rotated first; a retired one has lost its private half. */
function rejectUnlessSooner({ state, retireAtMs }: RowOf<'signingKey'>, wantedMs: number): void {
  if (state === 'active') {
    throw new ApiProblem('signing_key_state_conflict', 'the key is active: rotate it first');
  }
  if (state === 'retired') throw new ApiProblem('signing_key_state_conflict', 'the key is retired already');
  if (!(wantedMs < (retireAtMs ?? 0))) {
    const planned = new Date(retireAtMs ?? 0).toISOString();
    throw new ApiProblem('signing_key_state_conflict', `the key ends at ${planned}, which is no later`);
  }
}

async function retire(tx: Transaction, { id }: RowOf<'signingKey'>): Promise<void> {
  await tx.signingKeys.change(id, { state: 'retired', sealedPrivateKey: '' });
}

function byStateThenName(a: RowOf<'signingKey'>, b: RowOf<'signingKey'>): number {
  if (a.state !== b.state) return a.state === 'active' ? -1 : 1;
  return a.id < b.id ? -1 : 1;
}

function viewOf(row: RowOf<'signingKey'>): SigningKeyView {
  const jwk = parsePublicJwk(JSON.parse(row.publicJwk));
  if (jwk === undefined) throw new Error(`signing key ${row.id} has no public key`);
  const { id, purpose, state, thumbprint, createdAtMs, retireAtMs } = row;
  return { id, purpose, state, thumbprint, jwk, createdAtMs, retireAtMs: retireAtMs ?? undefined };
}
