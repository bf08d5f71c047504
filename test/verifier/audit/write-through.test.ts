/**
 * Tests `--audit required`, call by call: what the sink records, what it reports about lost events, and when it looks for the
 * file.
 */
import { openSync, readFileSync } from 'node:fs';
import { afterAll, afterEach, describe, expect, it } from '@jest/globals';
import { WriteThroughSink } from '../../../src/verifier/audit/write-through.ts';
import { waitUntil } from '../../support/wait.ts';
import { ScriptedDestination, withFullDevice } from './scripted-destination.ts';
import { numberedEvent, RecordingObserver, readTrail, TrailFolder } from './trail.ts';

const SELDOM_MS = 3_600_000;

const folder = new TrailFolder();
afterAll(() => folder.remove());

let closes: (() => Promise<void>)[] = [];
afterEach(async () => {
  for (const close of closes) await close();
  closes = [];
});

function openFile() {
  const path = folder.newPath();
  return { descriptor: openSync(path, 'a'), trail: () => readTrail(readFileSync(path, 'utf8')), path };
}

function open(destination: ScriptedDestination, lookIntervalMs = SELDOM_MS) {
  const observer = new RecordingObserver();
  const sink = new WriteThroughSink(destination, observer, lookIntervalMs);
  closes.push(() => sink.close());
  return { observer, sink };
}

describe('a file that is there', () => {
  it('is written to before the answer, and not looked for', () => {
    const file = openFile();
    const destination = new ScriptedDestination(file.descriptor);
    const { observer, sink } = open(destination);
    expect([sink.record(numberedEvent(1)), sink.record(numberedEvent(2))]).toEqual([true, true]);
    expect(file.trail()).toEqual({ ids: [1, 2], gaps: [], torn: [] });
    expect([destination.followed, observer.writtenEvents, observer.codes]).toEqual([[], 2, []]);
  });

  it('is checked now and then, and nothing is reported when nothing is missing', async () => {
    const file = openFile();
    const destination = new ScriptedDestination(file.descriptor);
    const { observer } = open(destination, 2);
    await waitUntil(() => destination.followed.length >= 3);
    expect(new Set(destination.followed)).toEqual(new Set([false]));
    expect([observer.codes, observer.writtenEvents, readFileSync(file.path, 'utf8')]).toEqual([[], 0, '']);
  });

  it('is opened anew when that is asked for', () => {
    const [old, other] = [openFile(), openFile()];
    const destination = new ScriptedDestination(old.descriptor);
    const { sink } = open(destination);
    sink.record(numberedEvent(1));
    destination.next = other.descriptor;
    sink.reopen();
    sink.record(numberedEvent(2));
    expect([old.trail().ids, other.trail().ids, destination.followed]).toEqual([[1], [2], [true]]);
  });

  it('that is torn has its last line ended first, once', () => {
    const file = openFile();
    const destination = new ScriptedDestination(file.descriptor);
    destination.isTorn = true;
    const { sink } = open(destination);
    sink.record(numberedEvent(1));
    sink.record(numberedEvent(2));
    expect([file.trail(), destination.isTorn]).toEqual([{ ids: [1, 2], gaps: [], torn: [''] }, false]);
  });
});

describe('a file that is not there', () => {
  it('is checked at the start, and its absence is reported with the reason', () => {
    const destination = new ScriptedDestination();
    destination.failure = 'eacces';
    const { observer } = open(destination);
    expect([destination.followed, observer.codes]).toEqual([[false], ['eacces']]);
  });

  it('is reported as written again once, when it comes back before an event is lost', () => {
    const destination = new ScriptedDestination(openFile().descriptor);
    const { observer, sink } = open(destination);
    const written: number[] = [];
    observer.written = (events) => written.push(events);
    for (const failure of [undefined, 'eacces', undefined, undefined]) {
      destination.failure = failure;
      sink.reopen();
    }
    expect([observer.codes, written]).toEqual([['eacces'], [0]]);
  });

  it('records nothing, and the gap is reported by itself once it comes back', async () => {
    const file = openFile();
    const destination = new ScriptedDestination();
    const { observer, sink } = open(destination, 2);
    expect([sink.record(numberedEvent(1)), sink.record(numberedEvent(2))]).toEqual([false, false]);
    expect([observer.droppedEvents, new Set(observer.codes)]).toEqual([2, new Set(['enxio'])]);
    destination.next = file.descriptor;
    await waitUntil(() => readFileSync(file.path, 'utf8') !== '');
    expect(file.trail()).toEqual({ ids: [], gaps: [2], torn: [] });
    expect([sink.record(numberedEvent(3)), file.trail()]).toEqual([true, { ids: [3], gaps: [2], torn: [] }]);
  });
});

describe('a file that takes nothing', () => {
  it('records nothing, and the gap is reported in front of the next event', () => {
    const file = openFile();
    const destination = new ScriptedDestination();
    const { observer, sink } = open(destination);
    observer.codes.splice(0);
    withFullDevice((descriptor) => {
      destination.descriptor = descriptor;
      expect(sink.record(numberedEvent(1))).toBe(false);
    });
    expect(observer.codes).toEqual(['enospc']);
    destination.descriptor = file.descriptor;
    expect(sink.record(numberedEvent(2))).toBe(true);
    expect(file.trail()).toEqual({ ids: [2], gaps: [1], torn: [] });
    expect([observer.writtenEvents, observer.droppedEvents, destination.isTorn]).toEqual([1, 1, false]);
  });
});

describe('the end', () => {
  it('tells what is missing, closes once, and records nothing after', async () => {
    const file = openFile();
    const destination = new ScriptedDestination();
    const { observer, sink } = open(destination);
    sink.record(numberedEvent(1));
    destination.descriptor = file.descriptor;
    await Promise.all([sink.close(), sink.close()]);
    expect([file.trail(), destination.closed]).toEqual([{ ids: [], gaps: [1], torn: [] }, 1]);
    const { followed } = destination;
    const before = followed.length;
    sink.reopen();
    expect([sink.record(numberedEvent(2)), file.trail().ids]).toEqual([false, []]);
    expect([followed.length, observer.droppedEvents]).toEqual([before, 2]);
  });

  it('writes nothing where nothing is missing', async () => {
    const file = openFile();
    const { observer, sink } = open(new ScriptedDestination(file.descriptor));
    sink.record(numberedEvent(1));
    await sink.close();
    expect([file.trail(), observer.writtenEvents]).toEqual([{ ids: [1], gaps: [], torn: [] }, 1]);
  });
});
