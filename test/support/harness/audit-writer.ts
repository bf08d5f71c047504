/** A process that records audit events on its standard output and reports the results on standard error, as JSON. */
import { writeSync } from 'node:fs';
import { createJsonLinesSink } from '../../../src/verifier/audit/json-lines.ts';
import type { AuditMode } from '../../../src/verifier/audit/sink.ts';
import { scriptSettings } from './run-typescript.ts';

export interface AuditWriterSettings {
  readonly mode: AuditMode;
  readonly events: number;
}

export interface AuditWriterReport {
  /** Number of events that `record` accepted. */
  readonly recorded: number;
  readonly written: number;
  readonly dropped: number;
  readonly codes: readonly string[];
}

const { events, mode } = scriptSettings<AuditWriterSettings>();
let written = 0;
let dropped = 0;
const codes = new Set<string>();
const sink = createJsonLinesSink({
  destination: '-',
  mode,
  observer: {
    written: (count) => {
      written += count;
    },
    dropped: (count) => {
      dropped += count;
    },
    failed: (code) => void codes.add(code),
  },
});
let recorded = 0;
for (let number = 0; number < events; number += 1) {
  const isRecorded = sink.record({
    event: 'proofgate.decision',
    time: '2026-11-21T04:00:00.000Z',
    decision_id: String(number),
    outcome: 'allowed',
    method: 'GET',
    caller_verified: true,
    duration_us: 1,
  });
  if (isRecorded) recorded += 1;
}
await sink.close();
const report: AuditWriterReport = { recorded, written, dropped, codes: [...codes] };
writeSync(2, JSON.stringify(report));
