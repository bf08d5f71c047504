/** Tests what an operator sees of a failing audit trail: one log line for each change, the code in its health, and the counts. */
import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, it } from '@jest/globals';
import { Registry } from 'prom-client';
import { renderMetrics } from '../../../src/process/telemetry/instruments.ts';
import { createLogger } from '../../../src/process/telemetry/logger.ts';
import { type AuditSetup, openAudit } from '../../../src/verifier/assembly/open-audit.ts';
import { type AuditCollector, startAuditCollector } from '../../support/fakes/audit-collector.ts';
import { waitUntil } from '../../support/wait.ts';
import { idsOf, numberedEvent, wholeIds } from '../audit/trail.ts';

let directory: string;
let collector: AuditCollector;
beforeEach(async () => {
  directory = await mkdtemp(join(tmpdir(), 'proofgate-open-audit-'));
  collector = await startAuditCollector();
});
afterEach(async () => {
  await collector.stop();
  await rm(directory, { recursive: true });
});

async function open(setup: Partial<AuditSetup>) {
  const logged: unknown[] = [];
  const logger = createLogger('info', {
    write(line) {
      const { level, sink, code } = JSON.parse(line);
      logged.push({ level, sink, ...(code && { code }) });
    },
  });
  const registry = new Registry();
  const { health, sink } = await openAudit(
    { mode: 'best_effort', file: undefined, collector: undefined, maxQueueBytes: 70_000, ...setup },
    false,
    logger,
    { registry },
  );
  return { sink, health, logged, metrics: () => renderMetrics(registry) };
}

const toCollector = () => ({
  url: new URL(collector.url),
  readToken: undefined,
  certificateAuthorities: undefined,
  gzip: false,
});

it('a file that cannot be written is logged once, and its code is the health', async () => {
  const { health, logged, metrics, sink } = await open({ mode: 'required', file: '/dev/full' });
  expect(health()).toEqual({ mode: 'required', recorder: undefined, collector: undefined });
  for (const number of [1, 2]) expect(sink.record(numberedEvent(number))).toBe(false);
  expect(health()).toEqual({ mode: 'required', recorder: 'enospc', collector: undefined });
  expect(logged).toEqual([{ level: 'error', sink: 'file', code: 'enospc' }]);
  expect(await metrics()).toMatch(/^proofgate_audit_dropped_total\{sink="file"\} 2$/m);
  await sink.close();
});

it('a collector that fails and works again is logged once each', async () => {
  const { health, logged, sink } = await open({ collector: toCollector() });
  collector.behave({ status: 503 });
  sink.record(numberedEvent(1));
  await waitUntil(() => collector.received.length === 2);
  expect(health()).toEqual({ mode: 'best_effort', recorder: undefined, collector: 'http_503' });
  collector.behave({ status: 204 });
  await waitUntil(() => health().collector === undefined);
  await sink.close();
  expect(logged).toEqual([
    { level: 'error', sink: 'http', code: 'http_503' },
    { level: 'info', sink: 'http' },
  ]);
  expect(wholeIds(collector.taken.map(({ text }) => text).join(''))).toEqual([1]);
});

it('a file and a collector both get each event, and a failing collector denies nothing', async () => {
  const file = join(directory, 'audit.jsonl');
  const { health, sink } = await open({ mode: 'required', file, collector: toCollector() });
  collector.behave({ status: 400 });
  expect(sink.record(numberedEvent(1))).toBe(true);
  await waitUntil(() => health().collector === 'http_400');
  expect(health().recorder).toBeUndefined();
  collector.behave({ status: 204 });
  expect(sink.record(numberedEvent(2))).toBe(true);
  await sink.close();
  expect(idsOf(file)).toEqual([1, 2]);
  expect(collector.taken.map(({ text }) => text).join('')).toContain('"decision_id":"2"');
});

it('a trail of nothing is a mistake of the program', async () => {
  await expect(open({})).rejects.toThrow();
});

it('is written to the end when it is closed', async () => {
  const file = join(directory, 'audit.jsonl');
  const { sink } = await open({ file });
  for (const number of [1, 2, 3]) sink.record(numberedEvent(number));
  await sink.close();
  expect((await readFile(file, 'utf8')).split('\n')).toHaveLength(4);
});
