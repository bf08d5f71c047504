/**
 * One attempt to build and publish a site's whole bundle. Slow work runs before the site's lock is taken, while deltas
 * continue. Under the lock only changes since then are read again.
 */
import type { ControlStore } from '../store/port.ts';
import type { RowOf } from '../store/repositories/records.ts';
import type { Transaction } from '../store/transaction.ts';
import type { SiteSigningKeys } from './bundle-signing-keys.ts';
import { type ChainLedger, currentLedger } from './chain-ledger.ts';
import {
  type DeltaContext,
  MAX_CHANGES,
  notePublishedKeys,
  publishDelta,
  readDelta,
  referencesOf,
} from './delta-publication.ts';
import { writePublishedStatement } from './freshness-renewal.ts';
import { PolicyDraft } from './policy-draft.ts';
import { type FormerShard, type RunReads, ShardSet } from './shard-set.ts';
import { keepContent, type PublishedWhole, publishWhole } from './whole-publication.ts';
import { changesWithholding } from './withheld-members.ts';

export interface WholeAttemptOptions {
  readonly store: ControlStore;
  readonly signingKeys: SiteSigningKeys;
  readonly nowMs: () => number;
  /** Aborts slow work before it has changed anything. */
  readonly signal?: AbortSignal | undefined;
}

export interface FinishedWhole extends PublishedWhole {
  readonly publishedAtMs: number;
}

interface Prepared {
  readonly draft: PolicyDraft;
  readonly shards: ShardSet;
  readonly baseRevision: number;
  /** Whether the previous whole bundle was issued while this clock was ahead: it lacks keys that have not ended. */
  readonly wasAhead: boolean;
}

/** Maximum number of changed keys to read under the lock; more are read before. */
const MAX_LATE_KEYS = 200;
/** The same for clients. */
const MAX_LATE_CLIENTS = 200;
const MAX_CATCH_UPS = 10;
const PAGES_OF_CHANGES = 10;

export class WholeAttempt {
  readonly #siteId: string;
  readonly #options: WholeAttemptOptions;
  /** Keys published since the attempt began. */
  readonly #late = new Set<string>();
  /** Clients published since the draft was read. */
  readonly #lateClients = new Set<string>();
  #prepared: Prepared | undefined;

  constructor(siteId: string, options: WholeAttemptOptions) {
    this.#siteId = siteId;
    this.#options = options;
  }

  /** Records that a delta was published meanwhile. */
  notePublished(keyIds: readonly string[], clientIds: readonly string[]): void {
    for (const keyId of keyIds) this.#late.add(keyId);
    for (const clientId of clientIds) this.#lateClients.add(clientId);
  }

