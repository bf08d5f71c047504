import { describe, expect, it } from '@jest/globals';
import { type LineBatch, LineQueue } from '../../../src/verifier/audit/line-queue.ts';
import { numberedEvent, readTrail, upTo } from './trail.ts';

/** One line of an event with one digit. */
const LINE_BYTES = Buffer.byteLength(`${JSON.stringify(numberedEvent(0))}\n`);

function queueOf(options: { readonly maxLines?: number; readonly batchLines?: number } = {}) {
  const { batchLines = 100, maxLines = 1000 } = options;
  return new LineQueue({ maxBytes: maxLines * LINE_BYTES, batchBytes: batchLines * LINE_BYTES });
}

function queueWith(numbers: readonly number[], options: Parameters<typeof queueOf>[0] = {}) {
  const queue = queueOf(options);
  for (const number of numbers) expect(queue.add(numberedEvent(number))).toBe(true);
  return queue;
}

const trailOf = (batch: LineBatch | undefined) => readTrail(batch?.bytes.toString() ?? '');

/** Batches in order, each with its events and the lost ones that it tells of. */
function drain(queue: LineQueue) {
  const batches: { ids: readonly number[]; gaps: readonly number[] }[] = [];
  for (let batch = queue.first(); batch !== undefined; batch = queue.first()) {
    const { gaps, ids, torn } = trailOf(batch);
    expect({ events: batch.events, reportedLost: batch.reportedLost, torn }).toEqual({
      events: ids.length,
      reportedLost: gaps.reduce((sum, lost) => sum + lost, 0),
      torn: [],
    });
    batches.push({ ids, gaps });
    queue.removeFirst();
  }
  return batches;
}

describe('batches', () => {
  it('are of whole lines, in order, up to the size of a batch', () => {
    const queue = queueWith(upTo(7), { batchLines: 3 });
    expect(drain(queue).map(({ ids }) => ids)).toEqual([[0, 1, 2], [3, 4, 5], [6]]);
    expect(queue.first()).toBeUndefined();
  });

  it('hold one line, where it is larger than a batch', () => {
    const queue = queueOf({ batchLines: 2 });
    queue.add(numberedEvent(0));
    queue.add(numberedEvent(1, 'x'.repeat(3 * LINE_BYTES)));
    queue.add(numberedEvent(2));
    expect(drain(queue).map(({ ids }) => ids)).toEqual([[0], [1], [2]]);
  });

  it('are full as soon as they will not grow any more', () => {
    const queue = queueWith([0], { batchLines: 2 });
    expect(queue.hasFullBatch).toBe(false);
    queue.add(numberedEvent(1));
    expect(queue.hasFullBatch).toBe(true);
    queue.removeFirst();
    expect(queue.hasFullBatch).toBe(false);
  });

  it('are full when the next line does not fit', () => {
    const queue = queueWith([0], { batchLines: 2 });
    queue.add(numberedEvent(1, 'x'.repeat(2 * LINE_BYTES)));
    expect(drain(queue).map(({ ids }) => ids)).toEqual([[0], [1]]);
  });

  it('stay the same until they are removed, whatever comes after', () => {
    const queue = queueWith([0]);
    const first = queue.first();
    queue.add(numberedEvent(1));
    expect(queue.first()).toBe(first);
    expect(drain(queue).map(({ ids }) => ids)).toEqual([[0], [1]]);
  });
});

