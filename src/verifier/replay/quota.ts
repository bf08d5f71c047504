/**
 * Limits how many identifiers one holder, or one issuer and subject, may add in a minute, and have stored at a time, in a
 * fixed amount of memory.
 *
 * A keyed hash assigns each name to one of a fixed number of cells, so outsiders cannot choose a cell. A table of names
 * would grow with their number, and reject new ones once full. Two names in one cell share its quota. With 2^18 cells
 * that affects one in 260,000 pairs, and never lets more through.
 */
import { randomBytes } from 'node:crypto';
import { mixWords, packSextets, SEXTETS_PER_WORD } from './sextets.ts';

const CELL_BITS = 18;
const SECONDS_PER_MINUTE = 60;

interface QuotaLimits {
  readonly maxPerMinute: number;
  readonly maxRemembered: number;
}

export class Quota {
  readonly #limits: QuotaLimits;
  readonly #counts = new Int32Array(2 ** CELL_BITS);
  readonly #minutes = new Int32Array(2 ** CELL_BITS);
  readonly #remembered = new Int32Array(2 ** CELL_BITS);
  readonly #seed = randomBytes(4).readInt32LE();

  constructor(limits: QuotaLimits) {
    this.#limits = limits;
  }

  /** @param name a SHA-256 in base64url. @returns its cell, which is stored with each of its identifiers */
  cellOf(name: string): number {
    const first = packSextets(name, 0);
    const second = packSextets(name, SEXTETS_PER_WORD);
    return mixWords(first, second, this.#seed) >>> (32 - CELL_BITS);
  }

  /** Whether neither limit is reached. */
  hasRoom(cell: number, nowSeconds: number): boolean {
    const { maxPerMinute, maxRemembered } = this.#limits;
    const isCounting = this.#isCounting(cell, minuteOf(nowSeconds));
    const count = isCounting ? (this.#counts[cell] ?? 0) : 0;
    return (this.#remembered[cell] ?? 0) < maxRemembered && count < maxPerMinute;
  }

  /** Counts one identifier that is stored from now on. */
  take(cell: number, nowSeconds: number): void {
    const minute = minuteOf(nowSeconds);
    if (!this.#isCounting(cell, minute)) {
      this.#minutes[cell] = minute;
      this.#counts[cell] = 0;
    }
    this.#counts[cell] = (this.#counts[cell] ?? 0) + 1;
    this.#remembered[cell] = (this.#remembered[cell] ?? 0) + 1;
  }

  /** Counts one identifier that was removed. */
  forget(cell: number): void {
    this.#remembered[cell] = (this.#remembered[cell] ?? 1) - 1;
  }

  /** Requests reach the store slightly out of order: a request of the previous minute counts in this one. */
  #isCounting(cell: number, minute: number): boolean {
    const countedMinute = this.#minutes[cell] ?? 0;
    return minute === countedMinute || minute === countedMinute - 1;
  }
}

function minuteOf(nowSeconds: number): number {
  return Math.floor(nowSeconds / SECONDS_PER_MINUTE);
}
