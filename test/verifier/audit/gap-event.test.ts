/** The line that stands where events are missing, as it is published. */
import { readFileSync } from 'node:fs';
import { afterEach, expect, it, jest } from '@jest/globals';
import Schema from 'typebox/schema';
import { AuditGap, LineQueue } from '../../../src/verifier/audit/line-queue.ts';
import { numberedEvent, readTrail } from './trail.ts';

const schema = JSON.parse(
  readFileSync(
    new URL('../../../docs/reference/schema/audit-gap-event.schema.json', import.meta.url),
    'utf8',
  ),
);

it('is what its schema says, and counts until it is reported', () => {
  const gap = new AuditGap();
  expect(gap.line()).toBe('');
  gap.lose(2);
  gap.lose(3);
  const event = JSON.parse(gap.line());
  expect(Schema.Errors(schema, event)).toEqual([true, []]);
  expect([event.event, event.lost, event.since <= event.time]).toEqual(['proofgate.audit_gap', 5, true]);
  gap.markReported();
  expect([gap.line(), gap.lost]).toEqual(['', 0]);
  for (const other of [{}, { ...event, lost: 0 }, { ...event, event: 'proofgate.decision' }]) {
    expect(Schema.Check(schema, other)).toBe(false);
  }
});

afterEach(() => {
  jest.useRealTimers();
});

it('begins with the first lost event that no line has reported', () => {
  const gap = new AuditGap();
  const loseAt = (seconds: number) => {
    jest.setSystemTime(seconds * 1000);
    gap.lose(1);
    const { since, time } = JSON.parse(gap.line());
    return [Date.parse(since) / 1000, Date.parse(time) / 1000];
  };
  jest.useFakeTimers();
  expect([loseAt(10), loseAt(20)]).toEqual([
    [10, 10],
    [10, 20],
  ]);
  gap.markReported();
  expect(loseAt(30)).toEqual([30, 30]);
});

it('counts again what a lost batch had reported', () => {
  const line = `${JSON.stringify(numberedEvent(0))}\n`.length;
  const queue = new LineQueue({ maxBytes: 2 * line, batchBytes: line });
  expect([0, 1, 2, 3].map((number) => queue.add(numberedEvent(number)))).toEqual([true, true, false, false]);
  queue.removeFirst();
  queue.removeFirst();
  expect(queue.add(numberedEvent(4))).toBe(true);
  expect(readTrail(queue.first()?.bytes.toString() ?? '').gaps).toEqual([2]);
  queue.loseFirst();
  queue.loseFirst();
  expect(queue.queuedBytes).toBe(0);
  expect(queue.add(numberedEvent(5))).toBe(true);
  expect(readTrail(queue.first()?.bytes.toString() ?? '').gaps).toEqual([3]);
});
