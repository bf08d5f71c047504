/** Tests readers of a pipe that are absent, slow, leave and return: the verifier never waits for them. */
import { closeSync } from 'node:fs';
import { afterAll, describe, expect, it } from '@jest/globals';
import { createJsonLinesSink } from '../../../src/verifier/audit/json-lines.ts';
import type { AuditMode } from '../../../src/verifier/audit/sink.ts';
import { waitUntil } from '../../support/wait.ts';
import { makeFifo, openReader, readAvailable, readToEnd } from './fifo.ts';
import { numberedEvent, RecordingObserver, readTrail, TrailFolder, upTo, wholeIds } from './trail.ts';

const folder = new TrailFolder();
afterAll(() => folder.remove());

const newFifo = () => makeFifo(folder.newPath());

function open(destination: string, mode: AuditMode, maxQueueBytes?: number) {
  const observer = new RecordingObserver();
  const bound = maxQueueBytes === undefined ? {} : { maxQueueBytes };
  return { observer, sink: createJsonLinesSink({ destination, mode, observer, ...bound }) };
}

describe('required, into a FIFO', () => {
  it('refuses without a reader, and records as soon as there is one', async () => {
    const path = newFifo();
    const { observer, sink } = open(path, 'required');
    expect(upTo(3).map((number) => sink.record(numberedEvent(number)))).toEqual([false, false, false]);
    expect(new Set(observer.codes)).toEqual(new Set(['enxio']));
    const reader = openReader(path);
    await waitUntil(() => sink.record(numberedEvent(3)));
    const refused = observer.droppedEvents;
    const text = readAvailable(reader);
    expect(readTrail(text)).toEqual({ ids: [3], gaps: [refused], torn: [] });
    await sink.close();
    closeSync(reader);
  });

  it('refuses what a reader does not take, at once, and no line is torn', async () => {
    const path = newFifo();
    const reader = openReader(path);
    const { observer, sink } = open(path, 'required');
    const taken = upTo(2000).filter((number) => sink.record(numberedEvent(number, 'x'.repeat(number % 900))));
    expect(taken.length).toBeGreaterThan(50);
    expect(observer.droppedEvents).toBe(2000 - taken.length);
    expect(new Set(observer.codes)).toEqual(new Set(['eagain']));
    const first = readTrail(readAvailable(reader));
    // Shorter ones still fit where longer ones do not: a line tells of each gap.
    expect([first.ids, first.torn]).toEqual([taken, []]);
    expect(sink.record(numberedEvent(2000))).toBe(true);
    const second = readTrail(readAvailable(reader));
    expect(second.ids).toEqual([2000]);
    const reported = [...first.gaps, ...second.gaps].reduce((sum, lost) => sum + lost, 0);
    expect(reported).toBe(observer.droppedEvents);
    await sink.close();
    closeSync(reader);
  });

  it('outlives its reader', async () => {
    const path = newFifo();
    const first = openReader(path);
    const { observer, sink } = open(path, 'required');
    expect(sink.record(numberedEvent(0))).toBe(true);
    expect(wholeIds(readAvailable(first))).toEqual([0]);
    closeSync(first);
    expect(sink.record(numberedEvent(1))).toBe(false);
    expect(observer.codes).toEqual(['epipe']);
    const second = openReader(path);
    expect(sink.record(numberedEvent(2))).toBe(true);
    expect(readTrail(readAvailable(second))).toEqual({ ids: [2], gaps: [1], torn: [] });
    await sink.close();
    closeSync(second);
  });
});

describe('best effort, into a FIFO', () => {
  it('holds so much, counts every event beyond that, and tells where they are missing', async () => {
    const path = newFifo();
    const reader = openReader(path);
    const { observer, sink } = open(path, 'best_effort');
    const count = 24_000;
    const subject = 'x'.repeat(1000);
    const kept = upTo(count).filter((number) => sink.record(numberedEvent(number, subject)));
    expect(observer.droppedEvents).toBe(count - kept.length);
    expect(kept.length).toBeGreaterThan(10_000);
    expect(observer.droppedEvents).toBeGreaterThan(1000);
    const reading = readToEnd(reader);
    await waitUntil(() => sink.queuedBytes < 1_000_000);
    expect(sink.record(numberedEvent(count))).toBe(true);
    await sink.close();
    const { gaps, ids, torn } = readTrail(await reading);
    expect([ids, torn, gaps]).toEqual([[...kept, count], [], [observer.droppedEvents]]);
    closeSync(reader);
  });

  it('waits for a reader, and loses nothing meanwhile', async () => {
    const path = newFifo();
    const { observer, sink } = open(path, 'best_effort');
    for (const number of upTo(100)) expect(sink.record(numberedEvent(number))).toBe(true);
    await waitUntil(() => observer.codes.includes('enxio'));
    const reader = openReader(path);
    await waitUntil(() => sink.queuedBytes === 0);
    await sink.close();
    expect(wholeIds(readAvailable(reader))).toEqual(upTo(100));
    closeSync(reader);
  });

  it('ends without a reader, and counts what that costs', async () => {
    const path = newFifo();
    const reader = openReader(path);
    const { observer, sink } = open(path, 'best_effort');
    for (const number of upTo(3000)) sink.record(numberedEvent(number));
    await waitUntil(() => observer.codes.includes('eagain'));
    await sink.close();
    const { ids } = readTrail(readAvailable(reader));
    expect(ids.length).toBeGreaterThan(100);
    expect(ids).toEqual(upTo(ids.length));
    expect([observer.writtenEvents, observer.droppedEvents]).toEqual([ids.length, 3000 - ids.length]);
    closeSync(reader);
  });

  it('keeps lines of two writers apart', async () => {
    const path = newFifo();
    const reader = openReader(path);
    const writers = [open(path, 'best_effort'), open(path, 'best_effort')];
    for (const number of upTo(5000)) {
      for (const { sink } of writers) sink.record(numberedEvent(number, 'x'.repeat(number % 300)));
    }
    const reading = readToEnd(reader);
    await Promise.all(writers.map(({ sink }) => sink.close()));
    const ids = wholeIds(await reading);
    expect([...ids].sort((a, b) => a - b)).toEqual(upTo(10_000).map((at) => Math.floor(at / 2)));
    closeSync(reader);
  });
});
