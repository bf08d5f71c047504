/**
 * Publishes one site, on the instance that leads: takes what changed, carries the chain on, says so. Deltas go out as
 * changes come. A whole bundle is put together beside that; meanwhile deltas go on, and where the whole bundle changes
 * more than clients and keys, revocations at least do, so that no amount of keys holds one up.
 *
 * Everything is decided from what the database says inside the site's lock: two instances that both believe to lead take
 * turns, and neither forks the chain.
 * Source: docs/control.md "From key to traffic".
 */
import { BundleError } from '../../bundle/errors.ts';
import type { ControlStore } from '../store/port.ts';
import type { RowOf } from '../store/repositories/records.ts';
import type { Transaction } from '../store/transaction.ts';
import { type ChainLedger, isWorthWhole, readLedger, withDelta } from './chain-ledger.ts';
import {
  type DeltaDraft,
  MAX_CHANGES,
  notePublishedKeys,
  publishDelta,
  readDelta,
  referencesOf,
} from './delta-publication.ts';
import { type RunReads, ShardSet } from './shard-set.ts';
import type { SiteSigningKeys } from './signing-keys.ts';
import { writeStatement } from './statement.ts';
import { keepContent, publishWhole } from './whole-publication.ts';

export interface SitePublisherOptions {
  readonly store: ControlStore;
  readonly signingKeys: SiteSigningKeys;
  readonly nowMs: () => number;
  readonly onPublished?: ((publication: Publication) => void) | undefined;
}

export interface Publication {
  readonly siteId: string;
  readonly revision: number;
  readonly kind: 'bundle' | 'delta' | 'link';
  /** Of the delta, or of all files of the whole bundle. */
  readonly bytes: number;
}

/** What is left to do after a round. */
export type RoundOutcome = 'done' | 'more' | 'whole_needed';

/** Keys that changed while a whole bundle was put together, above which they are read before the lock is taken. */
const MAX_LATE_KEYS = 200;
const MAX_CATCH_UPS = 10;
const PAGES_OF_CHANGES = 10;

export class SitePublisher {
  readonly #siteId: string;
  readonly #options: SitePublisherOptions;
  #ledger: ChainLedger | undefined;
  /** Keys that were published since the whole bundle that is being put together was begun. */
  #late: Set<string> | undefined;
  #turn: Promise<unknown> = Promise.resolve();

  constructor(siteId: string, options: SitePublisherOptions) {
    this.#siteId = siteId;
    this.#options = options;
  }

  /** Publishes what deltas can carry. @throws whatever the store throws; BundleError */
  async publishChanges(): Promise<RoundOutcome> {
    try {
      return await this.#inTurn(() => this.#publishDelta());
    } catch (error) {
      if (!(error instanceof BundleError && error.code === 'file_too_large')) throw error;
      await this.#askForWhole();
      return 'whole_needed';
    }
  }

