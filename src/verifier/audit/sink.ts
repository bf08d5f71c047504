/** Where audit events go. `record` says whether the event is recorded; with `--audit required` a no denies. */
import type { DecisionEvent } from '../../telemetry/decision-event.ts';

export interface AuditSink {
  record(event: DecisionEvent): boolean;
  /** Hands over what waits, within a bound, and closes. */
  close(): Promise<void>;
}

/** `best_effort`: a lost event is counted; `required`: a request that cannot be recorded is refused. */
export type AuditMode = 'best_effort' | 'required';

/** A sink as whoever runs the process has it. */
export interface OperatedAuditSink extends AuditSink {
  /** Opens the destination anew, when that makes a difference. What cannot be opened leaves the old one at work. */
  reopen(): void;
  /** Bytes of events that wait. */
  readonly queuedBytes: number;
}

/** Is told what becomes of events. */
export interface AuditObserver {
  written(events: number): void;
  dropped(events: number): void;
  /** @param code a system error in lower case (`enospc`), or what a collector answered (`http_503`) */
  failed(code: string): void;
}

/** As `failed` tells it. */
export function failureCode(error: unknown): string {
  const code = typeof error === 'object' && error !== null && 'code' in error ? error.code : undefined;
  return typeof code === 'string' && /^[A-Z][A-Z0-9_]*$/.test(code) ? code.toLowerCase() : 'unknown';
}
