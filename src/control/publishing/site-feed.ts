/**
 * In-memory feed of one site for its targets: position of the chain, newest steps, freshness statement and files. One
 * database read per publication serves all waiting targets.
 */
import { LRUCache } from 'lru-cache';
import { MAX_STEPS } from '../../bundle/format/bundle-limits.ts';
import type { ChainPosition } from '../../bundle/format/chain.ts';
import type { DistributedFile, DistributedStep } from '../../bundle/format/distribution-contract.ts';
import { ApiProblem } from '../domain/api-problem.ts';
import type { ControlStore } from '../store/port.ts';
import type { RowOf } from '../store/repositories/records.ts';
import type { Transaction } from '../store/transaction.ts';

type StepRow = RowOf<'bundleStep'>;

/** Snapshot of a site. Immutable. */
export interface SiteState {
  readonly siteId: string;
  readonly siteUid: string;
  readonly revision: number;
  /** Null before the first publication. */
  readonly head: string | null;
  readonly floorRevision: number;
  readonly observations: RowOf<'site'>['observations'];
  readonly acceptedProofs: RowOf<'site'>['acceptedProofs'];
  readonly base: BaseState | undefined;
  readonly freshness: { readonly document: string; readonly asOfSeconds: number } | undefined;
  /** The newest steps, in order and without gaps up to `revision`. */
  readonly window: readonly StepRow[];
}

interface BaseState extends ChainPosition {
  readonly files: readonly DistributedFile[];
}

const MAX_WINDOW_BYTES = 8 * 1024 * 1024;
const MAX_PAGES = 8;

export class SiteFeed {
  readonly #store: ControlStore;
  readonly #siteId: string;
  readonly #waiting = new Set<() => void>();
  /** Older steps than the window's, by the position where they begin. */
  readonly #pages = new LRUCache<string, Promise<readonly StepRow[]>>({ max: MAX_PAGES });
  #state: SiteState | undefined;
  #refreshing: Promise<SiteState> | undefined;
  #isStale = true;

  constructor(store: ControlStore, siteId: string) {
    this.#store = store;
    this.#siteId = siteId;
  }

  get isWaitedFor(): boolean {
    return this.#waiting.size > 0;
  }

  /** @throws ApiProblem `not_found` when the site is gone */
  async state(): Promise<SiteState> {
    return this.#state ?? this.refresh();
  }

