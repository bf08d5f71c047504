/** Lists the audit trail for operators. */

import { isJsonObject } from '../../protocol/strict-json.ts';
import type { AuditEventView } from '../contract/operators-contract.ts';
import { momentOf } from '../resource/change.ts';
import type { RowOf } from '../store/repositories/records.ts';

export function auditEventView(row: RowOf<'auditEvent'>): AuditEventView {
  return {
    audit_event_id: row.id,
    at: momentOf(row.atMs),
    kind: row.kind,
    actor: row.actor,
    resource: { kind: row.resourceKind, id: row.resourceId },
    ...(row.environmentId === null ? {} : { environment_id: row.environmentId }),
    ...(row.fleetId === null ? {} : { fleet_id: row.fleetId }),
    ...(row.siteId === null ? {} : { site_id: row.siteId }),
    ...(row.before === null ? {} : { before: recordOf(row.before) }),
    ...(row.after === null ? {} : { after: recordOf(row.after) }),
    ...(row.requestId === null ? {} : { request_id: row.requestId }),
    ...(row.reason === null ? {} : { reason: row.reason }),
  };
}

function recordOf(text: string): object {
  const value: unknown = JSON.parse(text);
  return isJsonObject(value) ? value : {};
}
