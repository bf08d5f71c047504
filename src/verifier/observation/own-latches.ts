/**
 * The latch of the process that owns the state directory. An observation counts as begun only once its latch is on disk, and what
 * another process closed there stays closed.
 * Source: docs/operate/observe.md "End".
 */
import { BundleError, bundleError } from '../../bundle/format/bundle-error.ts';
import { MAX_OBSERVATION_SECONDS } from '../../bundle/format/bundle-limits.ts';
import { LATCH_FILE, type Latch, type Latches, readLatches, writeLatches } from './latch-file.ts';
import { type AllowedByName, type LatchKeeper, UNMATCHED, type Wishes } from './latch-keeper.ts';

export interface LatchInputs {
  readonly stateDirectory: string;
  readonly authSite: string;
  /** Reports that the latch cannot be read or written, once until it can; nothing new is observed. */
  readonly onLatchFailed: (error: unknown) => void;
}

export class OwnLatches implements LatchKeeper {
  readonly isOwner = true;
  readonly #inputs: LatchInputs;
  readonly #allowed: AllowedByName;
  readonly #latches: Map<string, Latch>;
  /** Whether the file could not be read yet: until then all is closed, and nothing is written. */
  #isUnread: boolean;
  /** Names of observations whose beginning is on disk. */
  readonly #begun = new Set<string>();
  /** As last read or written. */
  #onDisk: Latches;
  #isUnwritten: boolean;
  #isWriting = false;
  #hasFailed: boolean;
  #writing: Promise<void> = Promise.resolve();

  private constructor(inputs: LatchInputs, allowed: AllowedByName, latches: Latches | undefined) {
    this.#inputs = inputs;
    this.#allowed = allowed;
    this.#isUnread = latches === undefined;
    this.#isUnwritten = this.#isUnread;
    this.#hasFailed = this.#isUnread;
    this.#latches = new Map(latches ?? closedOnes(allowed));
    this.#onDisk = new Map(latches);
  }

  /** Never rejects. */
  static async open(inputs: LatchInputs, allowed: AllowedByName, nowSeconds: number): Promise<OwnLatches> {
    const latches = await readLatches(inputs.stateDirectory, inputs.authSite).catch((error: unknown) => {
      inputs.onLatchFailed(error);
      return undefined;
    });
    const opened = new OwnLatches(inputs, allowed, latches);
    opened.#closeWhatIsNotAllowed(nowSeconds);
    return opened;
  }

  follow({ routes, until }: Wishes, nowSeconds: number): void {
    for (const [name, allowedUntil] of this.#allowed) {
      const before = this.#latches.get(name);
      const isToCome = name !== UNMATCHED && !routes.has(name);
      const after = isToCome
        ? waitingLatch(before, allowedUntil)
        : nextLatch(before, allowedUntil, until.get(name), nowSeconds);
      if (!isSame(before, after)) this.#set(name, after);
    }
    this.#write();
  }

  isOpen(name: string, nowSeconds: number): boolean {
    const latch = this.#latches.get(name);
    if (latch?.until === undefined || latch.isClosed || !this.#begun.has(name)) return false;
    if (nowSeconds < latch.until) return true;
    this.#set(name, { ...latch, isClosed: true });
    this.#write();
    return false;
  }

  isClosed(name: string): boolean {
    // Until it can be written, that is the problem to be named.
    return !this.#hasFailed && this.#hasEnded(name);
  }

  #hasEnded(name: string): boolean {
    return this.#latches.get(name)?.isClosed === true;
  }