describe('what waits', () => {
  it('is counted in bytes, in the open batch and in others', () => {
    const queue = queueOf({ batchLines: 2 });
    const sizes = upTo(3).map((number) => {
      queue.add(numberedEvent(number));
      return queue.queuedBytes;
    });
    expect(sizes).toEqual([LINE_BYTES, 2 * LINE_BYTES, 3 * LINE_BYTES]);
    queue.removeFirst();
    expect(queue.queuedBytes).toBe(LINE_BYTES);
    queue.first();
    queue.removeFirst();
    queue.removeFirst();
    expect(queue.queuedBytes).toBe(0);
  });

  it('is bounded: what finds no room is left out, and the next that does follows a line about it', () => {
    const queue = queueWith(upTo(3), { maxLines: 3 });
    expect([3, 4].map((number) => queue.add(numberedEvent(number)))).toEqual([false, false]);
    expect(queue.queuedBytes).toBe(3 * LINE_BYTES);
    expect(trailOf(queue.first()).ids).toEqual([0, 1, 2]);
    queue.removeFirst();
    expect(queue.add(numberedEvent(5))).toBe(true);
    expect(queue.add(numberedEvent(6))).toBe(true);
    expect(drain(queue)).toEqual([{ ids: [5, 6], gaps: [2] }]);
  });

  it('tells of what is missing also when nothing follows', () => {
    const queue = queueWith([0], { maxLines: 1 });
    queue.add(numberedEvent(1));
    expect(drain(queue)).toEqual([
      { ids: [0], gaps: [] },
      { ids: [], gaps: [1] },
    ]);
    expect(queue.queuedBytes).toBe(0);
  });

  it('tells of what is missing behind what was there before', () => {
    const queue = queueWith(upTo(4), { maxLines: 4, batchLines: 2 });
    queue.add(numberedEvent(4));
    queue.removeFirst();
    expect(queue.add(numberedEvent(5))).toBe(true);
    expect(drain(queue)).toEqual([
      { ids: [2, 3], gaps: [] },
      { ids: [5], gaps: [1] },
    ]);
  });
});

describe('a batch that is left out', () => {
  it('is reported in front of the next event, with what it had reported itself', () => {
    const queue = queueWith([0, 1], { maxLines: 2 });
    queue.add(numberedEvent(2));
    queue.first();
    queue.removeFirst();
    queue.add(numberedEvent(3));
    expect(trailOf(queue.first())).toMatchObject({ ids: [3], gaps: [1] });
    queue.loseFirst();
    queue.add(numberedEvent(4));
    expect(drain(queue)).toEqual([{ ids: [4], gaps: [2] }]);
  });

  it('is nothing where there is none', () => {
    const queue = queueOf();
    queue.loseFirst();
    queue.removeFirst();
    expect([queue.queuedBytes, queue.first(), queue.splitFirst()]).toEqual([0, undefined, false]);
  });
});

describe('a batch that is split', () => {
  it.each([2, 3, 4, 5, 8, 9])('of %i lines is two, the same in order', (count) => {
    const queue = queueWith(upTo(count));
    queue.first();
    expect(queue.splitFirst()).toBe(true);
    const [head, tail, ...more] = drain(queue).map(({ ids }) => ids);
    expect(more).toEqual([]);
    expect([...(head ?? []), ...(tail ?? [])]).toEqual(upTo(count));
    // About in the middle: neither half is more than one line larger.
    expect(Math.abs((head?.length ?? 0) - (tail?.length ?? 0))).toBeLessThanOrEqual(2);
    expect(Math.min(head?.length ?? 0, tail?.length ?? 0)).toBeGreaterThan(0);
  });

  it.each([
    ['first', ['x'.repeat(2000), 'y']],
    ['last', ['x', 'y'.repeat(2000)]],
  ])('of a large and a small line is one of each, the large one %s', (_where, subjects) => {
    const queue = queueOf();
    for (const [number, subject] of subjects.entries()) queue.add(numberedEvent(number, subject));
    queue.first();
    expect(queue.splitFirst()).toBe(true);
    expect(drain(queue).map(({ ids }) => ids)).toEqual([[0], [1]]);
  });

  it('keeps what comes behind it', () => {
    const queue = queueWith(upTo(5), { batchLines: 4 });
    queue.splitFirst();
    expect(drain(queue).map(({ ids }) => ids)).toEqual([[0, 1], [2, 3], [4]]);
  });

  it('keeps the line about what is missing in front', () => {
    const queue = queueWith([0], { maxLines: 4 });
    for (const number of [1, 2]) queue.add(numberedEvent(number, 'x'.repeat(4 * LINE_BYTES)));
    for (const number of [3, 4]) expect(queue.add(numberedEvent(number))).toBe(true);
    queue.removeFirst();
    queue.first();
    expect(queue.splitFirst()).toBe(true);
    const batches = drain(queue);
    expect(batches.flatMap(({ ids }) => ids)).toEqual([3, 4]);
    expect(batches.map(({ gaps }) => gaps)).toEqual([[2], []]);
  });

  it('of one line stays', () => {
    const queue = queueWith([0]);
    const batch = queue.first();
    expect(queue.splitFirst()).toBe(false);
    expect(queue.first()).toBe(batch);
  });

  it('is not one that is still open', () => {
    const queue = queueWith([0, 1]);
    expect(queue.splitFirst()).toBe(false);
  });
});
