/**
 * The check `audit` of every program with a trail, which openAudit and auditCheck give to verifier, proxy, middleware and
 * broker: with real faults, it fails while every request is refused, and recovers without a request.
 */
import { execFileSync } from 'node:child_process';
import { closeSync, constants, openSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, describe, expect, it } from '@jest/globals';
import pino from 'pino';
import { Registry } from 'prom-client';
import { type OpenAudit, openAudit } from '../../../src/verifier/assembly/open-audit.ts';
import { auditCheck } from '../../../src/verifier/assembly/verifier-readiness.ts';
import type { AuditMode } from '../../../src/verifier/audit/sink.ts';
import { mountSmallDisk } from '../../support/harness/small-disk.ts';
import { waitFor } from '../../support/wait.ts';
import { numberedEvent, TrailFolder } from '../audit/trail.ts';

const folder = new TrailFolder();
const disk = mountSmallDisk(64, 'readiness on a full disk');
afterAll(() => {
  folder.remove();
  disk?.remove();
});

function open(file: string, mode: AuditMode, isShared: boolean): Promise<OpenAudit> {
  const setup = { mode, file, collector: undefined, maxQueueBytes: 70_000 };
  return openAudit(setup, isShared, pino({ level: 'silent' }), { registry: new Registry() });
}

interface Fault {
  readonly file: string;
  begin(): void;
  end(): void;
  close(): void;
}

function fifoWithoutReader(): Fault {
  const file = folder.newPath();
  execFileSync('mkfifo', [file]);
  let reader: number | undefined;
  const leave = () => {
    if (reader !== undefined) closeSync(reader);
    reader = undefined;
  };
  return {
    file,
    begin: leave,
    end() {
      reader = openSync(file, constants.O_RDONLY | constants.O_NONBLOCK);
    },
    close: leave,
  };
}

function fullDisk(): Fault {
  if (disk === undefined) throw new Error('not mounted');
  const { fill, free, path } = disk;
  return { file: join(path, 'audit.jsonl'), begin: fill, end: free, close: free };
}

const FAULTS = [
  ['a FIFO without a reader', fifoWithoutReader],
  ...(disk === undefined ? [] : [['a full disk', fullDisk] as const]),
] as const;

const CASES = FAULTS.flatMap(([what, faultOf]) => [
  { what, process: 'the only process', isShared: false, faultOf },
  // A worker opens the file for reading, too, so that its FIFO always has a reader.
  ...(faultOf === fifoWithoutReader ? [] : [{ what, process: 'a worker', isShared: true, faultOf }]),
]);

describe.each(CASES)('$what, $process', ({ faultOf, isShared }) => {
  const problemOf = ({ health }: OpenAudit) => auditCheck(health()).problem;

  it('required: fails with the first refusal, and is mended without a request', async () => {
    const fault = faultOf();
    fault.begin();
    const audit = await open(fault.file, 'required', isShared);
    try {
      for (const round of [1, 2]) {
        await waitFor('a refusal', () => !audit.sink.record(numberedEvent(round)));
        expect(problemOf(audit)).toBeDefined();
        fault.end();
        await waitFor('readiness', () => problemOf(audit) === undefined);
        expect(audit.sink.record(numberedEvent(round))).toBe(true);
        fault.begin();
      }
    } finally {
      fault.end();
      await audit.sink.close();
      fault.close();
    }
  });

  it('best effort: is a warning', async () => {
    const fault = faultOf();
    fault.begin();
    const audit = await open(fault.file, 'best_effort', isShared);
    try {
      // The last page of a file may still have room.
      await waitFor('the warning', () => {
        audit.sink.record(numberedEvent(1));
        return auditCheck(audit.health()).warning !== undefined;
      });
      expect(problemOf(audit)).toBeUndefined();
    } finally {
      fault.end();
      await audit.sink.close();
      fault.close();
    }
  });
});

it('required: a FIFO that gets its first reader is mended before any request', async () => {
  const fault = fifoWithoutReader();
  const audit = await open(fault.file, 'required', false);
  try {
    expect(auditCheck(audit.health()).problem).toContain('enxio');
    fault.end();
    await waitFor('readiness', () => auditCheck(audit.health()).problem === undefined);
    expect(audit.sink.record(numberedEvent(1))).toBe(true);
  } finally {
    await audit.sink.close();
    fault.close();
  }
});
