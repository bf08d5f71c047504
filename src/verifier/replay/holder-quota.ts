/**
 * Limits how many identifiers a holder may add in a minute, and have stored at a time, in a fixed amount of memory.
 *
 * A keyed hash assigns each holder to one of a fixed number of cells, so outsiders cannot choose a cell. A table of
 * holders would grow with their number, and reject new ones once full. Two holders in one cell share its quota. With
 * 2^18 cells that affects one in 260,000 pairs, and never lets more through.
 */
import { randomBytes } from 'node:crypto';
import { mixWords, packSextets, SEXTETS_PER_WORD } from './sextets.ts';

const CELL_BITS = 18;
const SECONDS_PER_MINUTE = 60;

export interface HolderLimits {
  readonly maxPerMinute: number;
  readonly maxRemembered: number;
}

export class HolderQuota {
  readonly #limits: HolderLimits;
  readonly #counts = new Int32Array(2 ** CELL_BITS);
  readonly #minutes = new Int32Array(2 ** CELL_BITS);
  readonly #remembered = new Int32Array(2 ** CELL_BITS);
  readonly #seed = randomBytes(4).readInt32LE();

  constructor(limits: HolderLimits) {
    this.#limits = limits;
  }

  /** The holder's cell, which is stored with each of its identifiers. */
  cellOf(holderThumbprint: string): number {
    const first = packSextets(holderThumbprint, 0);
    const second = packSextets(holderThumbprint, SEXTETS_PER_WORD);
    return mixWords(first, second, this.#seed) >>> (32 - CELL_BITS);
  }

  /** Counts one identifier that is stored from now on. Returns false when one of the limits is reached. */
  take(cell: number, nowSeconds: number): boolean {
    const { maxPerMinute, maxRemembered } = this.#limits;
    const remembered = this.#remembered[cell] ?? 0;
    if (remembered >= maxRemembered) return false;
    const minute = Math.floor(nowSeconds / SECONDS_PER_MINUTE);
    const countedMinute = this.#minutes[cell] ?? 0;
    // Requests reach the store slightly out of order: one of the minute before counts in this one.
    if (minute !== countedMinute && minute !== countedMinute - 1) {
      this.#minutes[cell] = minute;
      this.#counts[cell] = 0;
    }
    const count = this.#counts[cell] ?? 0;
    if (count >= maxPerMinute) return false;
    this.#counts[cell] = count + 1;
    this.#remembered[cell] = remembered + 1;
    return true;
  }

  /** Counts one identifier that was removed. */
  forget(cell: number): void {
    this.#remembered[cell] = (this.#remembered[cell] ?? 1) - 1;
  }
}
