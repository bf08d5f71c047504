/** The embedded store's table, held to a map that says what it should remember. */
import { describe, expect, it } from '@jest/globals';
import fc from 'fast-check';
import { RecordTable } from '../../../src/verifier/replay/record-table.ts';
import { randomIdentifier } from './claims.ts';

const START = 1_800_000_000;
const PLENTY = 5_000;
/** One turn of its wheel. */
const WHEEL_SECONDS = 1_024;
/** Characters of an identifier that tell records apart. */
const DISTINCT = 20;

interface Kept {
  readonly keepUntil: number;
  readonly cell: number;
}

/** A table beside its model. */
class Pair {
  readonly kept = new Map<string, Kept>();
  readonly forgottenCells: number[] = [];
  readonly #gone: string[] = [];
  readonly table: RecordTable;
  readonly #capacity: number;
  #expectedCells: number[] = [];
  #horizon = 0;
  #cells = 0;

  constructor(capacity: number) {
    this.#capacity = capacity;
    this.table = new RecordTable(capacity, START, ({ holder, subject }) => {
      if (subject !== -holder) throw new Error('cells of two records');
      this.forgottenCells.push(holder);
    });
  }

  /** @returns whether there was room */
  add(keepUntil: number, identifier = randomIdentifier()): boolean {
    if (this.table.isFull !== this.kept.size >= this.#capacity) throw new Error('full, or not');
    if (this.table.has(identifier)) throw new Error('it was never there');
    if (this.table.isFull) return false;
    this.#cells += 1;
    this.table.addSought(keepUntil, { holder: this.#cells, subject: -this.#cells });
    this.kept.set(identifier, { keepUntil, cell: this.#cells });
    return true;
  }

  /** Enough steps for all expired records. */
  purge(now: number): void {
    this.table.purge(now, PLENTY);
    for (const [identifier, { cell, keepUntil }] of this.kept) {
      if (keepUntil > now) continue;
      this.kept.delete(identifier);
      this.#gone.push(identifier);
      this.#expectedCells.push(cell);
      this.#horizon = Math.max(this.#horizon, keepUntil);
    }
  }

  agree(): void {
    expect(this.table.size).toBe(this.kept.size);
    expect(this.table.horizonSeconds).toBe(this.#horizon);
    const numerically = (a: number, b: number) => a - b;
    expect([...this.forgottenCells].sort(numerically)).toEqual(this.#expectedCells.sort(numerically));
    expect([...this.kept.keys()].filter((identifier) => !this.table.has(identifier))).toEqual([]);
    expect(this.#gone.slice(-50).filter((identifier) => this.table.has(identifier))).toEqual([]);
  }
}

describe('the table', () => {
  it.each([1, 2, 7, 8, 32, 100])('of %i records remembers what it must, and nothing else', (capacity) => {
    const step = fc.record({
      adds: fc.nat({ max: 12 }),
      livesSeconds: fc.array(fc.integer({ min: 1, max: 40 }), { minLength: 12, maxLength: 12 }),
      passes: fc.constantFrom(0, 1, 1, 5, 30, WHEEL_SECONDS, 3 * WHEEL_SECONDS),
    });
    fc.assert(
      fc.property(fc.array(step, { minLength: 10, maxLength: 30 }), (steps) => {
        const pair = new Pair(capacity);
        let now = START;
        for (const { adds, livesSeconds, passes } of steps) {
          for (const lives of livesSeconds.slice(0, adds)) pair.add(now + lives);
          now += passes;
          pair.purge(now);
          pair.agree();
        }
      }),
      { numRuns: 15 },
    );
  });

  it('is full with as many as it was made for, and takes one for each that it forgets', () => {
    const pair = new Pair(10);
    for (let count = 0; count < 10; count += 1) expect(pair.add(START + 1 + count)).toBe(true);
    expect(pair.add(START + 50)).toBe(false);
    for (let second = 1; second <= 10; second += 1) {
      pair.purge(START + second);
      expect(pair.add(START + 50)).toBe(true);
      expect(pair.add(START + 50)).toBe(false);
      pair.agree();
    }
  });

  it('keeps a record to the second before its end', () => {
    const pair = new Pair(10);
    pair.add(START + 5);
    for (const [second, size] of [
      [4, 1],
      [5, 0],
    ] as const) {
      pair.purge(START + second);
      expect(pair.table.size).toBe(size);
    }
    expect(pair.table.horizonSeconds).toBe(START + 5);
  });

  it('keeps a record for longer than its wheel turns', () => {
    const pair = new Pair(10);
    pair.add(START + 2 * WHEEL_SECONDS + 3);
    for (let now = START; now <= START + 3 * WHEEL_SECONDS; now += 100) {
      pair.purge(now);
      pair.agree();
    }
    expect(pair.table.size).toBe(0);
  });

  it('tells identifiers apart by any of their first characters', () => {
    const pair = new Pair(10);
    const identifier = randomIdentifier();
    pair.add(START + 60, identifier);
    for (let at = 0; at < DISTINCT; at += 1) {
      const other = identifier[at] === 'A' ? 'B' : 'A';
      expect(pair.table.has(identifier.slice(0, at) + other + identifier.slice(at + 1))).toBe(false);
    }
    expect(pair.table.has(identifier)).toBe(true);
  });

  it('tells those apart that lie in the same place and differ in one word', () => {
    const identifier = randomIdentifier();
    for (let word = 0; word < 4; word += 1) {
      const pair = new Pair(1);
      pair.add(START + 60, identifier);
      const taken = Array.from({ length: 300 }, () => {
        const other = randomIdentifier().slice(0, 5);
        return identifier.slice(0, 5 * word) + other + identifier.slice(5 * word + 5);
      }).filter((other) => other !== identifier && pair.table.has(other));
      expect(taken).toEqual([]);
    }
  });

  it('finds those whose first words are the same, also after one of them is forgotten', () => {
    const start = 'A'.repeat(10);
    const alike = Array.from({ length: 20 }, (_, number) => {
      const middle = number.toString(32).padStart(10, 'A');
      return `${start}${middle}${'A'.repeat(23)}`;
    });
    for (const first of alike) {
      const pair = new Pair(20);
      for (const identifier of alike) pair.add(START + (identifier === first ? 1 : 60), identifier);
      pair.purge(START + 1);
      pair.agree();
      expect(pair.table.has(first)).toBe(false);
    }
  });
});

describe('forgetting', () => {
  function ofOneSecond(count: number): Pair {
    const pair = new Pair(count);
    for (let added = 0; added < count; added += 1) pair.add(START + 1);
    return pair;
  }

  it('takes no more steps than it is given, and goes on where it was', () => {
    const { table } = ofOneSecond(100);
    // One step for the second, one for each record.
    table.purge(START + 1, 8);
    expect(table.size).toBe(93);
    table.purge(START + 1, 8);
    expect(table.size).toBe(85);
    table.purge(START + 1, PLENTY);
    expect(table.size).toBe(0);
  });

  it('sees every second of the wheel in one turn, however far the clock went', () => {
    for (const seconds of [WHEEL_SECONDS, WHEEL_SECONDS + 1, 40_000_000]) {
      const pair = new Pair(200);
      for (let count = 0; count < 200; count += 1) pair.add(START + 1 + count);
      pair.table.purge(START + seconds, WHEEL_SECONDS + 200);
      expect(pair.table.size).toBe(0);
    }
  });

  it('goes on after the clock went back', () => {
    const pair = new Pair(10);
    pair.purge(START + 100);
    pair.purge(START);
    pair.add(START + 5);
    pair.purge(START + 4);
    expect(pair.table.size).toBe(1);
    pair.purge(START + 5);
    expect(pair.table.size).toBe(0);
  });
});
