import { expect, it } from '@jest/globals';
import { Registry } from 'prom-client';
import { createAuditMetrics } from '../../src/telemetry/audit-metrics.ts';

it('tells what became of events, by sink', async () => {
  const registry = new Registry();
  const metrics = createAuditMetrics(registry);
  const file = metrics.forSink('file', () => 12);
  metrics.forSink('http', () => 0);
  file.written(3);
  file.dropped(2);
  file.failed('enospc');
  const text = await registry.metrics();
  for (const line of [
    'proofgate_audit_written_total{sink="file"} 3',
    'proofgate_audit_written_total{sink="http"} 0',
    'proofgate_audit_dropped_total{sink="file"} 2',
    'proofgate_audit_dropped_total{sink="http"} 0',
    'proofgate_audit_failures_total{sink="file",code="enospc"} 1',
    'proofgate_audit_queue_bytes{sink="file"} 12',
    'proofgate_audit_last_success_timestamp_seconds{sink="http"} Nan',
  ]) {
    expect(text.split('\n')).toContain(line);
  }
  const [, seconds] = /last_success_timestamp_seconds\{sink="file"\} ([0-9.]+)/.exec(text) ?? [];
  expect(Math.abs(Number(seconds) - Date.now() / 1000)).toBeLessThan(60);
});
