/**
 * Kinds of audit events: `proofgate.control.<resource>.<verb>`. Verbs are imperatives, and one verb means the same for
 * every resource. Kinds are stable: operators filter and alert on them.
 * Source: docs/operate/control.md "Audit events".
 */
export const AUDITED = {
  access_token: ['create', 'rotate', 'delete'],
  blocked_caller: ['block', 'unblock'],
  blocked_subject: ['block', 'unblock'],
  bootstrap_token: ['create', 'reset', 'disable'],
  broker: ['create', 'change', 'delete'],
  client: ['create', 'change', 'delete'],
  derived_key: ['issue', 'revoke', 'refuse_public_key'],
  enrollment: ['submit', 'refuse', 'approve', 'deny', 'expire'],
  enrollment_policy: ['create', 'change', 'rebind', 'deactivate', 'reactivate', 'delete'],
  environment: ['create', 'change', 'delete'],
  fleet: ['create', 'change', 'delete'],
  grant: ['create', 'change', 'delete'],
  master_key: ['register', 'rotate', 'finish_rotation'],
  oauth_issuer: ['create', 'change', 'change_keys', 'delete'],
  role_grant: ['create', 'delete'],
  route: ['create', 'change', 'delete'],
  route_sources: ['create', 'change', 'delete'],
  session: ['start', 'end', 'end_all'],
  signing_key: ['rotate', 'retire'],
  site: ['create', 'change', 'raise_floor', 'delete'],
  source: ['create', 'change', 'delete'],
  source_revision: [
    'create',
    'change',
    'validate',
    'fail_validation',
    'activate',
    'pass_check',
    'fail_check',
    'acknowledge',
    'supersede',
    'suspend',
    'resume',
    'retire',
    'delete',
  ],
  target: ['create', 'change', 'rotate_token', 'refuse_bundle', 'detach'],
} as const satisfies { readonly [resource: string]: readonly string[] };

export type AuditedResource = keyof typeof AUDITED;
export type AuditVerb<R extends AuditedResource> = (typeof AUDITED)[R][number];
/** `<resource>.<verb>` */
export type AuditedChange = { [R in AuditedResource]: `${R}.${AuditVerb<R>}` }[AuditedResource];
export type AuditKind = `proofgate.control.${AuditedChange}`;
