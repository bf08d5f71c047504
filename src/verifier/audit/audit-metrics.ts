/**
 * Metrics of the audit trail, by sink. Callers control no label.
 * Source: docs/operate/enforcement.md "Metrics".
 */
import type { Registry } from 'prom-client';
import { instrumentsOf } from '../../process/telemetry/instruments.ts';

export type AuditSinkName = 'stdout' | 'file' | 'http';
export type AuditMetrics = ReturnType<typeof createAuditMetrics>;
export function createAuditMetrics(registry: Registry) {
  const { counter, readings } = instrumentsOf(registry);
  const written = counter('proofgate_audit_written_total', 'Audit events handed over.', 'sink');
  const dropped = counter('proofgate_audit_dropped_total', 'Audit events lost.', 'sink');
  const failures = counter(
    'proofgate_audit_failures_total',
    'Attempts to write or send that failed.',
    ...['sink', 'code'],
  );
  const sinks = new Map<AuditSinkName, { readonly queuedBytes: () => number; lastSuccessMs: number }>();
  readings('proofgate_audit_queue_bytes', 'Bytes of audit events that wait to be handed over.', 'sink', () =>
    [...sinks].map(([sink, { queuedBytes }]) => [sink, queuedBytes()] as const),
  );
  readings(
    'proofgate_audit_last_success_timestamp_seconds',
    'When audit events were last handed over; NaN while none were.',
    'sink',
    () => [...sinks].map(([sink, { lastSuccessMs }]) => [sink, lastSuccessMs / 1000] as const),
  );
  return {
    /** @param queuedBytes read at each scrape */
    forSink(sink: AuditSinkName, queuedBytes: () => number) {
      const state = { queuedBytes, lastSuccessMs: Number.NaN };
      sinks.set(sink, state);
      const [writtenHere, droppedHere] = [written.labels({ sink }), dropped.labels({ sink })];
      // Creates the series at 0, so that an alert on an increase sees the first event.
      writtenHere.inc(0);
      droppedHere.inc(0);
      return {
        written(events: number) {
          writtenHere.inc(events);
          state.lastSuccessMs = Date.now();
        },
        dropped: (events: number) => droppedHere.inc(events),
        /** @param code a system error in lower case, or `http_503` and the like */
        failed: (code: string) => failures.inc({ sink, code }),
      };
    },
  };
}
