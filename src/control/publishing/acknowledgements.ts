/**
 * Records what targets report: accepted revisions, rejected ones with the reason, and liveness. A thousand targets
 * report within seconds of a publication, so one transaction writes all reports of 50 ms.
 */
import { LRUCache } from 'lru-cache';
import { type SignatureTime, verifyAcknowledgement } from '../../bundle/format/acknowledgement-signature.ts';
import type { Acknowledgement } from '../../bundle/format/distribution-contract.ts';
import { importPublicJwk } from '../../protocol/import-public-key.ts';
import { audited, placeInSite } from '../resource/change.ts';
import type { ControlStore } from '../store/port.ts';
import type { RowOf } from '../store/repositories/records.ts';
import type { Transaction } from '../store/transaction.ts';
import { settleBlocked } from './blocked-publication.ts';
import { heldColumns, type Unlisted } from './held-revision.ts';
import { columnsOfRequest, type Reported } from './known-members.ts';
import { noteHeldByAll, settleSources } from './source-settlement.ts';
import {
  bothUnlisted,
  LIVE_MS,
  MAX_INSTANCES,
  noteAcknowledged,
  noteInstances,
  type SeenInstance,
  type SeenInstances,
  type SignedReport,
} from './target-instances.ts';
import { TargetAllowance } from './target-rate-limit.ts';
import type { ReportingTarget } from './target-tokens.ts';
import { settleWithheld } from './withheld-members.ts';

const BATCH_MS = 50;
const MAX_BATCH = 250;
/** Interval at which polls update a target's last-seen time in the database. */
const SEEN_EVERY_MS = 10_000;

/** Of targets whose instances are remembered. */
const MAX_KEPT_TARGETS = 10_000;

/** Columns of a target that is no longer ahead. */
const NOT_AHEAD = { aheadRevision: null, aheadSinceMs: null };

type Report = Parameters<Transaction['propagation']['noteTargets']>[1];

interface Seen {
  /** Of the last poll, with the members that any of its polls did not name. */
  readonly reported: Reported;
  /** Columns as of the last poll. */
  readonly columns: Report;
  /** By ID: those that are kept, and at most {@link MAX_INSTANCES} others. */
  readonly instances: Map<string, SeenInstance>;
  /** Stands for all others. */
  readonly unlisted: SeenInstance | undefined;
}

interface Waiting {
  readonly target: ReportingTarget;
  readonly acknowledgement: Acknowledgement;
  /** Undefined without a valid signature of an instance. */
  readonly signed: SignatureTime | undefined;
  readonly resolve: () => void;
  readonly reject: (error: unknown) => void;
}

export interface AcknowledgementsOptions {
  readonly store: ControlStore;
  readonly nowMs: () => number;
  readonly onFault?: ((error: unknown) => void) | undefined;
  /** Number of instances of a target that are listed, {@link MAX_INSTANCES} by default. */
  readonly maxInstances?: number | undefined;
}

export class Acknowledgements {
  readonly #options: AcknowledgementsOptions;
  readonly #maxInstances: number;
  #waiting: Waiting[] = [];
  #timer: NodeJS.Timeout | undefined;
  #flushing: Promise<void> = Promise.resolve();
  readonly #problemRows = new TargetAllowance();
  /** Polling targets since the last write. */
  readonly #seen = new Map<string, Seen>();
  #seenTimer: NodeJS.Timeout | undefined;
  /** IDs of the instances that the last write of each target kept. */
  readonly #kept = new LRUCache<string, ReadonlySet<string>>({ max: MAX_KEPT_TARGETS });

  constructor(options: AcknowledgementsOptions) {
    this.#options = options;
    this.#maxInstances = options.maxInstances ?? MAX_INSTANCES;
  }

