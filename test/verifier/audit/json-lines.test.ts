/** Events as JSON lines: nothing is lost without being counted, and nobody else may read them. */
import { execFileSync } from 'node:child_process';
import {
  closeSync,
  constants,
  mkdtempSync,
  openSync,
  readFileSync,
  readSync,
  rmSync,
  statSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { afterAll, describe, expect, it } from '@jest/globals';
import type { DecisionEvent } from '../../../src/telemetry/decision-event.ts';
import { createJsonLinesSink } from '../../../src/verifier/audit/json-lines.ts';
import type { AuditMode, AuditSink } from '../../../src/verifier/audit/sink.ts';
import { signRequest } from '../../fakes/signed-request.ts';
import { compileSite, newSiteKeys, siteContent } from '../../fakes/snapshot.ts';
import { checkNow, createTestVerifier, outcomeOf } from '../../fakes/test-verifier.ts';

const folder = mkdtempSync(path.join(tmpdir(), 'proofgate-audit-'));
afterAll(() => rmSync(folder, { recursive: true }));

let files = 0;
function newPath(): string {
  files += 1;
  return path.join(folder, `audit-${files}.jsonl`);
}

interface OpenSink {
  readonly sink: AuditSink;
  readonly dropped: () => number;
}

function open(destination: string, mode: AuditMode): OpenSink {
  let dropped = 0;
  const onDropped = () => {
    dropped += 1;
  };
  return { sink: createJsonLinesSink({ destination, mode, onDropped }), dropped: () => dropped };
}

function event(number: number, subject = 'client:billing'): DecisionEvent {
  return {
    event: 'proofgate.decision',
    time: '2026-11-21T04:00:00.000Z',
    decision_id: String(number),
    outcome: 'allowed',
    method: 'GET',
    subject,
    caller_verified: true,
    duration_us: 1,
  };
}

function idsIn(text: string): readonly number[] {
  expect(text.endsWith('\n') || text === '').toBe(true);
  const lines = text.split('\n').slice(0, -1);
  return lines.map((line) => Number((JSON.parse(line) as DecisionEvent).decision_id));
}

const idsOf = (file: string) => idsIn(readFileSync(file, 'utf8'));
const modeOf = (file: string) => statSync(file).mode & 0o777;
const upTo = (count: number) => Array.from({ length: count }, (_, number) => number);

async function until(condition: () => boolean): Promise<void> {
  while (!condition()) await delay(5);
}

describe.each<AuditMode>(['required', 'best_effort'])('%s', (mode) => {
  it('writes every event in order, for its owner alone', async () => {
    const file = newPath();
    const { dropped, sink } = open(file, mode);
    for (const number of upTo(5000)) expect(sink.record(event(number))).toBe(true);
    await sink.close();
    expect(idsOf(file)).toEqual(upTo(5000));
    expect(modeOf(file)).toBe(0o600);
    expect(dropped()).toBe(0);
  });

  it('goes on where the file ends', async () => {
    const file = newPath();
    for (const number of upTo(3)) {
      const { sink } = open(file, mode);
      sink.record(event(number));
      await sink.close();
    }
    expect(idsOf(file)).toEqual([0, 1, 2]);
    expect(modeOf(file)).toBe(0o600);
  });

  it.each([folder, path.join(folder, 'missing', 'audit.jsonl')])('does not begin with %s', (destination) => {
    expect(() => open(destination, mode)).toThrow();
  });

  it('drops what comes after the end, and writes it into no other file', async () => {
    const { dropped, sink } = open(newPath(), mode);
    await sink.close();
    await sink.close();
    const other = newPath();
    const descriptors = upTo(8).map(() => openSync(other, 'a'));
    expect(sink.record(event(1))).toBe(false);
    expect(dropped()).toBe(1);
    descriptors.forEach(closeSync);
    expect(readFileSync(other, 'utf8')).toBe('');
  });

  it('ends when nothing can be written', async () => {
    const { sink } = open('/dev/full', mode);
    sink.record(event(1));
    await sink.close();
  });
});

describe('required', () => {
  it('has written the event when it says so', async () => {
    const file = newPath();
    const { sink } = open(file, 'required');
    for (const number of upTo(3)) {
      expect(sink.record(event(number))).toBe(true);
      expect(idsOf(file)).toEqual(upTo(number + 1));
    }
    await sink.close();
  });

  it('says no, and counts, when it cannot', async () => {
    const { dropped, sink } = open('/dev/full', 'required');
    expect([sink.record(event(1)), sink.record(event(2))]).toEqual([false, false]);
    expect(dropped()).toBe(2);
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
    const file = newPath();
    const { sink } = open(file, 'best_effort');
    sink.record(event(0));
    await until(() => readFileSync(file, 'utf8') !== '');
    expect(idsOf(file)).toEqual([0]);
    await sink.close();
  });

  it('says no while the destination takes nothing', async () => {
    const { sink } = open('/dev/full', 'best_effort');
    await until(() => !sink.record(event(1)));
    await sink.close();
  });

  it('holds so much, and counts every event beyond that', async () => {
    const pipe = newPath();
    execFileSync('mkfifo', [pipe]);
    const reader = openSync(pipe, constants.O_RDONLY | constants.O_NONBLOCK);
    const { dropped, sink } = open(pipe, 'best_effort');
    const count = 24_000;
    const subject = 'x'.repeat(1000);
    for (const number of upTo(count)) sink.record(event(number, subject));
    expect(dropped()).toBeGreaterThan(0);
    expect(dropped()).toBeLessThan(count);
    const closed = sink.close();
    const text = await readToEnd(reader);
    await closed;
    closeSync(reader);
    const ids = idsIn(text);
    expect(ids.length + dropped()).toBe(count);
    expect(new Set(ids).size).toBe(ids.length);
  });
});

/** Reads a pipe until its writer has gone. */
async function readToEnd(descriptor: number): Promise<string> {
  const parts: Buffer[] = [];
  for (;;) {
    const part = Buffer.alloc(1 << 16);
    const length = readAvailable(descriptor, part);
    if (length === 0) return Buffer.concat(parts).toString();
    if (length === undefined) await delay(1);
    else parts.push(part.subarray(0, length));
  }
}

/** undefined: nothing yet */
function readAvailable(descriptor: number, part: Buffer): number | undefined {
  try {
    return readSync(descriptor, part);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'EAGAIN') return undefined;
    throw error;
  }
}
