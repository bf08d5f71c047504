/** Tests standard output as supervisors provide it: a pipe, a socket, a file. A reader that stalls does not block the process. */
import { execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import { closeSync, constants, openSync, readFileSync, readSync } from 'node:fs';
import { connect, createServer, type Socket } from 'node:net';
import type { Readable } from 'node:stream';
import { afterAll, describe, expect, it } from '@jest/globals';
import type { AuditMode } from '../../../src/verifier/audit/sink.ts';
import type { AuditWriterReport, AuditWriterSettings } from '../../support/harness/audit-writer.ts';
import { typescriptArguments } from '../../support/harness/run-typescript.ts';
import { readTrail, TrailFolder, upTo } from './trail.ts';

const folder = new TrailFolder();
afterAll(() => folder.remove());

const EVENTS = 5000;
const PROCESS_TIMEOUT_MS = 60_000;

interface Ended {
  readonly report: AuditWriterReport;
  /** The output for a reader that comes after its end. */
  readonly text: string;
}

function start(mode: AuditMode, stdout: Socket | number) {
  const settings: AuditWriterSettings = { mode, events: EVENTS };
  return spawn(process.execPath, [...typescriptArguments('./audit-writer.ts')], {
    stdio: ['ignore', stdout, 'pipe'],
    env: { ...process.env, PROOFGATE_TEST_SETTINGS: JSON.stringify(settings) },
    timeout: PROCESS_TIMEOUT_MS,
  });
}

async function textOf(stream: Readable): Promise<string> {
  const parts: Buffer[] = [];
  for await (const part of stream) parts.push(part);
  return Buffer.concat(parts).toString('utf8');
}

async function reportOf(child: ReturnType<typeof start>): Promise<AuditWriterReport> {
  if (child.stderr === null) throw new Error('no standard error');
  const [text] = await Promise.all([textOf(child.stderr), once(child, 'exit')]);
  return JSON.parse(text);
}

const KINDS: { readonly [kind: string]: (mode: AuditMode) => Promise<Ended> } = {
  'a socket': async (mode) => {
    const path = folder.newPath();
    const server = createServer({ pauseOnConnect: true }).listen(path);
    await once(server, 'listening');
    // Paused, or it would read ahead as much as its own buffer holds.
    const reader = connect(path).pause();
    const [writer]: Socket[] = await once(server, 'connection');
    if (writer === undefined) throw new Error('no connection');
    const report = await reportOf(start(mode, writer));
    writer.destroy();
    const text = await textOf(reader);
    server.close();
    return { report, text };
  },
  'a pipe': async (mode) => {
    const path = folder.newPath();
    execFileSync('mkfifo', [path]);
    const reader = openSync(path, constants.O_RDONLY | constants.O_NONBLOCK);
    const writer = openSync(path, constants.O_WRONLY);
    const report = await reportOf(start(mode, writer));
    closeSync(writer);
    const text = readToEnd(reader);
    closeSync(reader);
    return { report, text };
  },
};

function readToEnd(descriptor: number): string {
  const parts: Buffer[] = [];
  for (;;) {
    const part = Buffer.alloc(1 << 16);
    const length = readSync(descriptor, part);
    if (length === 0) return Buffer.concat(parts).toString('utf8');
    parts.push(part.subarray(0, length));
  }
}

describe.each(Object.entries(KINDS))('%s without a reader', (_kind, run) => {
  it('required: refuses, and what was recorded is there', async () => {
    const { report, text } = await run('required');
    expect(report.codes).toEqual(['eagain']);
    expect(report.recorded).toBeGreaterThan(50);
    expect(report).toMatchObject({ written: report.recorded, dropped: EVENTS - report.recorded });
    const whole = text.slice(0, text.lastIndexOf('\n') + 1);
    expect(readTrail(whole).ids).toEqual(upTo(report.recorded));
  });

  it('best effort: ends within its bound, and counts what that costs', async () => {
    const { report, text } = await run('best_effort');
    expect(report.codes).toEqual(['eagain']);
    expect(report).toMatchObject({ recorded: EVENTS, dropped: EVENTS - report.written });
    expect(report.written).toBeGreaterThan(50);
    const { ids } = readTrail(text.slice(0, text.lastIndexOf('\n') + 1));
    expect(ids).toEqual(upTo(ids.length));
    expect(ids.length).toBeGreaterThanOrEqual(report.written);
  });
});

it.each<AuditMode>(['required', 'best_effort'])('%s: a file takes everything', async (mode) => {
  const path = folder.newPath();
  const descriptor = openSync(path, 'a');
  const report = await reportOf(start(mode, descriptor));
  closeSync(descriptor);
  expect(report).toEqual({ recorded: EVENTS, written: EVENTS, dropped: 0, codes: [] });
  expect(readTrail(readFileSync(path, 'utf8')).ids).toEqual(upTo(EVENTS));
});