  /** Reads what is published. A call during a running read waits for one that begins later. */
  async refresh(): Promise<SiteState> {
    this.#isStale = true;
    this.#refreshing ??= this.#refreshWhileStale().finally(() => {
      this.#refreshing = undefined;
    });
    return this.#refreshing;
  }

  async #refreshWhileStale(): Promise<SiteState> {
    let state = this.#state;
    do {
      this.#isStale = false;
      const before = this.#state;
      state = await this.#store.read((tx) => readState(tx, this.#siteId, before));
      this.#state = state;
      if (before?.siteUid !== state.siteUid) this.#pages.clear();
      if (hasNews(before, state)) for (const wake of [...this.#waiting]) wake();
    } while (this.#isStale);
    return state;
  }

  /** Resolves at the next publication, after the timeout, or when the signal aborts. */
  async awaitChange(timeoutMs: number, signal: AbortSignal): Promise<void> {
    if (signal.aborted) return;
    await new Promise<void>((resolve) => {
      const done = () => {
        clearTimeout(timer);
        signal.removeEventListener('abort', done);
        this.#waiting.delete(done);
        resolve();
      };
      const timer = setTimeout(done, timeoutMs);
      signal.addEventListener('abort', done, { once: true });
      this.#waiting.add(done);
    });
  }

  /**
   * At most {@link MAX_STEPS} steps after a position; they may not reach the end of the chain.
   * @returns undefined when the position is not on this chain, its next step was pruned, or a whole bundle in between
   *   changed more than clients and keys
   */
  async stepsFrom(
    state: SiteState,
    position: ChainPosition,
  ): Promise<readonly DistributedStep[] | undefined> {
    if (position.revision >= state.revision) {
      return position.revision === state.revision && position.head === state.head ? [] : undefined;
    }
    const rows = await this.#rowsAfter(state, position);
    if (rows[0]?.previousHead !== position.head) return undefined;
    const steps = rows.flatMap(({ kind, revision, document }) =>
      kind === 'bundle' ? [] : [{ kind, revision, document }],
    );
    return steps.length === rows.length ? steps : undefined;
  }

  /** Ordered by revision. */
  async #rowsAfter(state: SiteState, position: ChainPosition): Promise<readonly StepRow[]> {
    const at = state.window.findIndex(({ previousHead }) => previousHead === position.head);
    if (at !== -1) return state.window.slice(at, at + MAX_STEPS);
    const oldest = state.window[0]?.revision ?? 0;
    if (position.revision >= oldest) return [];
    const name = `${position.revision} ${state.revision}`;
    const known = this.#pages.get(name);
    if (known !== undefined) return known;
    const page = this.#store.read((tx) =>
      tx.distribution.stepsAfter(this.#siteId, position.revision, MAX_STEPS),
    );
    this.#pages.set(name, page);
    page.catch(() => this.#pages.delete(name));
    return page;
  }
}

function hasNews(before: SiteState | undefined, after: SiteState): boolean {
  return (
    before?.head !== after.head ||
    before.revision !== after.revision ||
    before.freshness?.document !== after.freshness?.document
  );
}

async function readState(tx: Transaction, siteId: string, known: SiteState | undefined): Promise<SiteState> {
  const site = await tx.sites.find(siteId);
  if (site === undefined) throw new ApiProblem('not_found');
  // A new site that reuses the identifier shares nothing with the deleted one.
  const before = known?.siteUid === site.uid ? known : undefined;
  const { acceptedProofs, revision, head, floorRevision, observations } = site;
  const isMoved = before === undefined || before.head !== head || before.revision !== revision;
  return {
    siteId,
    siteUid: site.uid,
    revision,
    head,
    floorRevision,
    observations,
    acceptedProofs,
    base: before?.base?.revision === site.baseRevision ? before.base : await readBase(tx, site),
    freshness: await readFreshness(tx, site),
    window: isMoved ? await readWindow(tx, site, before?.window ?? []) : before.window,
  };
}

async function readBase(
  tx: Transaction,
  { id: siteId, baseRevision }: RowOf<'site'>,
): Promise<BaseState | undefined> {
  const step = await tx.distribution.step(siteId, baseRevision);
  if (step === undefined) return undefined;
  const rows = await tx.distribution.files(siteId, baseRevision);
  const files = rows.map(({ name, bytes, sha256 }) => ({
    name,
    bytes,
    sha256,
    path: pathOf(baseRevision, name),
  }));
  return { revision: step.revision, head: step.head, files };
}

function pathOf(revision: number, name: string): string {
  return `/v1/targets/self/bundles/${revision}/${name}`;
}

/** Ignores a statement about an earlier revision. */
async function readFreshness(tx: Transaction, { id, revision, head }: RowOf<'site'>) {
  const row = await tx.distribution.freshness(id);
  if (row === undefined || row.revision !== revision || row.head !== head) return undefined;
  return { document: row.document, asOfSeconds: row.asOfSeconds };
}

/** Appends new steps, or starts over when they do not continue the known ones. */
async function readWindow(
  tx: Transaction,
  { id, revision, baseRevision }: RowOf<'site'>,
  known: readonly StepRow[],
): Promise<readonly StepRow[]> {
  const from = known.at(-1)?.revision ?? Math.max(0, baseRevision - 1);
  const added = [...(await tx.distribution.stepsAfter(id, from, MAX_STEPS))];
  const continues = known.length === 0 || added[0]?.previousHead === known.at(-1)?.head;
  const rows = continues ? [...known, ...added] : added;
  if (rows.at(-1)?.revision !== revision) return newestSteps(tx, id, revision, baseRevision);
  return trimmed(rows);
}

/** After a pause with more steps than one page: the last ones after the whole bundle. */
async function newestSteps(
  tx: Transaction,
  siteId: string,
  revision: number,
  baseRevision: number,
): Promise<readonly StepRow[]> {
  let rows: readonly StepRow[] = [];
  for (let from = baseRevision - 1; from < revision; ) {
    const page = await tx.distribution.stepsAfter(siteId, from, MAX_STEPS);
    const last = page.at(-1);
    if (last === undefined) break;
    rows = trimmed([...rows, ...page]);
    from = last.revision;
  }
  return rows;
}

function trimmed(rows: readonly StepRow[]): readonly StepRow[] {
  let bytes = 0;
  for (let index = rows.length - 1; index >= 0; index--) {
    bytes += rows[index]?.bytes ?? 0;
    if (bytes > MAX_WINDOW_BYTES) return rows.slice(index + 1);
  }
  return rows;
}
