/** Observes one audit sink: counts events in metrics, logs state changes, and reports the current failure for `/readyz`. */
import type { AuditSinkMetrics, AuditSinkName } from '../../telemetry/audit-metrics.ts';
import type { Logger } from '../../telemetry/logger.ts';
import type { AuditObserver } from '../../verifier/audit/sink.ts';

export interface AuditWatch extends AuditObserver {
  /** Code of the current failure. */
  failing(): string | undefined;
}

export function watchAuditSink(sink: AuditSinkName, metrics: AuditSinkMetrics, logger: Logger): AuditWatch {
  let failing: string | undefined;
  return {
    failing: () => failing,
    written(events) {
      metrics.written(events);
      if (failing === undefined) return;
      failing = undefined;
      logger.info({ sink }, 'audit events are written again');
    },
    dropped: metrics.dropped,
    failed(code) {
      metrics.failed(code);
      if (failing === code) return;
      failing = code;
      logger.error({ sink, code }, 'audit events cannot be written');
    },
  };
}
