/** Tests a table that Node uses as a Map: it must behave like a Map and must not keep removed entries alive. */
import { getHeapSpaceStatistics, setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { describe, expect, it } from '@jest/globals';
import { StreamTable } from '../../../src/process/node-internals/http2-stream-table.ts';
import { Random } from '../../support/random.ts';

const PASSING = 20_000;
const CELLS = 250;

setFlagsFromString('--expose-gc');
const collect: (options: { readonly type: 'minor' | 'major' }) => void = runInNewContext('gc');

function oldBytes(): number {
  const space = getHeapSpaceStatistics().find(({ space_name }) => space_name === 'old_space');
  return space?.space_used_size ?? Number.NaN;
}

describe('like a Map', () => {
  it.each([1, 2, 3, 4, 5, 6])('whatever is put in and taken out, seed %d', (seed) => {
    const random = new Random(seed);
    const [map, table] = [new Map<number, object>(), new StreamTable<object>()];
    for (let step = 0; step < 3_000; step += 1) {
      // Few enough numbers that they meet again, far enough apart that they want the same places.
      const id = 1 + random.below(200) * random.pick([2, 64]);
      if (random.below(100) < 45) {
        const stream = { step };
        map.set(id, stream);
        expect(table.set(id, stream)).toBe(table);
      } else {
        expect(table.delete(id)).toBe(map.delete(id));
      }
      const other = 1 + random.below(400);
      expect(table.get(other)).toBe(map.get(other));
      expect(table.has(other)).toBe(map.has(other));
      expect(table.size).toBe(map.size);
    }
    const byId = (a: readonly [number, unknown], b: readonly [number, unknown]) => a[0] - b[0];
    expect([...table].sort(byId)).toEqual([...map].sort(byId));
    expect([...table.keys()].sort((a, b) => a - b)).toEqual([...map.keys()].sort((a, b) => a - b));
    expect(new Set(table.values())).toEqual(new Set(map.values()));
  });

  it('keeps a stream that stays while thousands come and go', () => {
    const table = new StreamTable<string>();
    table.set(1, 'stays');
    for (let id = 3; id < 20_001; id += 2) {
      table.set(id, 'passes');
      if (id > 100) table.delete(id - 98);
    }
    expect(table.get(1)).toBe('stays');
    expect(table.size).toBe(50);
  });

  it('can be emptied while its streams are gone through, as when a session is destroyed', () => {
    const table = new StreamTable<number>();
    for (let id = 1; id < 100; id += 2) table.set(id, id);
    const seen: number[] = [];
    table.forEach((stream, id) => {
      seen.push(stream);
      table.delete(id);
    });
    expect(seen).toHaveLength(50);
    expect(table.size).toBe(0);
  });

  it('finds no stream by the number of the session itself', () => {
    const table = new StreamTable<number>();
    expect([table.has(0), table.get(0), table.delete(0)]).toEqual([false, undefined, false]);
    table.set(1, 1);
    table.clear();
    expect([table.size, table.get(1), [...table]]).toEqual([0, undefined, []]);
  });
});

it('does not keep what has left it, even once it is in the old generation itself', () => {
  const table = new StreamTable<object>();
  let id = 1;
  /** Thirty-two at a time; each is gone 32 later. */
  const pass = (count: number) => {
    for (let passed = 0; passed < count; passed += 1, id += 2) {
      table.set(id, new Array(CELLS).fill(id));
      table.delete(id - 64);
      if (passed % 200 === 0) collect({ type: 'minor' });
    }
  };
  pass(1_000);
  collect({ type: 'major' });
  const before = oldBytes();
  pass(PASSING);
  // A plain Map in its place would keep nearly all of them.
  expect(oldBytes() - before).toBeLessThan((PASSING * CELLS * 8) / 50);
});
