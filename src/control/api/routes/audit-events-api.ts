/** Routes of `/v1/audit-events`: the audit trail, newest first. */

import { parameters } from '../../../api-contract/members-contract.ts';
import { AUDIT_EVENT, AUDIT_FILTER } from '../../../api-contract/operators-contract.ts';
import { auditEventView } from '../../configuration/audit-events.ts';
import { reachOf } from '../../domain/roles.ts';
import type { ControlStore } from '../../store/port.ts';
import { principalOf } from '../api-access.ts';
import type { ControlApp } from '../app.ts';
import { invalidCursor, PAGE_MEMBERS, page, pageOf } from '../pagination.ts';

export function registerAuditEventRoutes(app: ControlApp, store: ControlStore): void {
  app.get(
    '/v1/audit-events',
    {
      config: { access: { kind: 'signed_in' } },
      schema: {
        operationId: 'listAuditEvents',
        summary: 'What was done where one may read, newest first',
        tags: ['Audit trail'],
        querystring: parameters({ ...PAGE_MEMBERS, ...AUDIT_FILTER }),
        response: { 200: pageOf(AUDIT_EVENT, 'AuditEventPage') },
      },
    },
    (request) => {
      const { environment_id, fleet_id, site_id, kind, resource_id } = request.query;
      const reach = reachOf(principalOf(request).roles, 'read');
      const filter = {
        reach,
        environmentId: environment_id,
        fleetId: fleet_id,
        siteId: site_id,
        kind,
        resourceId: resource_id,
      };
      return page(
        request.query,
        ({ after, limit }) =>
          store.read((tx) => tx.audit.list({ ...filter, limit, beforeSeq: sequence(after) })),
        ({ seq }) => String(seq),
        auditEventView,
      );
    },
  );
}

function sequence(cursor: string | undefined): number | undefined {
  if (cursor === undefined) return undefined;
  if (!/^[1-9][0-9]{0,15}$/.test(cursor)) throw invalidCursor();
  return Number(cursor);
}
