/**
 * Freshness statements: "this revision with this head was the latest at that time". The time never lies after an
 * unpublished change, so a stuck revocation lets freshness run out and verifiers fail closed. Each publication writes
 * one; a timer writes more, as often as a site's strictest route needs. All due sites share a transaction.
 * Source: docs/design/bundle.md "Freshness"; docs/operate/control.md "From key to traffic".
 */
import { setTimeout as delay } from 'node:timers/promises';
import { signFreshness } from '../../bundle/authoring/publishing-documents.ts';
import { formatTime } from '../../protocol/rfc3339.ts';
import type { SigningKey } from '../../protocol/signing.ts';
import { isJsonObject } from '../../protocol/strict-json.ts';
import type { ControlStore } from '../store/port.ts';
import type { RowOf } from '../store/repositories/records.ts';
import type { Transaction } from '../store/transaction.ts';
import type { SiteSigningKeys } from './bundle-signing-keys.ts';
import { noteStatement } from './signed-bounds.ts';
import { allRows, routeContent } from './stored-site-content.ts';

export interface FreshnessOptions {
  readonly store: ControlStore;
  readonly signingKeys: SiteSigningKeys;
  readonly nowMs: () => number;
  readonly onFault?: (activity: 'freshness', siteId: string | undefined, error: unknown) => void;
}

const LONGEST_INTERVAL_MS = 3000;
const SHORTEST_INTERVAL_MS = 1000;
/** Statements issued within the staleness limit of the strictest route. */
const STATEMENTS_WITHIN_STALENESS = 3;
/** Maximum sites per transaction: one signature each, some milliseconds in all. */
const SITES_AT_ONCE = 50;
/** Interval of checks for due sites. */
const TICK_MS = 500;

export class FreshnessIssuer {
  readonly #options: FreshnessOptions;
  readonly #intervalsMs = new Map<string, number>();
  /** By the monotonic clock. */
  readonly #dueMs = new Map<string, number>();

  constructor(options: FreshnessOptions) {
    this.#options = options;
  }

  /** Drops the cached interval, because routes may have changed. */
  forget(siteId: string): void {
    this.#intervalsMs.delete(siteId);
  }

  async run(signal: AbortSignal): Promise<void> {
    while (!signal.aborted) {
      try {
        await this.issueDue(performance.now());
      } catch (error) {
        this.#options.onFault?.('freshness', undefined, error);
      }
      await delay(TICK_MS, undefined, { signal }).catch(() => undefined);
    }
  }

  /** @param atMs monotonic time @returns sites that were due */
  async issueDue(atMs: number): Promise<readonly string[]> {
    const { store } = this.#options;
    const sites = await store.read((tx) => tx.publication.published());
    this.#forgetAllBut(new Set(sites.map(({ id }) => id)));
    const due = sites.map(({ id }) => id).filter((id) => (this.#dueMs.get(id) ?? 0) <= atMs);
    for (let start = 0; start < due.length; start += SITES_AT_ONCE) {
      const part = due.slice(start, start + SITES_AT_ONCE);
      await this.#learnIntervals(part);
      await store.writeUnaudited(undefined, (tx) => this.#issue(tx, new Set(part)));
      for (const id of part) this.#dueMs.set(id, atMs + (this.#intervalsMs.get(id) ?? SHORTEST_INTERVAL_MS));
    }
    return due;
  }

  async #issue(tx: Transaction, siteIds: ReadonlySet<string>): Promise<void> {
    const { signingKeys, nowMs } = this.#options;
    // Read the clock, then changes, then heads: anything in between only makes a statement older.
    const now = nowMs();
    const oldestPending = await tx.publication.oldestPending();
    for (const { id: siteId, revision, head } of await tx.publication.published()) {
      if (!siteIds.has(siteId) || head === null) continue;
      const signers = await signingKeys.signers(tx, siteId, 'freshness', now);
      const oldestPendingMs = oldestPending.get(siteId);
      await writeStatement(tx, { siteId, revision, head, nowMs: now, oldestPendingMs }, signers);
    }
  }

  async #learnIntervals(siteIds: readonly string[]): Promise<void> {
    for (const siteId of siteIds.filter((id) => !this.#intervalsMs.has(id))) {
      const stalenessSeconds = await this.#options.store.read((tx) => smallestStaleness(tx, siteId));
      this.#intervalsMs.set(siteId, intervalMs(stalenessSeconds));
    }
  }

  #forgetAllBut(siteIds: ReadonlySet<string>): void {
    for (const siteId of this.#dueMs.keys()) {
      if (siteIds.has(siteId)) continue;
      this.#dueMs.delete(siteId);
      this.#intervalsMs.delete(siteId);
    }
  }
}

export function intervalMs(smallestStalenessSeconds: number | undefined): number {
  const share = ((smallestStalenessSeconds ?? Number.POSITIVE_INFINITY) * 1000) / STATEMENTS_WITHIN_STALENESS;
  return Math.max(SHORTEST_INTERVAL_MS, Math.min(LONGEST_INTERVAL_MS, share));
}

/** The smallest staleness limit of the site's routes, in seconds. */
async function smallestStaleness(tx: Transaction, siteId: string): Promise<number | undefined> {
  const rows = await allRows(
    (page) => tx.routes.list({ siteId }, page),
    ({ routeId }) => routeId,
  );
  let smallest: number | undefined;
  for (const row of rows) {
    const content = routeContent(row);
    const seconds = isJsonObject(content) ? content.max_staleness_seconds : undefined;
    if (typeof seconds === 'number') smallest = Math.min(smallest ?? seconds, seconds);
  }
  return smallest;
}

interface Statement {
  readonly siteId: string;
  readonly revision: number;
  readonly head: string;
  readonly nowMs: number;
  /** Time of the oldest unpublished change; undefined when there is none. */
  readonly oldestPendingMs: number | undefined;
}

/** Signs and stores a statement, unless a later head was published, and notifies waiting polls. */
async function writeStatement(
  tx: Transaction,
  { siteId, revision, head, nowMs, oldestPendingMs }: Statement,
  signers: readonly SigningKey[],
): Promise<void> {
  const asOfSeconds = Math.floor(Math.min(nowMs, oldestPendingMs ?? nowMs) / 1000);
  if (!(await noteStatement(tx, siteId, { revision, asOfSeconds }))) return;
  const content = { auth_site: siteId, revision, head, as_of: formatTime(asOfSeconds) };
  const document = signFreshness(content, signers).toString('utf8');
  await tx.distribution.putFreshness({ siteId, revision, head, asOfSeconds, document });
  tx.notify({ topic: 'site_published', reference: siteId });
}

/** Calls {@link writeStatement} under the lock of a site that is being published. */
export async function writePublishedStatement(
  tx: Transaction,
  { id: siteId, revision, head }: RowOf<'site'>,
  signingKeys: SiteSigningKeys,
  nowMs: number,
): Promise<void> {
  if (head === null) return;
  const signers = await signingKeys.signers(tx, siteId, 'freshness', nowMs);
  const oldestPendingMs = await tx.changes.oldestPendingMs(siteId);
  await writeStatement(tx, { siteId, revision, head, nowMs, oldestPendingMs }, signers);
}
