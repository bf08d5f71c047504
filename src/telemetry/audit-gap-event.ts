/**
 * The line that stands in an audit trail where decisions are missing from it. Its schema is
 * docs/schema/audit-gap-event.schema.json.
 * Source: docs/enforcement.md "Audit events".
 */
export const AUDIT_GAP_EVENT_NAME = 'proofgate.audit_gap';

export interface AuditGapEvent {
  readonly event: typeof AUDIT_GAP_EVENT_NAME;
  /** When this was written. RFC 3339, UTC, milliseconds, like the other. */
  readonly time: string;
  /** When the first of the missing ones was lost. */
  readonly since: string;
  /** How many decisions are missing. With `--audit required` all of them were refused. */
  readonly lost: number;
}
