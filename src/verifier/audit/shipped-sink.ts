/** A sink that records, and another that gets what was recorded: what the first one cannot take has not happened. */
import type { DecisionEvent } from '../../telemetry/decision-event.ts';
import type { AuditMode, OperatedAuditSink } from './sink.ts';

/** @param recorder says whether an event is recorded */
export function shipping(
  recorder: OperatedAuditSink,
  shipper: OperatedAuditSink,
  mode: AuditMode,
): OperatedAuditSink {
  return {
    record(event: DecisionEvent): boolean {
      const isRecorded = recorder.record(event);
      // With `required` the request is refused then, which the event does not say.
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
