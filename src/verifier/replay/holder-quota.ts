/**
 * How many identifiers a holder may have remembered in a minute, in a fixed amount of memory.
 *
 * A holder counts in one of a fixed number of cells, chosen by a hash that nobody outside can compute:
 * a table of holders would have to grow with them, and refuse newcomers once full. Two holders that
 * share a cell share its quota; with 2^18 cells that matters once in 260,000 pairs, and never lets more through.
 */
import { randomBytes } from 'node:crypto';
import { mixWords, packSextets, SEXTETS_PER_WORD } from './sextets.ts';

const CELL_BITS = 18;
const SECONDS_PER_MINUTE = 60;

export class HolderQuota {
  readonly #maxPerMinute: number;
  readonly #counts = new Int32Array(2 ** CELL_BITS);
  readonly #minutes = new Int32Array(2 ** CELL_BITS);
  readonly #seed = randomBytes(4).readInt32LE();

  constructor(maxPerMinute: number) {
    this.#maxPerMinute = maxPerMinute;
  }

  /** Counts one identifier of the holder, unless the minute's quota is used up: then false. */
  take(holderThumbprint: string, nowSeconds: number): boolean {
    const first = packSextets(holderThumbprint, 0);
    const second = packSextets(holderThumbprint, SEXTETS_PER_WORD);
    const cell = mixWords(first, second, this.#seed) >>> (32 - CELL_BITS);
    const minute = Math.floor(nowSeconds / SECONDS_PER_MINUTE);
    const countedMinute = this.#minutes[cell] ?? 0;
    // Requests reach the store a little out of order: one of the minute before counts in this one.
    if (minute !== countedMinute && minute !== countedMinute - 1) {
      this.#minutes[cell] = minute;
      this.#counts[cell] = 0;
    }
    const count = this.#counts[cell] ?? 0;
    if (count >= this.#maxPerMinute) return false;
    this.#counts[cell] = count + 1;
    return true;
  }
}
