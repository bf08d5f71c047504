/**
 * The line that reports missing decisions in an audit trail. Its schema is docs/schema/audit-gap-event.schema.json.
 * Source: docs/enforcement.md "Audit events".
 */
export const AUDIT_GAP_EVENT_NAME = 'proofgate.audit_gap';

export interface AuditGapEvent {
  readonly event: typeof AUDIT_GAP_EVENT_NAME;
  /** When this line was written. RFC 3339, UTC, milliseconds, like the decision event's. */
  readonly time: string;
  /** When the first missing event was lost. */
  readonly since: string;
  /** Number of missing decisions. With `--audit required` all of them were denied. */
  readonly lost: number;
}
