/**
 * Publishes all sites, on the leading instance. It reacts to notices, coalesces changes into revisions, and checks
 * periodically for changes whose notice was lost.
 * Source: docs/operate/control.md "From key to traffic".
 */
import { setTimeout as delay } from 'node:timers/promises';
import type { ControlStore } from '../store/port.ts';
import type { Transaction } from '../store/transaction.ts';
import { settleBlocked } from './blocked-publication.ts';
import type { SiteSigningKeys } from './bundle-signing-keys.ts';
import { FreshnessIssuer } from './freshness-renewal.ts';
import { type Publication, SitePublisher, type SitePublisherOptions } from './site-publisher.ts';
import { settleSources } from './source-settlement.ts';
import { settleWithheld } from './withheld-members.ts';

interface PublisherOptions {
  readonly store: ControlStore;
  readonly signingKeys: SiteSigningKeys;
  readonly nowMs: () => number;
  /** Must not throw. */
  readonly onPublished?: (publication: Publication) => void;
  /** Reports failures that are retried. Must not throw. */
  readonly onFault?: (activity: PublishingActivity, siteId: string | undefined, error: unknown) => void;
}

type PublishingActivity = 'delta' | 'whole_bundle' | 'freshness' | 'sweep' | 'prune';

/** Changes within this time share a revision. */
const COALESCE_MS = 250;
const RETRY_MS = 1000;
/** Interval of checks for changes whose notice was lost. */
const SWEEP_MS = 2000;
/** Work due without a change: an aging bundle, a retiring key. */
const DUE_EVERY_SWEEPS = 5;

/**
 * Returns at once. Publishes while this instance leads.
 * @returns a function that stops; it resolves when no publication is running
 */
export function startPublisher(options: PublisherOptions): () => Promise<void> {
  return options.store.lead('publisher', (signal) => new PublishingTerm(options, signal).run());
}

/** One term of leadership. It starts without cached state. */
class PublishingTerm {
  readonly #options: PublisherOptions;
  readonly #signal: AbortSignal;
  readonly #sites = new Map<string, SiteQueue>();
  readonly #freshness: FreshnessIssuer;

  constructor(options: PublisherOptions, signal: AbortSignal) {
    this.#options = options;
    this.#signal = signal;
    this.#freshness = new FreshnessIssuer(options);
  }

