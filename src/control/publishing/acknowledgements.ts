/**
 * What targets say of themselves: which revision they took, which one they refused and why, that they are there. A
 * thousand of them say it within seconds of a publication, so it is written down together: one transaction for all that
 * came within a twentieth of a second.
 */

import type { Acknowledgement } from '../../bundle/format/distribution-contract.ts';
import { audited, placeInSite } from '../configuration/change.ts';
import type { ControlStore } from '../store/port.ts';
import type { RowOf } from '../store/repositories/records.ts';
import type { Transaction } from '../store/transaction.ts';
import { noteHeldByAll, settleSources } from './source-settlement.ts';
import { TargetAllowance } from './target-allowance.ts';
import type { KnownTarget } from './target-tokens.ts';

const BATCH_MS = 50;
const MAX_BATCH = 250;
/** Until then a target that only polls is not known to be there by other instances. */
const SEEN_EVERY_MS = 10_000;

/** A target that was ahead is no longer so. */
const NOT_AHEAD = { aheadRevision: null, aheadSinceMs: null };

interface Waiting {
  readonly target: KnownTarget;
  readonly acknowledgement: Acknowledgement;
  readonly resolve: () => void;
  readonly reject: (error: unknown) => void;
}

export interface AcknowledgementsOptions {
  readonly store: ControlStore;
  readonly nowMs: () => number;
  readonly onFault?: ((error: unknown) => void) | undefined;
}

export class Acknowledgements {
  readonly #options: AcknowledgementsOptions;
  #waiting: Waiting[] = [];
  #timer: NodeJS.Timeout | undefined;
  #flushing: Promise<void> = Promise.resolve();
  readonly #refusalRows = new TargetAllowance();
  /** Whether something that is published leads on from where it stands, by target. */
  readonly #seen = new Map<string, boolean>();
  #seenTimer: NodeJS.Timeout | undefined;

  constructor(options: AcknowledgementsOptions) {
    this.#options = options;
  }

  /** Resolves when it is written down. Its revision and head must be the site's. */
  add(target: KnownTarget, acknowledgement: Acknowledgement): Promise<void> {
    return new Promise((resolve, reject) => {
      this.#waiting.push({ target, acknowledgement, resolve, reject });
      if (this.#waiting.length >= MAX_BATCH) this.#flush();
      else this.#timer ??= setTimeout(() => this.#flush(), BATCH_MS);
    });
  }

  #flush(): void {
    clearTimeout(this.#timer);
    this.#timer = undefined;
    const batch = this.#waiting;
    this.#waiting = [];
    // One after the other, so that what a target says last is what stays.
    this.#flushing = this.#flushing.then(() => this.#write(batch));
  }

  async #write(batch: readonly Waiting[]): Promise<void> {
    const { store, nowMs } = this.#options;
    try {
      const now = nowMs();
      await store.housekeep(undefined, (tx) =>
        writeBatch(tx, batch, { nowMs: now, mayAudit: (targetId) => this.#refusalRows.take(targetId, now) }),
      );
      for (const { resolve } of batch) resolve();
      for (const siteId of sitesOf(batch)) await settleSources(store, siteId, now);
    } catch (error) {
      // Of those that were told already, nobody hears; sources are settled by whoever looks next.
      for (const { reject } of batch) reject(error);
      this.#options.onFault?.(error);
    }
  }

  /** Records where a target is, and whether it can continue from there. */
  saw({ targetId }: KnownTarget, isOnChain: boolean): void {
    this.#seen.set(targetId, isOnChain);
    this.#seenTimer ??= setTimeout(() => {
      this.#seenTimer = undefined;
      void this.#writeSeen();
    }, SEEN_EVERY_MS);
  }

