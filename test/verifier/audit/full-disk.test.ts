/** Tests a disk that becomes full and is freed again: the sink reports what it did not record, and no line spoils another. */
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, describe, expect, it } from '@jest/globals';
import { createJsonLinesSink } from '../../../src/verifier/audit/json-lines.ts';
import type { AuditMode } from '../../../src/verifier/audit/sink.ts';
import { mountSmallDisk } from '../../support/harness/small-disk.ts';
import { waitUntil } from '../../support/wait.ts';
import { numberedEvent, RecordingObserver, readTrail, TrailFolder, upTo } from './trail.ts';

const disk = mountSmallDisk(64, 'an audit file on a full disk');
const folder = new TrailFolder();
afterAll(() => {
  disk?.remove();
  folder.remove();
});

const sum = (numbers: readonly number[]) => numbers.reduce((total, number) => total + number, 0);

(disk === undefined ? describe.skip : describe)('a small disk', () => {
  const path = (name: string) => join(disk?.path ?? '', name);

  function open(name: string, mode: AuditMode) {
    const observer = new RecordingObserver();
    const file = path(name);
    const sink = createJsonLinesSink({ destination: file, mode, observer, maxQueueBytes: 70_000 });
    return { observer, file, sink };
  }

  it('required: refuses when it is full, and what it took is there', async () => {
    const { file, observer, sink } = open('required', 'required');
    const taken = upTo(2000).filter((number) => sink.record(numberedEvent(number)));
    expect(taken.length).toBeGreaterThan(100);
    expect(taken.length).toBeLessThan(1000);
    expect(observer).toMatchObject({ writtenEvents: taken.length, droppedEvents: 2000 - taken.length });
    // The file system has whole pages, so the last line may not fit as a whole.
    const written = readTrail(`${readFileSync(file, 'utf8')}\n`.replace('\n\n', '\n'));
    expect(written.ids).toEqual(taken);
    disk?.fill();
    expect(sink.record(numberedEvent(2000))).toBe(false);
    writeFileSync(file, '');
    await waitUntil(() => readFileSync(file, 'utf8').length > 0);
    expect(sink.record(numberedEvent(2001))).toBe(true);
    await sink.close();
    const after = readTrail(readFileSync(file, 'utf8'));
    expect([after.ids, after.gaps, sum(after.gaps)]).toEqual([
      [2001],
      [2001 - taken.length],
      2001 - taken.length,
    ]);
    writeFileSync(file, '');
    disk?.free();
  });

  it('required: goes on by itself when there is room, and ends the line that was cut', async () => {
    const { file, sink } = open('cut', 'required');
    const first = upTo(5000).findIndex((number) => !sink.record(numberedEvent(number, 'x'.repeat(777))));
    expect(first).toBeGreaterThan(10);
    const cut = readFileSync(file, 'utf8');
    expect(cut.endsWith('\n')).toBe(false);
    // As copytruncate does, but for the cut end.
    writeFileSync(file, cut.slice(cut.lastIndexOf('\n') + 1));
    expect(sink.record(numberedEvent(5000))).toBe(true);
    await sink.close();
    const { gaps, ids, torn } = readTrail(readFileSync(file, 'utf8'));
    expect([ids, gaps, torn.length]).toEqual([[5000], [1], 1]);
    writeFileSync(file, '');
  });

  it('best effort: keeps what it can, tells what it could not, and loses nothing of the rest', async () => {
    const { file, observer, sink } = open('best', 'best_effort');
    const kept = upTo(3000).filter((number) => sink.record(numberedEvent(number)));
    await waitUntil(() => observer.codes.includes('enospc'));
    expect(observer.droppedEvents).toBe(3000 - kept.length);
    expect(observer.droppedEvents).toBeGreaterThan(0);
    // What was written moves elsewhere, cut end and all, as with a rotation to another disk.
    const before = readFileSync(file, 'utf8');
    writeFileSync(file, '');
    await waitUntil(() => sink.queuedBytes === 0);
    expect(sink.record(numberedEvent(3000))).toBe(true);
    await sink.close();
    const { gaps, ids } = readTrail(
      before.slice(0, before.lastIndexOf('\n') + 1) + readFileSync(file, 'utf8'),
    );
    expect(ids).toEqual([...kept, 3000]);
    expect(sum(gaps)).toBe(observer.droppedEvents);
    writeFileSync(file, '');
  });
});

it('a successor begins on a line of its own', async () => {
  for (const mode of ['required', 'best_effort'] as const) {
    const file = folder.newPath();
    writeFileSync(file, '{"event":"proofgate.dec');
    const sink = createJsonLinesSink({ destination: file, mode, observer: new RecordingObserver() });
    sink.record(numberedEvent(1));
    await sink.close();
    expect(readTrail(readFileSync(file, 'utf8'))).toMatchObject({
      ids: [1],
      torn: ['{"event":"proofgate.dec'],
    });
  }
});
