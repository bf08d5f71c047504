/**
 * Records what targets report: accepted revisions, rejected ones with the reason, and liveness. A thousand targets
 * report within seconds of a publication, so one transaction writes all reports of 50 ms.
 */
import { LRUCache } from 'lru-cache';
import type { Acknowledgement } from '../../bundle/format/distribution-contract.ts';
import { audited, placeInSite } from '../resource/change.ts';
import type { ControlStore } from '../store/port.ts';
import type { RowOf } from '../store/repositories/records.ts';
import type { Transaction } from '../store/transaction.ts';
import { settleBlocked } from './blocked-publication.ts';
import { columnsOfRequest, type Reported } from './known-members.ts';
import { settleObservations } from './observation-publication.ts';
import { noteHeldByAll, settleSources } from './source-settlement.ts';
import { MAX_INSTANCES, noteInstances, type SeenInstance } from './target-instances.ts';
import { TargetAllowance } from './target-rate-limit.ts';
import type { ReportingTarget } from './target-tokens.ts';

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
}

interface Waiting {
  readonly target: ReportingTarget;
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
  readonly #problemRows = new TargetAllowance();
  /** Polling targets since the last write. */
  readonly #seen = new Map<string, Seen>();
  #seenTimer: NodeJS.Timeout | undefined;
  /** IDs of the instances that the last write of each target kept. */
  readonly #kept = new LRUCache<string, ReadonlySet<string>>({ max: MAX_KEPT_TARGETS });

  constructor(options: AcknowledgementsOptions) {
    this.#options = options;
  }

  /** Resolves when the acknowledgement is stored. Its revision and head must be the site's. */
  add(target: ReportingTarget, acknowledgement: Acknowledgement): Promise<void> {
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
    // In order, so that a target's latest report wins.
    this.#flushing = this.#flushing.then(() => this.#write(batch));
  }

  async #write(batch: readonly Waiting[]): Promise<void> {
    const { store, nowMs } = this.#options;
    try {
      const now = nowMs();
      await store.writeUnaudited(undefined, (tx) =>
        writeBatch(tx, batch, { nowMs: now, mayAudit: (targetId) => this.#problemRows.take(targetId, now) }),
      );
      for (const { resolve } of batch) resolve();
      for (const siteId of sitesOf(batch)) {
        await settleSources(store, siteId, now);
        await settleBlocked(store, siteId, now);
        await settleObservations(store, siteId, now);
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
    if (instance !== undefined && this.#isNoted(targetId, instance.instanceId, instances)) {
      const enforcedObservations = enforced?.count ?? 0;
      instances.set(instance.instanceId, { ...instance, targetId, siteId, revision, enforcedObservations });
    }
    this.#seen.set(targetId, {
      reported: { lackedMembers: [...new Set(lacked)], enforced },
      columns: isOnChain ? NOT_AHEAD : {},
      instances,
    });
    this.#seenTimer ??= setTimeout(() => {
      this.#seenTimer = undefined;
      void this.#writeSeen();
    }, SEEN_EVERY_MS);
  }

  /** Those that are kept are noted always, others while there is room. */
  #isNoted(targetId: string, instanceId: string, noted: ReadonlyMap<string, unknown>): boolean {
    return (
      noted.size < MAX_INSTANCES ||
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
        target.instances.size === 0 ? [] : [[id, [...target.instances.values()]] as const],
      ),
    );
    await store
      .writeUnaudited(undefined, async (tx) => {
        await noteReports(tx, reports);
        return noteInstances(tx, instances, lastSeenAtMs);
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

interface Writing {
  readonly nowMs: number;
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
  for (const entry of refused.values()) await noteRefused(tx, entry, writing);
  if (accepted.size > 0) {
    for (const siteId of sitesOf(batch)) await noteHeldByAll(tx, siteId, nowMs);
  }
}

/** Writes equal reports of many targets at once. */
async function noteReports(tx: Transaction, reports: Iterable<readonly [string, Report]>): Promise<void> {
  const groups = new Map<string, { readonly report: Report; readonly ids: string[] }>();
  for (const [targetId, report] of reports) {
    const name = JSON.stringify(report);
    const group = groups.get(name) ?? { report, ids: [] };
    group.ids.push(targetId);
    groups.set(name, group);
  }
  for (const { report, ids } of groups.values()) await tx.propagation.noteTargets(ids, report);
}

function acceptance({ target, acknowledgement: { head, revision } }: Waiting, nowMs: number): Report {
  return {
    ackedRevision: revision,
    ackedHead: head,
    ackedAtMs: nowMs,
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
