/**
 * Reports audit events that any instance recorded since the last round. One reader serves all listeners of this process
 * and reads only while there are listeners.
 */
import type { ScopePath } from '../domain/roles.ts';
import type { ControlStore } from '../store/port.ts';

/** Events for one place and one kind of resource. */
export interface RecordedChange {
  /** Who may read it, as in `mayDo`. */
  readonly place: ScopePath;
  readonly siteId: string | undefined;
  readonly resourceKind: string;
}

type Listener = (changes: readonly RecordedChange[]) => void;

interface ChangeFeedOptions {
  readonly store: Pick<ControlStore, 'read'>;
  readonly nowMs: () => number;
  /** Receives the error of a failed round; the next one tries again. */
  readonly report: (error: unknown) => void;
  readonly roundMs?: number;
}

const ROUND_MS = 1000;
/**
 * PostgreSQL numbers rows before their commit, so that a later number can become visible first. A round reads from the
 * last number without a gap before it, and gives up on a gap after this time: its transaction was rolled back.
 */
const MAX_GAP_MS = 10_000;
/** How far before the newest event the feed starts: events that are not committed yet have numbers in this range. */
const START_BEFORE = 1000;

export class ChangeFeed {
  readonly #options: ChangeFeedOptions;
  readonly #listeners = new Set<Listener>();
  /** The first read of the current position. Undefined without listeners. */
  #started: Promise<void> | undefined;
  #timer: NodeJS.Timeout | undefined;
  /** Every event up to this one is known. */
  #settledSeq = 0;
  /** Known events after {@link #settledSeq}, by place and kind. */
  #known: ReadonlyMap<string, Counted> = new Map();
  #gap: Gap | undefined;

  constructor(options: ChangeFeedOptions) {
    this.#options = options;
  }

  /**
   * Resolves when every event that is committed from now on will be reported.
   * @returns a function that unsubscribes
   * @throws StoreUnavailableError
   */
  async subscribe(listener: Listener): Promise<() => void> {
    this.#listeners.add(listener);
    const unsubscribe = () => {
      this.#listeners.delete(listener);
      if (this.#listeners.size === 0) this.#stop();
    };
    this.#started ??= this.#start();
    try {
      await this.#started;
    } catch (error) {
      unsubscribe();
      throw error;
    }
    return unsubscribe;
  }

  async #start(): Promise<void> {
    const { settledSeq, counts } = await this.#options.store.read(async (tx) => {
      const start = Math.max(0, (await tx.audit.newestSeq()) - START_BEFORE);
      return { settledSeq: start, counts: await tx.audit.countsAfter(start) };
    });
    this.#settleAt(settledSeq, counts);
    this.#schedule();
  }

  #stop(): void {
    clearTimeout(this.#timer);
    this.#started = undefined;
  }

  #schedule(): void {
    clearTimeout(this.#timer);
    if (this.#listeners.size === 0) return;
    const { roundMs = ROUND_MS, report } = this.#options;
    const started = this.#started;
    this.#timer = setTimeout(() => {
      void this.#readChanges()
        .catch(report)
        .finally(() => {
          if (this.#started === started) this.#schedule();
        });
    }, roundMs).unref();
  }

  async #readChanges(): Promise<void> {
    const started = this.#started;
    const givenUp = this.#givenUpGap();
    const { counts, afterGap } = await this.#options.store.read(async (tx) => ({
      counts: await tx.audit.countsAfter(this.#settledSeq),
      afterGap: givenUp && (await tx.audit.countsAfter(givenUp.newestSeq)),
    }));
    if (counts.length === 0 || this.#started !== started) return;
    const changed = counts.filter((one) => hasMore(one, this.#known.get(keyOf(one)))).map(changeOf);
    const newestSeq = Math.max(...counts.map((one) => one.newestSeq));
    const events = counts.reduce((sum, one) => sum + one.events, 0);
    if (events >= newestSeq - this.#settledSeq) this.#settleAt(newestSeq, []);
    else if (givenUp !== undefined) this.#settleAt(givenUp.newestSeq, afterGap ?? []);
    else {
      this.#known = new Map(counts.map((one) => [keyOf(one), one]));
      this.#gap ??= { sinceMs: this.#options.nowMs(), newestSeq };
    }
    if (changed.length === 0) return;
    for (const listener of this.#listeners) listener(changed);
  }

  /** Covers only events up to the gap's newest one, because later events may have newer gaps. */
  #givenUpGap(): Gap | undefined {
    const gap = this.#gap;
    return gap !== undefined && this.#options.nowMs() - gap.sinceMs >= MAX_GAP_MS ? gap : undefined;
  }

  #settleAt(seq: number, known: readonly Counted[]): void {
    this.#settledSeq = seq;
    this.#known = new Map(known.map((one) => [keyOf(one), one]));
    this.#gap = undefined;
  }
}

/** Old events may have been removed meanwhile. */
function hasMore({ events, newestSeq }: Counted, known: Counted | undefined): boolean {
  return known === undefined || events > known.events || newestSeq > known.newestSeq;
}

/** Event numbers without a visible event. */
interface Gap {
  /** When the gap was first seen. */
  readonly sinceMs: number;
  /** The newest event at that time. */
  readonly newestSeq: number;
}

interface Counted {
  readonly environmentId: string | null;
  readonly fleetId: string | null;
  readonly siteId: string | null;
  readonly siteUid: string | null;
  readonly resourceKind: string;
  readonly events: number;
  readonly newestSeq: number;
}

function keyOf({ environmentId, fleetId, siteId, siteUid, resourceKind }: Counted): string {
  return JSON.stringify([environmentId, fleetId, siteId, siteUid, resourceKind]);
}

/** As in lists of audit events, the events of a deleted site are visible to readers of the place that contained it. */
function changeOf({ environmentId, fleetId, siteId, siteUid, resourceKind }: Counted): RecordedChange {
  return {
    place: {
      ...(environmentId === null ? {} : { environmentId }),
      ...(fleetId === null ? {} : { fleetId }),
      ...(siteId === null || siteUid === null ? {} : { siteId }),
    },
    siteId: siteId ?? undefined,
    resourceKind,
  };
}