  /** Resolves when the acknowledgement is stored. Its revision and head must be the site's. */
  add(target: ReportingTarget, acknowledgement: Acknowledgement): Promise<void> {
    return new Promise((resolve, reject) => {
      const signed = this.#verify(target, acknowledgement);
      if (signed?.hasEnded === true)
        this.#seen.get(target.targetId)?.instances.delete(target.instance?.instanceId ?? '');
      this.#waiting.push({ target, acknowledgement, signed, resolve, reject });
      if (this.#waiting.length >= MAX_BATCH) this.#flush();
      else this.#timer ??= setTimeout(() => this.#flush(), BATCH_MS);
    });
  }

  #verify(target: ReportingTarget, acknowledgement: Acknowledgement): SignatureTime | undefined {
    const { instance, signature, siteId: authSite, tokenHash } = target;
    if (instance?.signing === undefined || signature === undefined) return undefined;
    const { instanceId, signing } = instance;
    const key = importPublicJwk({ kty: 'OKP', crv: 'Ed25519', x: signing.publicKey });
    if (key === undefined) return undefined;
    const { head, outcome, revision } = acknowledgement;
    const signed = { authSite, tokenHash, instanceId, signing, revision, head, outcome };
    return verifyAcknowledgement(signed, signature, key);
  }

  #flush(): void {
    clearTimeout(this.#timer);
    this.#timer = undefined;
    const batch = this.#waiting;
    this.#waiting = [];
    // In order, so that a target's latest report wins.
    this.#flushing = this.#flushing.then(() => this.#write(batch));
  }

