import { expect, it } from '@jest/globals';
import { type Linked, LinkedList } from '../../../src/process/node-internals/linked-list.ts';

class Entry implements Linked<Entry> {
  next: Entry | undefined;
  previous: Entry | undefined;
  isListed = false;
}

function listOf(entries: readonly Entry[]): LinkedList<Entry> {
  const list = new LinkedList<Entry>();
  for (const entry of entries) list.add(entry);
  return list;
}

it.each([0, 1, 2])('keeps the order of the others when the entry at %d leaves', (index) => {
  const entries = [new Entry(), new Entry(), new Entry()];
  const list = listOf(entries);
  const [left] = entries.splice(index, 1);
  expect(left && list.delete(left)).toBe(true);
  expect([...list]).toEqual(entries);
  expect(list.size).toBe(2);
  const late = new Entry();
  list.add(late);
  expect([...list]).toEqual([...entries, late]);
});

it('deletes only its own entries, each once', () => {
  const entry = new Entry();
  const list = listOf([entry]);
  expect(list.delete(new Entry())).toBe(false);
  expect(list.delete(entry)).toBe(true);
  expect(list.delete(entry)).toBe(false);
  expect([list.size, [...list]]).toEqual([0, []]);
});

it('cuts the links of an entry that leaves', () => {
  const entries = [new Entry(), new Entry(), new Entry()];
  const list = listOf(entries);
  for (const entry of entries) list.delete(entry);
  for (const { next, previous } of entries) expect([next, previous]).toEqual([undefined, undefined]);
});
