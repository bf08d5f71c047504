/** Counts lost events until a line in the audit trail reports them. */
import { AUDIT_GAP_EVENT_NAME, type AuditGapEvent } from '../../telemetry/audit-gap-event.ts';

export class AuditGap {
  #lost = 0;
  #sinceMs = 0;

  get lost(): number {
    return this.#lost;
  }

  lose(events: number): void {
    if (this.#lost === 0) this.#sinceMs = Date.now();
    this.#lost += events;
  }

  /** The line to write before the next event; empty when no event is missing. */
  line(): string {
    if (this.#lost === 0) return '';
    const event: AuditGapEvent = {
      event: AUDIT_GAP_EVENT_NAME,
      time: new Date().toISOString(),
      since: new Date(this.#sinceMs).toISOString(),
      lost: this.#lost,
    };
    return `${JSON.stringify(event)}\n`;
  }

  /** The line has been written. */
  markReported(): void {
    this.#lost = 0;
  }
}