  async #write(batch: readonly Waiting[]): Promise<void> {
    const { store, nowMs } = this.#options;
    try {
      const now = nowMs();
      await store.writeUnaudited(undefined, (tx) =>
        writeBatch(tx, batch, {
          nowMs: now,
          maxInstances: this.#maxInstances,
          mayAudit: (targetId) => this.#problemRows.take(targetId, now),
        }),
      );
      for (const { resolve } of batch) resolve();
      for (const siteId of sitesOf(batch)) {
        await settleSources(store, siteId, now);
        await settleBlocked(store, siteId, now);
        await settleWithheld(store, siteId, now);
      }
    } catch (error) {
      // Rejecting a promise that has already resolved does nothing. A later settlement handles sources that remain.
      for (const { reject } of batch) reject(error);
      this.#options.onFault?.(error);
    }
  }

  /**
   * Records where a target is, and whether it can continue from there.
   * @param revision that it has loaded; undefined before the first
   */
  noteSeen(target: ReportingTarget, isOnChain: boolean, revision: number | undefined): void {
    const { enforced, instance, lackedMembers, siteId, targetId } = target;
    const before = this.#seen.get(targetId);
    const lacked = [...(before?.reported.lackedMembers ?? []), ...lackedMembers];
    const instances = before?.instances ?? new Map<string, SeenInstance>();
    let unlisted = before?.unlisted;
    if (instance !== undefined) {
      const enforcedObservations = enforced?.count ?? 0;
      const seen = { ...instance, targetId, siteId, revision, enforcedObservations };
      const isNoted = this.#isNoted(targetId, instance.instanceId, instances);
      if (isNoted) instances.set(instance.instanceId, seen);
      else unlisted = bothUnlisted(unlisted, seen);
    }
    this.#seen.set(targetId, {
      reported: { lackedMembers: [...new Set(lacked)], enforced },
      columns: {
        ...(isOnChain ? NOT_AHEAD : {}),
        ...(instance?.signing === undefined && { unsignedUntilMs: this.#options.nowMs() + LIVE_MS }),
      },
      instances,
      unlisted,
    });
    this.#seenTimer ??= setTimeout(() => {
      this.#seenTimer = undefined;
      void this.#writeSeen();
    }, SEEN_EVERY_MS);
  }

  /** Those that are kept are noted always, others while there is room. */
  #isNoted(targetId: string, instanceId: string, noted: ReadonlyMap<string, unknown>): boolean {
    return (
      noted.size < this.#maxInstances ||
      noted.has(instanceId) ||
      this.#kept.get(targetId)?.has(instanceId) === true
    );
  }

  async #writeSeen(): Promise<void> {
    const { store, nowMs, onFault } = this.#options;
    const seen = [...this.#seen];
    this.#seen.clear();
    const lastSeenAtMs = nowMs();
    const reports = seen.map(
      ([id, { columns, reported }]) =>
        [id, { ...columns, ...columnsOfRequest(reported, lastSeenAtMs) }] as const,
    );
    const instances = new Map(
      seen.flatMap(([id, target]) =>
        target.instances.size === 0 ? [] : [[id, seenInstances(target)] as const],
      ),
    );
    await store
      .writeUnaudited(undefined, async (tx) => {
        await noteReports(tx, reports);
        const { kept, unlisted } = await noteInstances(tx, instances, lastSeenAtMs, this.#maxInstances);
        await noteHeld(tx, [...instances.keys()], unlisted, lastSeenAtMs);
        return kept;
      })
      .then((kept) => {
        for (const [targetId, ids] of kept) this.#kept.set(targetId, ids);
      })
      .catch((error: unknown) => onFault?.(error));
  }

  /** Writes what is still pending. */
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

function seenInstances({ instances, unlisted }: Seen): SeenInstances {
  return { listed: [...instances.values()], unlisted };
}

interface Writing {
  readonly nowMs: number;
  readonly maxInstances: number;
  /** Whether a rejection by this target may add an audit row. */
  readonly mayAudit: (targetId: string) => boolean;
}

async function writeBatch(tx: Transaction, batch: readonly Waiting[], writing: Writing): Promise<void> {
  const { nowMs } = writing;
  // Keep each target's latest report of either outcome.
  const accepted = new Map<string, Report>();
  const refused = new Map<string, Waiting>();
  for (const entry of batch) {
    const { target, acknowledgement } = entry;
    const { targetId } = target;
    if (acknowledgement.outcome === 'accepted') {
      // Verifiers that share the target may lack different members.
      accepted.set(targetId, { ...accepted.get(targetId), ...acceptance(entry, nowMs) });
    } else refused.set(targetId, entry);
  }
  await noteReports(tx, accepted);
  const unlisted = await noteAcknowledged(tx, batch.flatMap(signedReportOf), nowMs, writing.maxInstances);
  await noteHeld(tx, [...accepted.keys()], unlisted, nowMs);
  for (const entry of refused.values()) await noteRefused(tx, entry, writing);
  if (accepted.size > 0) {
    for (const siteId of sitesOf(batch)) await noteHeldByAll(tx, siteId, nowMs);
  }
}

/** Writes equal reports of many targets at once. */
async function noteReports(tx: Transaction, reports: Iterable<readonly [string, Report]>): Promise<void> {
  const groups = new Map<string, { readonly report: Report; readonly ids: string[] }>();
  for (const [targetId, report] of reports) {
    if (Object.keys(report).length === 0) continue;
    const name = JSON.stringify(report);
    const group = groups.get(name) ?? { report, ids: [] };
    group.ids.push(targetId);
    groups.set(name, group);
  }
  for (const { report, ids } of groups.values()) await tx.propagation.noteTargets(ids, report);
}

/** Records which revision the targets have now. Reports of this transaction already hold the rows, so that no entry is lost. */
async function noteHeld(
  tx: Transaction,
  targetIds: readonly string[],
  unlisted: ReadonlyMap<string, Unlisted>,
  nowMs: number,
): Promise<void> {
  const instances = await tx.targetInstances.ofAttached(targetIds);
  const rows = await tx.targets.ofIds([...instances.keys()]);
  await noteReports(
    tx,
    rows.map((row) => {
      const { id } = row;
      return [id, heldColumns(row, instances.get(id) ?? [], unlisted.get(id), nowMs)] as const;
    }),
  );
}

function signedReportOf({ acknowledgement, signed, target }: Waiting): readonly SignedReport[] {
  const { enforced, instance, siteId, targetId } = target;
  if (signed === undefined || instance === undefined || acknowledgement.outcome !== 'accepted') return [];
  const { head, revision } = acknowledgement;
  const seen = { ...instance, targetId, siteId, revision, enforcedObservations: enforced?.count ?? 0 };
  return [{ instance: seen, revision, head, ...signed }];
}

function acceptance({ target, acknowledgement, signed }: Waiting, nowMs: number): Report {
  const { head, revision } = acknowledgement;
  // One that does not sign speaks for those that do not.
  const unsigned = { unsignedRevision: revision, unsignedHead: head, ackedAtMs: nowMs };
  return {
    ...(signed === undefined && { ...unsigned, unsignedUntilMs: nowMs + LIVE_MS }),
    ...columnsOfRequest(target, nowMs),
    ...NOT_AHEAD,
  };
}

/** Audits the first rejection and every change of its reason, within the target's allowance, not every revision. */
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
    ...columnsOfRequest(target, nowMs),
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

/** Whether the target rejected a revision newer than any that it accepted. */
export function isRefusing({ refusedRevision, ackedRevision }: RowOf<'target'>): boolean {
  return refusedRevision !== null && refusedRevision > (ackedRevision ?? 0);
}
