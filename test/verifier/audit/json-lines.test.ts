/** Tests events as JSON lines: every lost event is counted, and only the owner can read the file. */
import { closeSync, openSync, readFileSync, statSync } from 'node:fs';
import path from 'node:path';
import { afterAll, describe, expect, it } from '@jest/globals';
import { createJsonLinesSink } from '../../../src/verifier/audit/json-lines.ts';
import type { AuditMode, OperatedAuditSink } from '../../../src/verifier/audit/sink.ts';
import { signRequest } from '../../support/fixtures/signed-request.ts';
import { compileSite, newSiteKeys, siteContent } from '../../support/fixtures/snapshot.ts';
import { checkNow, createTestVerifier, outcomeOf } from '../../support/fixtures/test-verifier.ts';
import { waitUntil } from '../../support/wait.ts';
import { idsOf, numberedEvent, RecordingObserver, TrailFolder, upTo } from './trail.ts';

const folder = new TrailFolder();
afterAll(() => folder.remove());

interface OpenSink {
  readonly sink: OperatedAuditSink;
  readonly observer: RecordingObserver;
}

function open(destination: string, mode: AuditMode): OpenSink {
  const observer = new RecordingObserver();
  return { sink: createJsonLinesSink({ destination, mode, observer }), observer };
}

const modeOf = (file: string) => statSync(file).mode & 0o777;

describe.each<AuditMode>(['required', 'best_effort'])('%s', (mode) => {
  it('writes every event in order, for its owner alone', async () => {
    const file = folder.newPath();
    const { observer, sink } = open(file, mode);
    for (const number of upTo(5000)) expect(sink.record(numberedEvent(number))).toBe(true);
    await sink.close();
    expect(idsOf(file)).toEqual(upTo(5000));
    expect(modeOf(file)).toBe(0o600);
    expect(observer).toMatchObject({ writtenEvents: 5000, droppedEvents: 0, codes: [] });
    expect(sink.queuedBytes).toBe(0);
  });

  it('goes on where the file ends', async () => {
    const file = folder.newPath();
    for (const number of upTo(3)) {
      const { sink } = open(file, mode);
      sink.record(numberedEvent(number));
      await sink.close();
    }
    expect(idsOf(file)).toEqual([0, 1, 2]);
    expect(modeOf(file)).toBe(0o600);
  });

  it.each([
    ['a folder', '.'],
    ['a file in a folder that is missing', 'missing/audit.jsonl'],
  ])('does not begin with %s', (_what, name) => {
    expect(() => open(path.resolve(folder.newPath(), '..', name), mode)).toThrow();
  });

  it('drops what comes after the end, and writes it into no other file', async () => {
    const { observer, sink } = open(folder.newPath(), mode);
    await sink.close();
    await sink.close();
    const other = folder.newPath();
    const descriptors = upTo(8).map(() => openSync(other, 'a'));
    expect(sink.record(numberedEvent(1))).toBe(false);
    sink.reopen();
    expect(observer.droppedEvents).toBe(1);
    descriptors.forEach(closeSync);
    expect(readFileSync(other, 'utf8')).toBe('');
  });

  it('ends when nothing can be written, and counts what that costs', async () => {
    const { observer, sink } = open('/dev/full', mode);
    sink.record(numberedEvent(1));
    await sink.close();
    expect(observer).toMatchObject({ writtenEvents: 0, droppedEvents: 1 });
    expect(new Set(observer.codes)).toEqual(new Set(['enospc']));
  });
});

describe('required', () => {
  it('has written the event when it says so', async () => {
    const file = folder.newPath();
    const { sink } = open(file, 'required');
    for (const number of upTo(3)) {
      expect(sink.record(numberedEvent(number))).toBe(true);
      expect(idsOf(file)).toEqual(upTo(number + 1));
    }
    await sink.close();
  });

  it('says no, and counts, when it cannot', async () => {
    const { observer, sink } = open('/dev/full', 'required');
    expect([sink.record(numberedEvent(1)), sink.record(numberedEvent(2))]).toEqual([false, false]);
    expect(observer.droppedEvents).toBe(2);
    await sink.close();
  });

  it('refuses requests that cannot be recorded', async () => {
    const keys = newSiteKeys();
    const { sink } = open('/dev/full', 'required');
    const snapshot = await compileSite(siteContent(keys));
    const { verifier } = createTestVerifier({ snapshot, auditSink: sink, auditMode: 'required' });
    const { facts } = signRequest(keys, { caller: 'billing', route: 'orders-read' });
    expect(outcomeOf(checkNow(verifier, facts))).toBe('verifier_unavailable/audit 503');
    await sink.close();
  });
});

describe('best_effort', () => {
  it('writes within a moment, without being asked', async () => {
    const file = folder.newPath();
    const { sink } = open(file, 'best_effort');
    sink.record(numberedEvent(0));
    await waitUntil(() => readFileSync(file, 'utf8') !== '');
    expect(idsOf(file)).toEqual([0]);
    await sink.close();
  });

  it('tells what is wrong while the destination takes nothing', async () => {
    const { observer, sink } = open('/dev/full', 'best_effort');
    sink.record(numberedEvent(1));
    await waitUntil(() => observer.codes.length > 1);
    expect(observer).toMatchObject({ writtenEvents: 0, droppedEvents: 0 });
    expect(sink.queuedBytes).toBeGreaterThan(0);
    await sink.close();
  });
});
