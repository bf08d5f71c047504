/**
 * Metrics of the audit trail, by sink. Callers control no label.
 * Source: docs/enforcement.md "Metrics".
 */
import { Counter, Gauge, type Registry } from 'prom-client';

export type AuditSinkName = 'stdout' | 'file' | 'http';

interface AuditSinkMetrics {
  written(events: number): void;
  dropped(events: number): void;
  /** @param code a system error in lower case, or `http_503` and the like */
  failed(code: string): void;
}

export interface AuditMetrics {
  /** @param readQueuedBytes read at each scrape */
  forSink(sink: AuditSinkName, readQueuedBytes: () => number): AuditSinkMetrics;
}

export function createAuditMetrics(registry: Registry): AuditMetrics {
  const registers = [registry];
  const counter = (name: string, help: string, ...labelNames: string[]) =>
    new Counter({ name, help, labelNames: ['sink', ...labelNames], registers });
  const written = counter('proofgate_audit_written_total', 'Audit events handed over.');
  const dropped = counter('proofgate_audit_dropped_total', 'Audit events lost.');
  const failures = counter(
    'proofgate_audit_failures_total',
    'Attempts to write or send that failed.',
    'code',
  );
  const readings = new Map<AuditSinkName, () => number>();
  const lastSuccessMs = new Map<AuditSinkName, number>();
  new Gauge({
    name: 'proofgate_audit_queue_bytes',
    help: 'Bytes of audit events that wait to be handed over.',
    labelNames: ['sink'],
    registers,
    collect() {
      for (const [sink, read] of readings) this.set({ sink }, read());
    },
  });
  new Gauge({
    name: 'proofgate_audit_last_success_timestamp_seconds',
    help: 'When audit events were last handed over; NaN while none were.',
    labelNames: ['sink'],
    registers,
    collect() {
      for (const sink of readings.keys()) this.set({ sink }, (lastSuccessMs.get(sink) ?? Number.NaN) / 1000);
    },
  });
  return {
    forSink(sink, readQueuedBytes) {
      readings.set(sink, readQueuedBytes);
      const [writtenHere, droppedHere] = [written.labels({ sink }), dropped.labels({ sink })];
      // Creates the series at 0, so that an alert on an increase sees the first event.
      writtenHere.inc(0);
      droppedHere.inc(0);
      return {
        written(events) {
          writtenHere.inc(events);
          lastSuccessMs.set(sink, Date.now());
        },
        dropped: (events) => droppedHere.inc(events),
        failed: (code) => failures.inc({ sink, code }),
      };
    },
  };
}
