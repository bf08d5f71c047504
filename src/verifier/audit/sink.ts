/** Where audit events go. `record` says whether the event is recorded; with `--audit required` a no denies. */
import type { DecisionEvent } from '../../telemetry/decision-event.ts';

export interface AuditSink {
  record(event: DecisionEvent): boolean;
  /** Writes out what is buffered and closes. */
  close(): Promise<void>;
}

/** `best_effort`: a lost event is counted; `required`: a request that cannot be recorded is refused. */
export type AuditMode = 'best_effort' | 'required';
