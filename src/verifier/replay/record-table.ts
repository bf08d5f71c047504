/**
 * The in-memory store's table of identifiers and their expiry.
 *
 * It uses fixed arrays: a `Map` of a million strings stalls the process while it grows, and gives the garbage collector
 * a million objects to walk. A timing wheel of one bucket for each second makes expiry a few steps for each request,
 * whatever the number of records. A record takes 44 to 52 bytes, as the number of slots is a power of two. The
 * operating system backs the arrays only as far as they are used.
 */
import { randomBytes } from 'node:crypto';
import { mixWords, packSextets, SEXTETS_PER_WORD } from './sextets.ts';

/**
 * 120 of the identifier's 256 bits. Two identifiers that share them would reject each other. To forge that against
 * another caller takes a second preimage of 120 bits.
 */
const WORDS_PER_RECORD = 4;
/** Seconds in one turn of the wheel; more than the longest time that a record is kept (300 + 4 x 60 + 2). */
const WHEEL_SECONDS = 1024;
/** In the arrays below, 0 means none and n means record n - 1. */
const NONE = 0;

/** Where the quotas count an identifier; see `quota.ts`. */
export interface QuotaCells {
  readonly holder: number;
  readonly subject: number;
}

export class RecordTable {
  readonly #capacity: number;
  /** Open addressing with linear probing, at most half full. */
  readonly #slots: Int32Array;
  readonly #slotMask: number;
  readonly #hashShift: number;
  readonly #seed: number;
  readonly #words: Int32Array;
  readonly #keepUntilSeconds: Float64Array;
  /** The next record of the same bucket, or of the free list. */
  readonly #next: Int32Array;
  readonly #holderCells: Int32Array;
  readonly #subjectCells: Int32Array;
  readonly #onForget: (cells: QuotaCells) => void;
  readonly #bucketHeads = new Int32Array(WHEEL_SECONDS);
  #freeHead = NONE;
  #everUsed = 0;
  #size = 0;
  /** The buckets of all seconds up to this one have been taken off the wheel. */
  #cursorSeconds: number;
  /** Records of the bucket taken off last that are not processed yet. */
  #pendingHead = NONE;
  #horizonSeconds = 0;
  /** The words that `has` looked up last, for `addSought`. */
  readonly #sought = new Int32Array(WORDS_PER_RECORD);
  #soughtSlot = 0;

  /** @param onForget called for each removed identifier, with the cells that were passed to `addSought` */
  constructor(capacity: number, nowSeconds: number, onForget: (cells: QuotaCells) => void) {
    const slotBits = Math.max(4, Math.ceil(Math.log2(capacity * 2)));
    this.#capacity = capacity;
    this.#slots = new Int32Array(2 ** slotBits);
    this.#slotMask = 2 ** slotBits - 1;
    this.#hashShift = 32 - slotBits;
    this.#seed = randomBytes(4).readInt32LE();
    this.#words = new Int32Array(capacity * WORDS_PER_RECORD);
    this.#keepUntilSeconds = new Float64Array(capacity);
    this.#next = new Int32Array(capacity);
    this.#holderCells = new Int32Array(capacity);
    this.#subjectCells = new Int32Array(capacity);
    this.#onForget = onForget;
    this.#cursorSeconds = nowSeconds;
  }

  get isFull(): boolean {
    return this.#size >= this.#capacity;
  }

  get size(): number {
    return this.#size;
  }

  /** The latest expiry among removed records; 0 when there was none. */
  get horizonSeconds(): number {
    return this.#horizonSeconds;
  }

