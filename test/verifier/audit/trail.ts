/** Helpers of the audit sink tests: temporary files, events with a number, and what a sink reported. */
import { mkdirSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { expect } from '@jest/globals';
import type { DecisionEvent } from '../../../src/process/telemetry/decision-event.ts';
import type { AuditObserver } from '../../../src/verifier/audit/sink.ts';

export class TrailFolder {
  readonly path = mkdtempSync(path.join(tmpdir(), 'proofgate-audit-'));
  #files = 0;

  newPath(): string {
    // An earlier run of the same tests removed it.
    mkdirSync(this.path, { recursive: true });
    this.#files += 1;
    return path.join(this.path, `audit-${this.#files}.jsonl`);
  }

  remove(): void {
    rmSync(this.path, { recursive: true, force: true });
  }
}

/** Counts, and the codes of failures in order. */
export class RecordingObserver implements AuditObserver {
  writtenEvents = 0;
  droppedEvents = 0;
  readonly codes: string[] = [];

  written(events: number): void {
    this.writtenEvents += events;
  }

  dropped(events: number): void {
    this.droppedEvents += events;
  }

  failed(code: string): void {
    this.codes.push(code);
  }
}

export function numberedEvent(number: number, subject = 'client:billing'): DecisionEvent {
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

export interface Trail {
  /** Numbers of the events, in order. */
  readonly ids: readonly number[];
  /** The number of missing events in each gap line, in order. */
  readonly gaps: readonly number[];
  /** Lines that are no JSON. */
  readonly torn: readonly string[];
}

type Line = { readonly event: string; readonly decision_id?: string; readonly lost?: number };

export function readTrail(text: string): Trail {
  expect(text.endsWith('\n') || text === '').toBe(true);
  const parsed = text
    .split('\n')
    .slice(0, -1)
    .map((line) => parseLine(line) ?? line);
  const lines = parsed.filter((line) => typeof line !== 'string');
  return {
    ids: lines
      .filter(({ event }) => event === 'proofgate.decision')
      .map(({ decision_id }) => Number(decision_id)),
    gaps: lines.filter(({ event }) => event === 'proofgate.audit_gap').map(({ lost }) => lost ?? 0),
    torn: parsed.filter((line) => typeof line === 'string'),
  };
}

function parseLine(text: string): Line | undefined {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

/** Checks that every line is whole and that every missing event is reported. @returns numbers of the events */
export function wholeIds(text: string): readonly number[] {
  const { gaps, ids, torn } = readTrail(text);
  expect({ gaps, torn }).toEqual({ gaps: [], torn: [] });
  return ids;
}

export const idsOf = (file: string) => wholeIds(readFileSync(file, 'utf8'));
/** Who comes while another process is writing may take its line for a torn one, and end it: an empty line. */
export const idsOfShared = (file: string) => wholeIds(readFileSync(file, 'utf8').replaceAll(/\n{2,}/g, '\n'));
export const upTo = (count: number) => Array.from({ length: count }, (_, number) => number);
