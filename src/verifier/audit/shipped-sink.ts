/** Records events in one sink and forwards recorded ones to another. An event that the first cannot record is not sent on. */
import type { DecisionEvent } from '../../telemetry/decision-event.ts';
import type { AuditMode, OperatedAuditSink } from './sink.ts';

/** @param recorder decides whether an event is recorded */
export function shipping(
  recorder: OperatedAuditSink,
  shipper: OperatedAuditSink,
  mode: AuditMode,
): OperatedAuditSink {
  return {
    record(event: DecisionEvent): boolean {
      const isRecorded = recorder.record(event);
      // With `required` the request is then denied, which contradicts the event.
      if (isRecorded || mode === 'best_effort') shipper.record(event);
      return isRecorded;
    },
    reopen() {
      recorder.reopen();
      shipper.reopen();
    },
    get queuedBytes() {
      return recorder.queuedBytes + shipper.queuedBytes;
    },
    async close() {
      await Promise.all([recorder.close(), shipper.close()]);
    },
  };
}