  /** Whether the identifier is stored. */
  has(identifier: string): boolean {
    const sought = this.#sought;
    for (let word = 0; word < WORDS_PER_RECORD; word += 1) {
      sought[word] = packSextets(identifier, word * SEXTETS_PER_WORD);
    }
    let slot = this.#homeSlot(sought[0] ?? 0, sought[1] ?? 0);
    for (;;) {
      const entry = this.#slots[slot] ?? NONE;
      if (entry === NONE) break;
      if (this.#isSought(entry - 1)) return true;
      slot = (slot + 1) & this.#slotMask;
    }
    this.#soughtSlot = slot;
    return false;
  }

  /** Stores the identifier that `has` just did not find. The table must not be full, nor changed in between. */
  addSought(keepUntilSeconds: number, cells: QuotaCells): void {
    let entry = this.#freeHead;
    if (entry === NONE) {
      this.#everUsed += 1;
      entry = this.#everUsed;
    } else {
      this.#freeHead = this.#next[entry - 1] ?? NONE;
    }
    this.#words.set(this.#sought, (entry - 1) * WORDS_PER_RECORD);
    this.#keepUntilSeconds[entry - 1] = keepUntilSeconds;
    this.#holderCells[entry - 1] = cells.holder;
    this.#subjectCells[entry - 1] = cells.subject;
    this.#slots[this.#soughtSlot] = entry;
    this.#size += 1;
    this.#hangInBucket(entry);
  }

  /** Removes records that expire at `nowSeconds` or earlier, in at most `maxSteps` steps of constant time. */
  purge(nowSeconds: number, maxSteps: number): void {
    // The clock went back: processes the seconds in between again, with the records added since.
    if (nowSeconds < this.#cursorSeconds) this.#cursorSeconds = nowSeconds;
    // The clock jumped ahead: one turn covers every bucket.
    if (nowSeconds - this.#cursorSeconds > WHEEL_SECONDS) this.#cursorSeconds = nowSeconds - WHEEL_SECONDS;
    for (let step = 0; step < maxSteps; step += 1) {
      const entry = this.#pendingHead;
      if (entry !== NONE) {
        this.#pendingHead = this.#next[entry - 1] ?? NONE;
        if ((this.#keepUntilSeconds[entry - 1] ?? 0) <= nowSeconds) this.#forget(entry);
        else this.#hangInBucket(entry);
      } else if (this.#cursorSeconds < nowSeconds) {
        this.#cursorSeconds += 1;
        const bucket = this.#cursorSeconds & (WHEEL_SECONDS - 1);
        this.#pendingHead = this.#bucketHeads[bucket] ?? NONE;
        this.#bucketHeads[bucket] = NONE;
      } else {
        return;
      }
    }
  }

  #homeSlot(firstWord: number, secondWord: number): number {
    return mixWords(firstWord, secondWord, this.#seed) >>> this.#hashShift;
  }

  #isSought(record: number): boolean {
    const words = this.#words;
    const sought = this.#sought;
    const offset = record * WORDS_PER_RECORD;
    return (
      words[offset] === sought[0] &&
      words[offset + 1] === sought[1] &&
      words[offset + 2] === sought[2] &&
      words[offset + 3] === sought[3]
    );
  }

  #hangInBucket(entry: number): void {
    const bucket = (this.#keepUntilSeconds[entry - 1] ?? 0) & (WHEEL_SECONDS - 1);
    this.#next[entry - 1] = this.#bucketHeads[bucket] ?? NONE;
    this.#bucketHeads[bucket] = entry;
  }

  #forget(entry: number): void {
    const keptUntilSeconds = this.#keepUntilSeconds[entry - 1] ?? 0;
    if (keptUntilSeconds > this.#horizonSeconds) this.#horizonSeconds = keptUntilSeconds;
    this.#emptySlotOf(entry);
    this.#onForget({
      holder: this.#holderCells[entry - 1] ?? 0,
      subject: this.#subjectCells[entry - 1] ?? 0,
    });
    this.#next[entry - 1] = this.#freeHead;
    this.#freeHead = entry;
    this.#size -= 1;
  }

  #homeSlotOf(entry: number): number {
    const offset = (entry - 1) * WORDS_PER_RECORD;
    return this.#homeSlot(this.#words[offset] ?? 0, this.#words[offset + 1] ?? 0);
  }

  /** Deletion from linear probing without tombstones (Knuth, TAOCP 3, 6.4, algorithm R). */
  #emptySlotOf(entry: number): void {
    const slots = this.#slots;
    const mask = this.#slotMask;
    let hole = this.#homeSlotOf(entry);
    while (slots[hole] !== entry) hole = (hole + 1) & mask;
    for (let slot = (hole + 1) & mask; ; slot = (slot + 1) & mask) {
      const other = slots[slot] ?? NONE;
      if (other === NONE) break;
      const probesFromHome = (slot - this.#homeSlotOf(other)) & mask;
      if (probesFromHome >= ((slot - hole) & mask)) {
        slots[hole] = other;
        hole = slot;
      }
    }
    slots[hole] = NONE;
  }
}