  async #writeSeen(): Promise<void> {
    const { store, nowMs, onFault } = this.#options;
    const seen = [...this.#seen];
    this.#seen.clear();
    const idsOf = (wanted: boolean) => seen.flatMap(([id, isOnChain]) => (isOnChain === wanted ? [id] : []));
    const lastSeenAtMs = nowMs();
    await store
      .housekeep(undefined, async (tx) => {
        await tx.propagation.noteTargets(idsOf(true), { lastSeenAtMs, ...NOT_AHEAD });
        await tx.propagation.noteTargets(idsOf(false), { lastSeenAtMs });
      })
      .catch((error: unknown) => onFault?.(error));
  }

  /** Writes down what is left. */
  async close(): Promise<void> {
    clearTimeout(this.#seenTimer);
    this.#seenTimer = undefined;
    if (this.#waiting.length > 0) this.#flush();
    await this.#flushing;
    if (this.#seen.size > 0) await this.#writeSeen();
  }
}

function sitesOf(batch: readonly Waiting[]): ReadonlySet<string> {
  return new Set(batch.map(({ target }) => target.siteId));
}

interface Writing {
  readonly nowMs: number;
  /** Whether a refusal of this target may make another row of the audit trail. */
  readonly mayAudit: (targetId: string) => boolean;
}

async function writeBatch(tx: Transaction, batch: readonly Waiting[], writing: Writing): Promise<void> {
  const { nowMs } = writing;
  // The last word of each target on each of the two matters.
  const accepted = new Map<string, Acknowledgement>();
  const refused = new Map<string, Waiting>();
  for (const entry of batch) {
    const { target, acknowledgement } = entry;
    if (acknowledgement.outcome === 'accepted') accepted.set(target.targetId, acknowledgement);
    else refused.set(target.targetId, entry);
  }
  await noteAccepted(tx, accepted, nowMs);
  for (const entry of refused.values()) await noteRefused(tx, entry, writing);
  if (accepted.size > 0) {
    for (const siteId of sitesOf(batch)) await noteHeldByAll(tx, siteId, nowMs);
  }
}

async function noteAccepted(
  tx: Transaction,
  accepted: ReadonlyMap<string, Acknowledgement>,
  nowMs: number,
): Promise<void> {
  const groups = new Map<
    string,
    { readonly head: string; readonly revision: number; readonly ids: string[] }
  >();
  for (const [targetId, { revision, head }] of accepted) {
    const group = groups.get(head) ?? { head, revision, ids: [] };
    group.ids.push(targetId);
    groups.set(head, group);
  }
  for (const { head, revision, ids } of groups.values()) {
    const set = {
      ackedRevision: revision,
      ackedHead: head,
      ackedAtMs: nowMs,
      lastSeenAtMs: nowMs,
      ...NOT_AHEAD,
    };
    await tx.propagation.noteTargets(ids, set);
  }
}

/** In the audit trail when it begins, or its reason changes, and not without end: not once more for each revision. */
async function noteRefused(
  tx: Transaction,
  { target, acknowledgement }: Waiting,
  { nowMs, mayAudit }: Writing,
): Promise<void> {
  const row = await tx.targets.find(target.targetId);
  if (row === undefined || row.state !== 'attached') return;
  const { revision, code = 'unknown', detail } = acknowledgement;
  const set = {
    refusedRevision: revision,
    refusedCode: code,
    refusedDetail: detail ?? null,
    refusedAtMs: nowMs,
    lastSeenAtMs: nowMs,
  };
  await tx.targets.note(row.id, set);
  if ((isRefusing(row) && row.refusedCode === code) || !mayAudit(row.id)) return;
  const entry = audited(
    { actor: `target:${row.id}` },
    {
      what: 'target.refuse_bundle',
      id: row.id,
      place: await placeInSite(tx, row.siteId),
      before: { acked_revision: row.ackedRevision },
      after: { refused_revision: revision, refused_code: code },
    },
  );
  await tx.audit.append(entry, nowMs);
}

/** Whether the last that it said of a revision is that it refuses it. */
export function isRefusing({ refusedRevision, ackedRevision }: RowOf<'target'>): boolean {
  return refusedRevision !== null && refusedRevision > (ackedRevision ?? 0);
}