  async run(): Promise<void> {
    const { store } = this.#options;
    const unsubscribe = store.subscribe(({ topic, reference }) => {
      if (topic === 'site_changed') this.#queue(reference).requestRound();
    });
    try {
      await Promise.all([this.#sweepAll(), this.#freshness.run(this.#signal)]);
    } finally {
      unsubscribe();
      await Promise.all([...this.#sites.values()].map((queue) => queue.close()));
    }
  }

  #queue(siteId: string): SiteQueue {
    const known = this.#sites.get(siteId);
    if (known !== undefined) return known;
    const queue = new SiteQueue(siteId, {
      ...this.#options,
      signal: this.#signal,
      onPublished: (publication) => {
        // A route may now need statements more often.
        if (publication.kind !== 'delta') this.#freshness.forget(siteId);
        this.#options.onPublished?.(publication);
      },
    });
    this.#sites.set(siteId, queue);
    return queue;
  }

  async #sweepAll(): Promise<void> {
    for (let round = 0; !this.#signal.aborted; round++) {
      try {
        await this.#sweep(round % DUE_EVERY_SWEEPS === 0);
      } catch (error) {
        this.#options.onFault?.('sweep', undefined, error);
      }
      await delay(SWEEP_MS, undefined, { signal: this.#signal }).catch(() => undefined);
    }
  }

  async #sweep(alsoDue: boolean): Promise<void> {
    const { store, nowMs, signingKeys } = this.#options;
    const found = await store.read(async (tx) => ({
      changed: await tx.changes.sitesWithChanges(),
      due: alsoDue ? await tx.publication.sitesDue(nowMs()) : [],
      retiring: alsoDue ? await tx.publication.sitesWithRetiredSigners(nowMs()) : [],
      publishing: await tx.sources.everywhereInStates(['publishing']),
      withholding: await tx.blockedCallers.withholdingSites(),
      withheld: await tx.publication.sitesWithheldMembers(),
    }));
    for (const siteId of new Set([...found.changed, ...found.due])) this.#queue(siteId).requestRound();
    for (const siteId of found.retiring) {
      await store.writeUnaudited({ kind: 'site', siteId }, (tx) =>
        signingKeys.retireDue(tx, siteId, nowMs()),
      );
    }
    // Acknowledged already, but the instance that received it stopped before it settled them.
    for (const siteId of new Set(found.publishing.map((row) => row.siteId))) {
      await settleSources(store, siteId, nowMs());
    }
    for (const siteId of found.withholding) await settleBlocked(store, siteId, nowMs());
    for (const siteId of found.withheld) await settleWithheld(store, siteId, nowMs());
  }
}

/** Runs the rounds of one site one after the other. */
class SiteQueue {
  readonly #siteId: string;
  readonly #options: PublisherOptions & SitePublisherOptions;
  readonly #publisher: SitePublisher;
  #timer: NodeJS.Timeout | undefined;
  #earliestMs = 0;
  #isRequested = false;
  #round: Promise<void> | undefined;
  #whole: Promise<void> | undefined;
  #isClosed = false;

  constructor(siteId: string, options: PublisherOptions & SitePublisherOptions) {
    this.#siteId = siteId;
    this.#options = options;
    this.#publisher = new SitePublisher(siteId, options);
  }

  /** Publishes the first change at once; changes that follow soon share the next revision. */
  requestRound(): void {
    this.#isRequested = true;
    if (this.#isClosed || this.#timer !== undefined || this.#round !== undefined) return;
    const waitMs = Math.max(0, this.#earliestMs - performance.now());
    this.#timer = setTimeout(() => {
      this.#timer = undefined;
      this.#round = this.#publish().finally(() => {
        this.#round = undefined;
        if (this.#isRequested) this.requestRound();
      });
    }, waitMs);
  }

  async #publish(): Promise<void> {
    const { store, nowMs } = this.#options;
    this.#isRequested = false;
    this.#earliestMs = performance.now() + COALESCE_MS;
    try {
      let outcome = await this.#publisher.publishChanges();
      while (outcome === 'more' && !this.#isClosed) outcome = await this.#publisher.publishChanges();
      if (outcome === 'whole_needed') this.#beginWhole();
      // The change may be one of the awaited targets.
      if (outcome === 'done') {
        await settleSources(store, this.#siteId, nowMs());
        await settleBlocked(store, this.#siteId, nowMs());
        await settleWithheld(store, this.#siteId, nowMs());
      }
    } catch (error) {
      this.#recordFailure('delta', error);
    }
  }

  #recordFailure(activity: PublishingActivity, error: unknown): void {
    if (this.#options.signal?.aborted) return;
    this.#options.onFault?.(activity, this.#siteId, error);
    this.#earliestMs = performance.now() + RETRY_MS;
    this.#isRequested = true;
  }

  /** Runs concurrently with the rounds, so that deltas continue. */
  #beginWhole(): void {
    if (this.#isClosed) return;
    this.#whole ??= this.#publishWhole().finally(() => {
      this.#whole = undefined;
      if (this.#isRequested) this.requestRound();
    });
  }

  async #publishWhole(): Promise<void> {
    const { store, nowMs } = this.#options;
    try {
      const isDone = await this.#publisher.publishWhole();
      // Changes that arrived meanwhile are not in the bundle.
      this.#isRequested = true;
      if (!isDone) return;
    } catch (error) {
      this.#recordFailure('whole_bundle', error);
      return;
    }
    await store
      .writeUnaudited({ kind: 'site', siteId: this.#siteId }, (tx) =>
        pruneDocuments(tx, this.#siteId, nowMs()),
      )
      .catch((error: unknown) => this.#options.onFault?.('prune', this.#siteId, error));
  }

  async close(): Promise<void> {
    this.#isClosed = true;
    clearTimeout(this.#timer);
    await this.#round;
    await this.#whole;
  }
}

/** Longer than a target needs to fetch a bundle's files. */
const FETCHING_MS = 5 * 60_000;
const KEPT_BASES = 2;

/**
 * Keeps the two newest whole bundles and any that a target may still be fetching. Also keeps the steps after the oldest of
 * these, for targets that are slightly behind. Others load the whole bundle.
 */
export async function pruneDocuments(tx: Transaction, siteId: string, nowMs: number): Promise<void> {
  const bases = await tx.publication.bases(siteId);
  const kept = bases.filter(
    // Absolute distance: a bundle with a future timestamp must not be kept until then.
    ({ publishedAtMs }, index) => index < KEPT_BASES || Math.abs(nowMs - (publishedAtMs ?? 0)) < FETCHING_MS,
  );
  const oldest = kept.at(-1);
  if (oldest === undefined || kept.length === bases.length) return;
  await tx.distribution.pruneSteps(siteId, oldest.revision);
  await tx.distribution.pruneFiles(siteId, oldest.revision);
}
