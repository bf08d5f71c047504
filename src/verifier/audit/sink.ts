/** The audit sink. `record` returns whether the event is recorded; with `--audit required`, false denies the request. */
import type { AuditEvent } from '../../process/telemetry/audit-event.ts';
import type { DecisionEvent } from '../../process/telemetry/decision-event.ts';

export interface AuditSink {
  /** @param event a string is an event's JSON text */
  record(event: DecisionEvent | string): boolean;
  /** Flushes queued events within a time limit, then closes. */
  close(): Promise<void>;
}

/** The line of an event, LF included. @param event a string is an event's JSON text */
export function lineOf(event: AuditEvent | string): string {
  return `${typeof event === 'string' ? event : JSON.stringify(event)}\n`;
}

/** `best_effort`: a lost event is counted; `required`: a request that cannot be recorded is denied. */
export type AuditMode = 'best_effort' | 'required';

/** The interface of the sink for the process that owns it. */
export interface OperatedAuditSink extends AuditSink {
  record(event: AuditEvent | string): boolean;
  /** Reopens the destination, if it is a file. When that fails, the current one stays in use. */
  reopen(): void;
  /** Size of the queued events. */
  readonly queuedBytes: number;
}

/** Receives the outcome of events. */
export interface AuditObserver {
  written(events: number): void;
  dropped(events: number): void;
  /** @param code a system error in lower case (`enospc`), or the collector's status (`http_503`) */
  failed(code: string): void;
}

/** The code for `AuditObserver.failed`. */
export function failureCode(error: unknown): string {
  const code = typeof error === 'object' && error !== null && 'code' in error ? error.code : undefined;
  return typeof code === 'string' && /^[A-Z][A-Z0-9_]*$/.test(code) ? code.toLowerCase() : 'unknown';
}

/** @param recorder decides whether an event is recorded */
export function shipping(
  recorder: OperatedAuditSink,
  shipper: OperatedAuditSink,
  mode: AuditMode,
): OperatedAuditSink {
  return {
    record(event: AuditEvent | string): boolean {
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
