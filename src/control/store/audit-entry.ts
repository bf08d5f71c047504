import type { AuditKind } from '../domain/audit-kinds.ts';

/** An audit event before it gets a time and a sequence number. Never holds a secret. */
export interface AuditEntry {
  readonly kind: AuditKind;
  /** `oidc:…`, `token:…`, `bootstrap`, `workload:…`, `target:…` or `control` itself. */
  readonly actor: string;
  readonly resource: { readonly kind: string; readonly id: string };
  readonly place: {
    readonly environmentId?: string | undefined;
    readonly fleetId?: string | undefined;
    readonly siteId?: string | undefined;
  };
  readonly before?: object | undefined;
  readonly after?: object | undefined;
  readonly requestId?: string | undefined;
}
