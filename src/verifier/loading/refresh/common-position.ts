/**
 * The position that a verifier acknowledges to Control: the oldest among this process and its running workers.
 * Source: docs/design/bundle.md "Distribution".
 */
import type { ChainPosition } from '../../../bundle/format/chain.ts';

export interface CommonPositionOptions {
  /** Called with each newer position. */
  readonly onRaised: (position: ChainPosition) => void;
  /** Called once when it did not rise for a while although this process is further; see {@link CommonPosition.late}. */
  readonly onLate: (late: LateWorkers) => void;
  /** Milliseconds; default 10,000, because a large bundle takes seconds to load. */
  readonly lateAfterMs?: number | undefined;
}

/** Workers that do not hold what this process holds. */
export interface LateWorkers {
  readonly revision: number;
  readonly workers: readonly number[];
}

/** What the pool of workers reports. */
export type WorkerPositions = Pick<CommonPosition, 'started' | 'loaded' | 'ended'>;

const LATE_AFTER_MS = 10_000;

export class CommonPosition {
  readonly #options: CommonPositionOptions;
  /** By number of the worker that runs, the oldest that it may decide by; undefined: nothing is known to be loaded yet. */
  readonly #workers = new Map<number, ChainPosition | undefined>();
  #own: ChainPosition | undefined;
  /** The mark at the start: workers load nothing older. */
  #floor: ChainPosition | undefined;
  #common: ChainPosition | undefined;
  #timer: NodeJS.Timeout | undefined;
  #isLate = false;

  constructor(options: CommonPositionOptions) {
    this.#options = options;
  }

  /** Nothing is loaded yet. @param mark that is on disk; call it before workers start */
  begin(mark: ChainPosition): void {
    this.#floor ??= mark;
  }

  /** This process holds the position, and its high-water mark is at least there. */
  own(position: ChainPosition): void {
    if (this.#own === undefined) this.#assumeFirst(position);
    this.#own = position;
    this.#update();
  }

  /** Workers found no mark when they started, and load nothing before this process has made the first one: see `PrimaryMark`. */
  #assumeFirst(position: ChainPosition): void {
    for (const [worker, held] of this.#workers) if (held === undefined) this.#workers.set(worker, position);
  }

  /** A worker starts. The mark lets it load nothing older than what this process holds. */
  started(worker: number): void {
    this.#workers.set(worker, this.#own ?? this.#floor);
  }

  /** The older of the position and of what a worker that runs may decide by. */
  orOlder(position: ChainPosition): ChainPosition {
    let oldest = position;
    for (const held of this.#workers.values())
      if (held !== undefined && held.revision < oldest.revision) oldest = held;
    return oldest;
  }

  /** A worker that runs decides by this position from now on. */
  loaded(worker: number, position: ChainPosition): void {
    if (!this.#workers.has(worker)) return;
    this.#workers.set(worker, position);
    this.#update();
  }

  ended(worker: number): void {
    if (this.#workers.delete(worker)) this.#update();
  }

  /** Workers that keep the common position from rising; undefined while it rises. */
  late(): LateWorkers | undefined {
    return this.#isLate ? this.#behind() : undefined;
  }

  close(): void {
    clearTimeout(this.#timer);
  }

  #update(): void {
    const own = this.#own;
    if (own === undefined) return;
    const behind = this.#behind();
    const common = this.#least(own);
    if (common !== undefined && common.revision > (this.#common?.revision ?? 0)) {
      this.#common = common;
      this.#stopWaiting();
      this.#options.onRaised(common);
    }
    if (behind === undefined) this.#stopWaiting();
    else this.#timer ??= setTimeout(() => this.#report(), this.#options.lateAfterMs ?? LATE_AFTER_MS).unref();
  }

  #stopWaiting(): void {
    clearTimeout(this.#timer);
    this.#timer = undefined;
    this.#isLate = false;
  }

  #report(): void {
    this.#isLate = true;
    const behind = this.#behind();
    if (behind !== undefined) this.#options.onLate(behind);
  }

  /** Undefined while one is unknown, or of another content. */
  #least(own: ChainPosition): ChainPosition | undefined {
    let least = own;
    for (const position of this.#workers.values()) {
      const isOther = position?.revision === own.revision && position.head !== own.head;
      if (position === undefined || isOther) return undefined;
      if (position.revision < least.revision) least = position;
    }
    return least;
  }

  #behind(): LateWorkers | undefined {
    const own = this.#own;
    if (own === undefined) return undefined;
    const workers = [...this.#workers]
      .filter(([, position]) => !holds(position, own))
      .map(([worker]) => worker);
    return workers.length === 0 ? undefined : { revision: own.revision, workers };
  }
}

function holds(position: ChainPosition | undefined, { head, revision }: ChainPosition): boolean {
  if (position === undefined || position.revision < revision) return false;
  return position.revision > revision || position.head === head;
}
