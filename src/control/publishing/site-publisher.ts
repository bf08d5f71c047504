/**
 * Publishes one site, on the leading instance: takes pending changes, appends to the chain, and notifies. Deltas go out
 * as changes arrive, also while a whole bundle is being built. If that bundle changes more than clients and keys, only
 * revocations go out meanwhile, so that no number of keys delays a revocation.
 *
 * Every decision uses what the database holds under the site's lock. Two instances that both consider themselves
 * leaders therefore take turns, and neither forks the chain.
 * Source: docs/operate/control.md "From key to traffic".
 */
import { BundleError } from '../../bundle/format/bundle-error.ts';
import type { RowOf } from '../store/repositories/records.ts';
import type { Transaction } from '../store/transaction.ts';
import { type ChainLedger, currentLedger, isWorthWhole, withDelta } from './chain-ledger.ts';
import { type DeltaDraft, MAX_CHANGES, publishDelta, readDelta } from './delta-publication.ts';
import { writePublishedStatement } from './freshness-renewal.ts';
import { type FinishedWhole, requireSite, WholeAttempt, type WholeAttemptOptions } from './whole-attempt.ts';

export interface SitePublisherOptions extends WholeAttemptOptions {
  readonly onPublished?: ((publication: Publication) => void) | undefined;
}

export interface Publication {
  readonly siteId: string;
  readonly revision: number;
  readonly kind: 'bundle' | 'delta' | 'link';
  /** Size of the delta, or of all files of the whole bundle. */
  readonly bytes: number;
}

/** What remains to do after a round. */
export type RoundOutcome = 'done' | 'more' | 'whole_needed';

export class SitePublisher {
  readonly #siteId: string;
  readonly #options: SitePublisherOptions;
  #ledger: ChainLedger | undefined;
  /** The whole bundle that is being built. */
  #attempt: WholeAttempt | undefined;
  #turn: Promise<unknown> = Promise.resolve();

  constructor(siteId: string, options: SitePublisherOptions) {
    this.#siteId = siteId;
    this.#options = options;
  }

  /** Publishes what fits into deltas. @throws whatever the store throws; BundleError */
  async publishChanges(): Promise<RoundOutcome> {
    try {
      return await this.#inTurn(() => this.#publishDelta());
    } catch (error) {
      if (!(error instanceof BundleError && error.code === 'file_too_large')) throw error;
      await this.#askForWhole();
      return 'whole_needed';
    }
  }

  /** Serializes publications, so that the ledger matches the chain when the next one starts. */
  async #inTurn<T>(publish: () => Promise<T>): Promise<T> {
    const turn = this.#turn.then(publish);
    this.#turn = turn.catch(() => undefined);
    return turn;
  }

  /** Requests a whole bundle, because a client holds too much for a delta. */
  async #askForWhole(): Promise<void> {
    const { store, nowMs } = this.#options;
    await store.writeUnaudited({ kind: 'site', siteId: this.#siteId }, (tx) =>
      tx.changes.record(this.#siteId, { kind: 'policy' }, nowMs()),
    );
  }

  async #publishDelta(): Promise<RoundOutcome> {
    const { store, signingKeys, nowMs } = this.#options;
    const round = await store.writeUnaudited({ kind: 'site', siteId: this.#siteId }, async (tx) => {
      const site = await requireSite(tx, this.#siteId);
      const ledger = await currentLedger(tx, site, this.#ledger);
      const now = nowMs();
      const { draft, changes, needsWhole } = await nextDelta(tx, site, ledger, now);
      const signers = await signingKeys.signers(tx, site.id, 'bundle', now);
      const isEmpty = draft.clients.length + draft.keys.length === 0;
      const published = isEmpty ? undefined : await publishDelta(tx, site, draft, { signers, nowMs: now });
      await tx.publication.settle(changes);
      if (published !== undefined) await writePublishedStatement(tx, published.site, signingKeys, now);
      return { ledger, published, draft, nowMs: now, isFull: changes.length === MAX_CHANGES, needsWhole };
    });
    this.#ledger = round.ledger;
    if (round.published !== undefined) this.#notePublished(round.published, round.draft, round.nowMs);
    return round.isFull ? 'more' : round.needsWhole ? 'whole_needed' : 'done';
  }

  #notePublished(
    { site, bytes }: { readonly site: RowOf<'site'>; readonly bytes: number },
    { clients, keys }: DeltaDraft,
    publishedAtMs: number,
  ): void {
    const keyIds = keys.map(({ keyId }) => keyId);
    const delta = { revision: site.revision, bytes, publishedAtMs };
    if (this.#ledger !== undefined) this.#ledger = withDelta(this.#ledger, delta, keyIds);
    const clientIds = clients.map(({ client_id }) => client_id);
    this.#attempt?.notePublished(keyIds, clientIds);
    this.#options.onPublished?.({ siteId: site.id, revision: site.revision, kind: 'delta', bytes });
  }

  /**
   * Builds and publishes a whole bundle. {@link SitePublisher.publishChanges} may run meanwhile.
   * @returns false when another instance published meanwhile: start over
   */
  async publishWhole(): Promise<boolean> {
    const attempt = new WholeAttempt(this.#siteId, this.#options);
    this.#attempt = attempt;
    try {
      const ledger = await attempt.prepare(this.#ledger);
      this.#ledger ??= ledger;
      return await this.#inTurn(async () => this.#noteFinished(await attempt.finish(this.#ledger?.revision)));
    } finally {
      this.#attempt = undefined;
    }
  }

  #noteFinished(finished: FinishedWhole | undefined): boolean {
    this.#ledger = finished && ledgerAfter(finished);
    if (finished === undefined) return false;
    const { site, kind, bytes } = finished;
    this.#options.onPublished?.({ siteId: site.id, revision: site.revision, kind, bytes });
    return true;
  }
}

function ledgerAfter({ site, bytes, publishedAtMs }: FinishedWhole): ChainLedger {
  return {
    revision: site.revision,
    baseRevision: site.revision,
    baseBytes: bytes,
    basePublishedAtMs: publishedAtMs,
    publishedAtMs,
    deltas: 0,
    deltaBytes: 0,
    touched: new Set(),
  };
}

interface NextDelta {
  readonly draft: DeltaDraft;
  /** The pending changes that the delta settles. */
  readonly changes: readonly RowOf<'siteChange'>[];
  readonly needsWhole: boolean;
}

const NOTHING: DeltaDraft = { clients: [], keys: [] };

/** Content of the next delta. While other content waits for a whole bundle: revocations only. */
async function nextDelta(
  tx: Transaction,
  site: RowOf<'site'>,
  ledger: ChainLedger,
  nowMs: number,
): Promise<NextDelta> {
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