  /** One at a time: what is counted along must be where the chain is when the next one looks. */
  async #inTurn<T>(publish: () => Promise<T>): Promise<T> {
    const turn = this.#turn.then(publish);
    this.#turn = turn.catch(() => undefined);
    return turn;
  }

  /** Clients that hold so much that no delta takes them. */
  async #askForWhole(): Promise<void> {
    const { store, nowMs } = this.#options;
    await store.housekeep({ kind: 'site', siteId: this.#siteId }, (tx) =>
      tx.changes.record(this.#siteId, { kind: 'policy' }, nowMs()),
    );
  }

  async #publishDelta(): Promise<RoundOutcome> {
    const { store, signingKeys, nowMs } = this.#options;
    const round = await store.housekeep({ kind: 'site', siteId: this.#siteId }, async (tx) => {
      const site = await this.#site(tx);
      const ledger = await this.#ledgerOf(tx, site);
      const now = nowMs();
      const { draft, changes, needsWhole } = await this.#nextDelta(tx, site, ledger, now);
      const signers = await signingKeys.signers(tx, site.id, 'bundle', now);
      const published =
        draft.clients.length + draft.keys.length === 0
          ? undefined
          : await publishDelta(tx, site, draft, { signers, nowMs: now });
      await tx.publication.settle(changes);
      if (published !== undefined) await this.#state(tx, published.site, now);
      const isFull = changes.length === MAX_CHANGES;
      return {
        ledger,
        published,
        draft,
        outcome: isFull ? 'more' : needsWhole ? 'whole_needed' : 'done',
      } as const;
    });
    this.#ledger = round.ledger;
    if (round.published !== undefined) this.#wasPublished(round.published, round.draft);
    return round.outcome;
  }

  /** What the next delta holds. While content waits for a whole bundle: revocations alone. */
  async #nextDelta(tx: Transaction, site: RowOf<'site'>, ledger: ChainLedger, nowMs: number) {
    if (site.head === null) return { draft: NOTHING, changes: [], needsWhole: true };
    if (!(await tx.publication.hasPolicyChange(site.id))) {
      const changes = await tx.changes.pending(site.id, MAX_CHANGES);
      const draft = await readDelta(tx, site, changes, nowMs);
      const needsWhole = site.wholeNeeded === 1 || isWorthWhole(ledger, site.bundleLifetimeSeconds, nowMs);
      if (draft !== undefined) return { draft, changes, needsWhole };
    }
    const changes = await tx.publication.revocations(site.id, MAX_CHANGES);
    const draft = (await readDelta(tx, site, changes, nowMs)) ?? NOTHING;
    return { draft, changes, needsWhole: true };
  }

  #wasPublished(
    { site, bytes }: { readonly site: RowOf<'site'>; readonly bytes: number },
    { keys }: DeltaDraft,
  ): void {
    const keyIds = keys.map(({ keyId }) => keyId);
    if (this.#ledger !== undefined) {
      this.#ledger = withDelta(this.#ledger, site.revision, bytes, keyIds);
    }
    for (const keyId of keyIds) this.#late?.add(keyId);
    this.#options.onPublished?.({ siteId: site.id, revision: site.revision, kind: 'delta', bytes });
  }

  /**
   * Puts a whole bundle together and publishes it. {@link SitePublisher.publishChanges} may run meanwhile.
   * @returns false when another instance published meanwhile: to be begun again
   */
  async publishWhole(): Promise<boolean> {
    const late = new Set<string>();
    this.#late = late;
    try {
      const begun = await this.#readShards();
      await this.#catchUp(begun.shards, late);
      const { store } = this.#options;
      await begun.shards.prepare((file) =>
        store.housekeep(undefined, (tx) => keepContent(tx, this.#siteId, file)),
      );
      await this.#catchUp(begun.shards, late);
      return await this.#inTurn(() => this.#finishWhole(begun, late));
    } finally {
      this.#late = undefined;
    }
  }

  async #readShards() {
    const { store, nowMs } = this.#options;
    const run: RunReads = (work) => store.read(work);
    const nowSeconds = Math.floor(nowMs() / 1000);
    const { former, ledger } = await store.read(async (tx) => {
      const site = await this.#site(tx);
      const files = await tx.distribution.files(this.#siteId, site.baseRevision);
      return { former: files.flatMap(asFormerShard), ledger: await this.#ledgerOf(tx, site) };
    });
    const touched = ledger.touched ?? (await this.#keysPublishedSince(ledger.baseRevision, former.length));
    const plan = { siteId: this.#siteId, nowSeconds, former, touched };
    return { shards: await ShardSet.read(run, plan), baseRevision: ledger.baseRevision };
  }

  /** Where somebody else published since. Nothing to be found when there are no shards that could be kept. */
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

  /** Reads what changed meanwhile until little of it is left for the lock. */
  async #catchUp(shards: ShardSet, late: Set<string>): Promise<void> {
    const { store } = this.#options;
    for (let round = 0; round < MAX_CATCH_UPS; round++) {
      const pending = await store.read((tx) => this.#pending(tx));
      const keyIds = new Set([...late, ...referencesOf(pending, 'key')]);
      if (keyIds.size <= MAX_LATE_KEYS) return;
      late.clear();
      await shards.absorb((work) => store.read(work), keyIds);
    }
  }

  async #pending(tx: Transaction): Promise<readonly RowOf<'siteChange'>[]> {
    return tx.changes.pending(this.#siteId, MAX_CHANGES * PAGES_OF_CHANGES);
  }

  async #finishWhole(
    { shards, baseRevision }: { readonly shards: ShardSet; readonly baseRevision: number },
    late: ReadonlySet<string>,
  ): Promise<boolean> {
    const { store, signingKeys, nowMs, onPublished } = this.#options;
    const published = await store.housekeep({ kind: 'site', siteId: this.#siteId }, async (tx) => {
      const before = await this.#site(tx);
      const isOurs = before.baseRevision === baseRevision && before.revision === this.#ledger?.revision;
      if (before.head !== null && !isOurs) return undefined;
      const now = nowMs();
      const signers = await signingKeys.signers(tx, before.id, 'bundle', now);
      const changes = await this.#pending(tx);
      const removed = await removedClients(tx, before.id, changes);
      const changesContent =
        before.head === null || removed.length > 0 || (await tx.publication.hasPolicyChange(before.id));
      const { site, keys } = changesContent
        ? { site: before, keys: await this.#keysOf(tx, changes, now) }
        : await this.#deltaBefore(tx, before, changes, { signers, nowMs: now });
      const gone: string[] = [];
      for (const clientId of removed) {
        gone.push(...(await tx.publication.keyIdsOfClient(site.id, clientId, Math.floor(now / 1000))));
      }
      await shards.absorb((work) => work(tx), new Set([...late, ...referencesOf(changes, 'key'), ...gone]));
      const whole = await publishWhole(tx, site, { shards, changesContent, signers, nowMs: now });
      if (changesContent) await notePublishedKeys(tx, keys, whole.site.revision);
      await tx.publication.settle(changes);
      await this.#state(tx, whole.site, now);
      return { ...whole, publishedAtMs: now };
    });
    if (published === undefined) {
      this.#ledger = undefined;
      return false;
    }
    const { site, kind, bytes, publishedAtMs } = published;
    this.#ledger = {
      revision: site.revision,
      baseRevision: site.revision,
      baseBytes: bytes,
      basePublishedAtMs: publishedAtMs,
      deltas: 0,
      deltaBytes: 0,
      touched: new Set(),
    };
    onPublished?.({ siteId: site.id, revision: site.revision, kind, bytes });
    return true;
  }

  /** Followers get what waits as a delta, so that the whole bundle changes nothing for them. */
  async #deltaBefore(
    tx: Transaction,
    site: RowOf<'site'>,
    changes: readonly RowOf<'siteChange'>[],
    by: Parameters<typeof publishDelta>[3],
  ): Promise<{ readonly site: RowOf<'site'>; readonly keys: DeltaDraft['keys'] }> {
    let tip = site;
    for (let start = 0; start < changes.length; start += MAX_CHANGES) {
      const part = changes.slice(start, start + MAX_CHANGES);
      const draft = (await readDelta(tx, tip, part, by.nowMs)) ?? NOTHING;
      if (draft.clients.length + draft.keys.length === 0) continue;
      tip = (await publishDelta(tx, tip, draft, by)).site;
    }
    return { site: tip, keys: [] };
  }

  async #keysOf(
    tx: Transaction,
    changes: readonly RowOf<'siteChange'>[],
    nowMs: number,
  ): Promise<DeltaDraft['keys']> {
    return tx.publication.keys(this.#siteId, referencesOf(changes, 'key'), Math.floor(nowMs / 1000));
  }

  /** States that what is published now is the latest, as far as it is. */
  async #state(tx: Transaction, site: RowOf<'site'>, nowMs: number): Promise<void> {
    if (site.head === null) return;
    const signers = await this.#options.signingKeys.signers(tx, site.id, 'freshness', nowMs);
    const oldestPendingMs = await tx.changes.oldestPendingMs(site.id);
    const { id: siteId, revision, head } = site;
    await writeStatement(tx, { siteId, revision, head, nowMs, oldestPendingMs }, signers);
  }

  async #site(tx: Transaction): Promise<RowOf<'site'>> {
    const site = await tx.hierarchy.site(this.#siteId);
    if (site === undefined) throw new Error(`site ${this.#siteId} is gone`);
    return site;
  }

  async #ledgerOf(tx: Transaction, site: RowOf<'site'>): Promise<ChainLedger> {
    return this.#ledger?.revision === site.revision ? this.#ledger : readLedger(tx, site);
  }
}

const NOTHING: DeltaDraft = { clients: [], keys: [] };

async function removedClients(
  tx: Transaction,
  siteId: string,
  changes: readonly RowOf<'siteChange'>[],
): Promise<readonly string[]> {
  const clientIds = referencesOf(changes, 'client');
  const there = new Set((await tx.publication.clients(siteId, clientIds)).map(({ clientId }) => clientId));
  return clientIds.filter((clientId) => !there.has(clientId));
}

function asFormerShard({ firstKey, keys, sha256, bytes }: RowOf<'bundleFile'>) {
  return firstKey === null || keys === null ? [] : [{ firstKey, keys, sha256, bytes }];
}