  tick(nowSeconds: number): void {
    for (const name of this.#allowed.keys()) this.isOpen(name, nowSeconds);
    if (!this.#isWriting) this.#write();
  }

  settled(): Promise<void> {
    return this.#writing;
  }

  async ready(): Promise<void> {
    await this.#writing;
    const isOpenOnDisk = ([name, latch]: readonly [string, Latch]) =>
      !latch.isClosed && latch.allowedUntil === this.#allowed.get(name) && this.#hasEnded(name);
    if ([...this.#onDisk].some(isOpenOnDisk))
      throw bundleError('file_not_written', LATCH_FILE, '', 'an observation that has ended is open there');
  }

  #set(name: string, latch: Latch): void {
    this.#latches.set(name, latch);
    this.#isUnwritten = true;
  }

  /** Without its flag, an observation has ended. */
  #closeWhatIsNotAllowed(nowSeconds: number): void {
    for (const [name, latch] of this.#latches) {
      if (this.#allowed.get(name) === latch.allowedUntil) {
        if (!latch.isClosed) this.#begun.add(name);
      } else if (latch.allowedUntil + MAX_OBSERVATION_SECONDS < nowSeconds) {
        // That flag has ended: given again, it would allow nothing.
        this.#latches.delete(name);
        this.#isUnwritten = true;
      } else if (!latch.isClosed) {
        this.#set(name, { ...latch, isClosed: true });
      }
    }
    this.#write();
  }

  #write(): void {
    if (!this.#isUnwritten) return;
    this.#isWriting = true;
    this.#writing = this.#writing
      .then(() => this.#writeNow())
      .then(() => {
        this.#isWriting = false;
      });
  }

  async #writeNow(): Promise<void> {
    if (!this.#isUnwritten) return;
    const { authSite, onLatchFailed, stateDirectory } = this.#inputs;
    try {
      const found = await this.#read();
      if (this.#isUnread) this.#closeAll(found);
      else this.#closeWhatOthersClosed(found);
      const latches = new Map(this.#latches);
      this.#isUnwritten = false;
      await writeLatches(stateDirectory, authSite, latches);
      this.#onDisk = latches;
      this.#hasFailed = false;
      for (const [name, { isClosed }] of latches) if (!isClosed) this.#begun.add(name);
    } catch (error) {
      this.#closeWhatCannotBegin();
      this.#isUnwritten = true;
      if (!this.#hasFailed) onLatchFailed(error);
      this.#hasFailed = true;
    }
  }

  /** @returns undefined for what is no latch any more. @throws Error when it cannot be read */
  async #read(): Promise<Latches | undefined> {
    const { authSite, stateDirectory } = this.#inputs;
    return readLatches(stateDirectory, authSite).catch((error: unknown) => {
      if (error instanceof BundleError || this.#isUnread) throw error;
      return undefined;
    });
  }

  /** What the file says came too late: this process has enforced meanwhile, but its workers may read it. */
  #closeAll(found: Latches = new Map()): void {
    this.#isUnread = false;
    this.#onDisk = found;
    for (const [name, latch] of found) {
      if (!this.#latches.has(name)) this.#latches.set(name, { ...latch, isClosed: true });
    }
  }

  /** The lock does not exclude a second process everywhere, and workers enforce what it closed. @param found undefined: all may be */
  #closeWhatOthersClosed(found: Latches | undefined): void {
    if (found === undefined) {
      for (const [name, latch] of this.#latches) this.#latches.set(name, { ...latch, isClosed: true });
      return;
    }
    for (const [name, latch] of found) {
      if (!latch.isClosed || isSame(this.#onDisk.get(name), latch)) continue;
      const own = this.#latches.get(name);
      if (own === undefined || own.allowedUntil === latch.allowedUntil) this.#latches.set(name, latch);
    }
  }

  /** The latches could not be written, but the bundle is loaded, and enforces its routes. So what had not begun is closed. */
  #closeWhatCannotBegin(): void {
    for (const [name, latch] of this.#latches) {
      const isBeginning = latch.until !== undefined && !latch.isClosed && !this.#begun.has(name);
      if (isBeginning) this.#latches.set(name, { ...latch, isClosed: true });
    }
  }
}

function closedOnes(allowed: AllowedByName): Latches {
  return new Map(
    [...allowed].map(([name, allowedUntil]) => [name, { allowedUntil, until: 0, isClosed: true }]),
  );
}

/** A route that is not in the bundle was never enforced, unless this flag saw it there: the flag waits for its first bundle. */
function waitingLatch(before: Latch | undefined, allowedUntil: number): Latch {
  const hasBeenThere = before?.allowedUntil === allowedUntil && before.until !== undefined;
  return hasBeenThere ? { ...before, isClosed: true } : { allowedUntil, until: undefined, isClosed: false };
}

function nextLatch(
  before: Latch | undefined,
  allowedUntil: number,
  wishedUntil: number | undefined,
  nowSeconds: number,
): Latch {
  const known = before?.allowedUntil === allowedUntil ? before : undefined;
  if (known?.isClosed === true) return known;
  const until = Math.min(allowedUntil, wishedUntil ?? 0);
  const hasEnded = known?.until !== undefined && !(nowSeconds < known.until);
  return { allowedUntil, until, isClosed: hasEnded || !(nowSeconds < until) };
}

function isSame(a: Latch | undefined, b: Latch): boolean {
  return a?.allowedUntil === b.allowedUntil && a.until === b.until && a.isClosed === b.isClosed;
}