  /** Reads every client and route, and every key outside the kept shards. @returns the ledger when the attempt began */
  async prepare(known: ChainLedger | undefined): Promise<ChainLedger> {
    const { store, nowMs, signal } = this.#options;
    const run: RunReads = (work) => {
      signal?.throwIfAborted();
      return store.read(work);
    };
    const nowSeconds = Math.floor(nowMs() / 1000);
    const { former, ledger } = await store.read(async (tx) => {
      const site = await requireSite(tx, this.#siteId);
      const files = await tx.distribution.files(this.#siteId, site.baseRevision);
      return { former: files.flatMap(asFormerShard), ledger: await currentLedger(tx, site, known) };
    });
    const { baseRevision } = ledger;
    const wasAhead = ledger.basePublishedAtMs > nowMs();
    const kept = wasAhead ? [] : former;
    const touched = ledger.touched ?? (await this.#keysPublishedSince(baseRevision, kept.length));
    const shards = await ShardSet.read(run, { siteId: this.#siteId, nowSeconds, former: kept, touched });
    await this.#catchUp(shards);
    await shards.prepare((file) =>
      store.writeUnaudited(undefined, (tx) => keepContent(tx, this.#siteId, file)),
    );
    const draft = await store.readAside(async (tx) =>
      PolicyDraft.read(tx, await requireSite(tx, this.#siteId)),
    );
    await this.#catchUp(shards);
    await this.#catchUpPolicy(draft);
    this.#prepared = { draft, shards, baseRevision, wasAhead };
    return ledger;
  }

  /** The same for clients and routes. */
  async #catchUpPolicy(draft: PolicyDraft): Promise<void> {
    for (let round = 0; round < MAX_CATCH_UPS; round++) {
      this.#options.signal?.throwIfAborted();
      const published = [...this.#lateClients];
      this.#lateClients.clear();
      const found = await this.#options.store.readAside((tx) => draft.update(tx, published));
      if (found.clients <= MAX_LATE_CLIENTS && !found.routes) return;
    }
  }

  /** Keys that another instance published since. Not needed without shards to keep. */
  async #keysPublishedSince(baseRevision: number, shards: number): Promise<ReadonlySet<string>> {
    const found = new Set<string>();
    for (let from = ''; shards > 0; ) {
      const page = await this.#options.store.read((tx) =>
        tx.publication.keyIdsPublishedAfter(this.#siteId, baseRevision, from, MAX_CHANGES),
      );
      for (const keyId of page) found.add(keyId);
      const last = page.at(-1);
      if (last === undefined || page.length < MAX_CHANGES) break;
      from = last;
    }
    return found;
  }

  /** Reads concurrent changes until few remain for the lock. */
  async #catchUp(shards: ShardSet): Promise<void> {
    const { store } = this.#options;
    for (let round = 0; round < MAX_CATCH_UPS; round++) {
      const pending = await store.read((tx) => this.#pending(tx));
      const keyIds = new Set([...this.#late, ...referencesOf(pending, 'key')]);
      if (keyIds.size <= MAX_LATE_KEYS) return;
      this.#late.clear();
      await shards.absorb((work) => store.read(work), keyIds);
    }
  }

  #pending(tx: Transaction): Promise<readonly RowOf<'siteChange'>[]> {
    return tx.changes.pending(this.#siteId, MAX_CHANGES * PAGES_OF_CHANGES);
  }

  /**
   * @param knownRevision the chain's revision as far as this instance has published it
   * @returns undefined when another instance has published meanwhile
   */
  finish(knownRevision: number | undefined): Promise<FinishedWhole | undefined> {
    const lock = { kind: 'site', siteId: this.#siteId } as const;
    return this.#options.store.writeUnaudited(lock, async (tx) => {
      const site = await requireSite(tx, this.#siteId);
      const prepared = this.#prepared;
      if (prepared === undefined || !prepared.draft.isOf(site)) return undefined;
      const isOurs = site.baseRevision === prepared.baseRevision && site.revision === knownRevision;
      return isOurs ? this.#publish(tx, site, prepared) : undefined;
    });
  }

  async #publish(tx: Transaction, site: RowOf<'site'>, prepared: Prepared): Promise<FinishedWhole> {
    const { draft, shards, wasAhead } = prepared;
    const { signingKeys } = this.#options;
    const nowMs = this.#options.nowMs();
    const signers = await signingKeys.signers(tx, site.id, 'bundle', nowMs);
    const changes = await this.#pending(tx);
    const removed = await removedClients(tx, site.id, changes);
    const hasPolicyChange = await tx.publication.hasPolicyChange(site.id);
    const changesContent =
      site.head === null ||
      wasAhead ||
      removed.length > 0 ||
      hasPolicyChange ||
      (await changesWithholding(tx, site));
    const before = changesContent ? site : await deltaBefore(tx, site, changes, { signers, nowMs });
    const nowSeconds = Math.floor(nowMs / 1000);
    const late = new Set([...this.#late, ...referencesOf(changes, 'key')]);
    for (const clientId of removed) {
      for (const keyId of await tx.publication.keyIdsOfClient(site.id, clientId, nowSeconds)) late.add(keyId);
    }
    await shards.absorb((work) => work(tx), late);
    await draft.update(tx, this.#lateClients);
    const whole = await publishWhole(tx, before, { draft, shards, changesContent, signers, nowMs });
    if (changesContent) {
      const keys = await tx.publication.keys(site.id, referencesOf(changes, 'key'), nowSeconds);
      const { revision } = whole.site;
      await notePublishedKeys(tx, keys, { siteId: site.id, revision, before: whole.before });
    }
    await tx.publication.settle(changes);
    await writePublishedStatement(tx, whole.site, signingKeys, nowMs);
    return { ...whole, publishedAtMs: nowMs };
  }
}

/** Publishes pending changes as deltas first, so that the whole bundle changes nothing for followers. */
async function deltaBefore(
  tx: Transaction,
  site: RowOf<'site'>,
  changes: readonly RowOf<'siteChange'>[],
  context: DeltaContext,
): Promise<RowOf<'site'>> {
  let tip = site;
  for (let start = 0; start < changes.length; start += MAX_CHANGES) {
    const part = changes.slice(start, start + MAX_CHANGES);
    const draft = await readDelta(tx, tip, part, context.nowMs);
    if (draft === undefined || draft.clients.length + draft.keys.length === 0) continue;
    tip = (await publishDelta(tx, tip, draft, context)).site;
  }
  return tip;
}

async function removedClients(
  tx: Transaction,
  siteId: string,
  changes: readonly RowOf<'siteChange'>[],
): Promise<readonly string[]> {
  const clientIds = referencesOf(changes, 'client');
  const there = new Set((await tx.publication.clients(siteId, clientIds)).map(({ clientId }) => clientId));
  return clientIds.filter((clientId) => !there.has(clientId));
}

function asFormerShard({ firstKey, keys, sha256, bytes }: RowOf<'bundleFile'>): readonly FormerShard[] {
  return firstKey === null || keys === null ? [] : [{ firstKey, keys, sha256, bytes }];
}

export async function requireSite(tx: Transaction, siteId: string): Promise<RowOf<'site'>> {
  const site = await tx.sites.find(siteId);
  if (site === undefined) throw new Error(`site ${siteId} is gone`);
  return site;
}
