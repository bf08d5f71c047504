/** Files that are renamed, removed or replaced under way: no line is lost, none is torn, and the new file is private. */
import {
  appendFileSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  truncateSync,
} from 'node:fs';
import { join } from 'node:path';
import { setImmediate as nextTurn } from 'node:timers/promises';
import { afterAll, describe, expect, it } from '@jest/globals';
import { createJsonLinesSink } from '../../../src/verifier/audit/json-lines.ts';
import type { AuditMode } from '../../../src/verifier/audit/sink.ts';
import { waitUntil } from '../../support/wait.ts';
import {
  idsOf,
  idsOfShared,
  numberedEvent,
  RecordingObserver,
  TrailFolder,
  upTo,
  wholeIds,
} from './trail.ts';

const folder = new TrailFolder();
afterAll(() => folder.remove());

function open(destination: string, mode: AuditMode) {
  const observer = new RecordingObserver();
  return { observer, sink: createJsonLinesSink({ destination, mode, observer }) };
}

/** A new folder, whose files all belong to one trail. */
function newTrail(): { readonly directory: string; readonly file: string } {
  const directory = `${folder.newPath()}.d`;
  mkdirSync(directory);
  return { directory, file: join(directory, 'audit.jsonl') };
}

const isThere = (file: string) => statSync(file, { throwIfNoEntry: false }) !== undefined;

describe.each<AuditMode>(['required', 'best_effort'])('%s', (mode) => {
  it('renamed and reopened again and again, in the middle of writing', async () => {
    const { directory, file } = newTrail();
    const { observer, sink } = open(file, mode);
    const count = 30_000;
    for (const number of upTo(count)) {
      expect(sink.record(numberedEvent(number))).toBe(true);
      if (number % 1000 !== 999) continue;
      await nextTurn();
      if (isThere(file)) renameSync(file, `${file}.${number}`);
      sink.reopen();
      if (number % 3000 === 2999) await waitUntil(() => isThere(file));
    }
    await sink.close();
    const names = readdirSync(directory);
    expect(names.length).toBeGreaterThan(10);
    const ids = names.flatMap((name) => idsOf(join(directory, name)));
    expect(ids.sort((a, b) => a - b)).toEqual(upTo(count));
    expect(names.map((name) => statSync(join(directory, name)).mode & 0o777)).toEqual(names.map(() => 0o600));
    expect(observer).toMatchObject({ writtenEvents: count, droppedEvents: 0, codes: [] });
  });

  it.each<[string, (file: string) => void]>([
    ['renamed', (file) => renameSync(file, `${file}.1`)],
    ['removed', (file) => rmSync(file)],
    [
      'replaced',
      (file) => {
        renameSync(file, `${file}.1`);
        appendFileSync(file, '');
      },
    ],
  ])('%s, without a signal', async (_what, move) => {
    const { file } = newTrail();
    const { sink } = open(file, mode);
    sink.record(numberedEvent(0));
    await waitUntil(() => isThere(file) && readFileSync(file, 'utf8') !== '');
    move(file);
    let number = 1;
    await waitUntil(() => {
      sink.record(numberedEvent(number++));
      return isThere(file) && readFileSync(file, 'utf8') !== '';
    });
    await sink.close();
    const after = idsOf(file);
    expect(after).toEqual(upTo(number).slice(-after.length));
    if (isThere(`${file}.1`)) expect([...idsOf(`${file}.1`), ...after]).toEqual(upTo(number));
  });

  it('what cannot be opened leaves the old file in use, and is reported', async () => {
    const { directory, file } = newTrail();
    const { observer, sink } = open(file, mode);
    sink.record(numberedEvent(0));
    await waitUntil(() => observer.writtenEvents === 1);
    renameSync(directory, `${directory}.moved`);
    sink.reopen();
    expect(observer.codes).toEqual(['enoent']);
    expect(sink.record(numberedEvent(1))).toBe(true);
    await sink.close();
    expect(idsOf(join(`${directory}.moved`, 'audit.jsonl'))).toEqual([0, 1]);
  });

  it('of two writers, as workers are', async () => {
    const { directory, file } = newTrail();
    const writers = [open(file, mode), open(file, mode)];
    const count = 5000;
    for (const number of upTo(count)) {
      for (const { sink } of writers) {
        expect(sink.record(numberedEvent(number, 'x'.repeat(number % 500)))).toBe(true);
      }
      if (number % 500 !== 499) continue;
      await nextTurn();
      if (isThere(file)) renameSync(file, `${file}.${number}`);
      // The writers notice one after the other.
      for (const { sink } of writers) {
        sink.reopen();
        await nextTurn();
      }
      if (number % 1000 === 999) await waitUntil(() => isThere(file));
    }
    for (const { sink } of writers) await sink.close();
    const names = readdirSync(directory);
    expect(names.length).toBeGreaterThan(4);
    const ids = names.flatMap((name) => idsOfShared(join(directory, name)));
    expect(ids.sort((a, b) => a - b)).toEqual(upTo(2 * count).map((at) => Math.floor(at / 2)));
  });

  it('cut, as copytruncate does', async () => {
    const { file } = newTrail();
    const { observer, sink } = open(file, mode);
    for (const number of upTo(10)) sink.record(numberedEvent(number));
    await waitUntil(() => observer.writtenEvents === 10);
    const copy = readFileSync(file, 'utf8');
    truncateSync(file);
    sink.record(numberedEvent(10));
    await sink.close();
    expect([...wholeIds(copy), ...idsOf(file)]).toEqual(upTo(11));
  });
});

it('required: a file that is gone for good records nothing', async () => {
  const { directory, file } = newTrail();
  const { observer, sink } = open(file, 'required');
  expect(sink.record(numberedEvent(0))).toBe(true);
  rmSync(directory, { recursive: true });
  await waitUntil(() => observer.codes.includes('enoent'));
  expect(sink.record(numberedEvent(1))).toBe(false);
  mkdirSync(directory);
  await waitUntil(() => sink.record(numberedEvent(2)));
  await sink.close();
  expect(readFileSync(file, 'utf8')).toContain('"decision_id":"2"');
});
