/**
 * Expected permissions, written independently of the routes. The test fails when a route changes its access, or a new route
 * has no entry.
 */
import type { Permission } from '../../../src/control/domain/roles.ts';

/** Level of the route's resource. */
export type Level = 'installation' | 'environment' | 'fleet' | 'site';

interface OperatorExpected {
  readonly kind: 'operator';
  readonly permission: Permission;
  readonly level: Level;
  /** Answer for a resource that does not exist or belongs to another scope. */
  readonly absent?: { readonly status: number; readonly code: string };
  /** Workload credentials are accepted too; the handler checks them. */
  readonly orWorkload?: true;
}

interface OperatorExpected {
  readonly kind: 'operator';
  readonly permission: Permission;
  readonly level: Level;
  /** Answer for a resource that does not exist or belongs to another scope. */
  readonly absent?: { readonly status: number; readonly code: string };
  /** Workload credentials are accepted too; the handler checks them. */
  readonly orWorkload?: true;
}

export type Expected = { readonly kind: 'public' | 'workload' | 'target' | 'signed_in' } | OperatorExpected;

const signedIn: Expected = { kind: 'signed_in' };
const anybody: Expected = { kind: 'public' };
const workload: Expected = { kind: 'workload' };
const target: Expected = { kind: 'target' };
const operator = (permission: Permission, level: Level): OperatorExpected => ({
  kind: 'operator',
  permission,
  level,
});
const scoped = (level: Level): Expected => ({
  ...operator('administer', level),
  absent: { status: 422, code: 'scope_invalid' },
});

/** By method and path, as registered in the app. HEAD has the entry of GET. */
export const PERMISSION_TABLE: { readonly [route: string]: Expected } = {
  'GET /healthz': anybody,
  'GET /readyz': anybody,
  'GET /openapi.json': anybody,
  'POST /v1/environments': operator('administer', 'installation'),
  'GET /v1/environments': signedIn,
  'GET /v1/environments/:environment_id': operator('read', 'environment'),
  'PATCH /v1/environments/:environment_id': operator('administer', 'environment'),
  'DELETE /v1/environments/:environment_id': operator('administer', 'environment'),
  'POST /v1/environments/:environment_id/fleets': operator('administer', 'environment'),
  'GET /v1/environments/:environment_id/fleets': operator('read', 'environment'),
  'GET /v1/fleets/:fleet_id': operator('read', 'fleet'),
  'PATCH /v1/fleets/:fleet_id': operator('administer', 'fleet'),
  'DELETE /v1/fleets/:fleet_id': operator('administer', 'fleet'),
  'POST /v1/fleets/:fleet_id/sites': operator('administer', 'fleet'),
  'GET /v1/fleets/:fleet_id/sites': operator('read', 'fleet'),
  'GET /v1/sites': signedIn,
  'GET /v1/sites/:site_id': operator('read', 'site'),
  'PATCH /v1/sites/:site_id': operator('administer', 'site'),
  'DELETE /v1/sites/:site_id': operator('administer', 'site'),
  // Each step has a permission of its own: declaration.test.ts.
  'PUT /v1/sites/:site_id/declaration': signedIn,
  'POST /v1/sites/:site_id/raise-floor': operator('administer', 'site'),
  'GET /v1/sites/:site_id/decisions': operator('read', 'site'),
  'GET /v1/sites/:site_id/signing-keys': operator('read', 'site'),
  'POST /v1/sites/:site_id/signing-keys/rotate': operator('administer', 'site'),
  'POST /v1/sites/:site_id/signing-keys/:signing_key_id/retire': operator('administer', 'site'),
  'GET /v1/sites/:site_id/brokers': operator('read', 'site'),
  'GET /v1/sites/:site_id/brokers/:issuer/:trust_domain': operator('read', 'site'),
  'PUT /v1/sites/:site_id/brokers/:issuer/:trust_domain': operator('administer', 'site'),
  'DELETE /v1/sites/:site_id/brokers/:issuer/:trust_domain': operator('administer', 'site'),
  'GET /v1/sites/:site_id/brokers/:issuer': operator('read', 'site'),
  'PUT /v1/sites/:site_id/brokers/:issuer': operator('administer', 'site'),
  'DELETE /v1/sites/:site_id/brokers/:issuer': operator('administer', 'site'),
  'GET /v1/sites/:site_id/oauth-issuers': operator('read', 'site'),
  'GET /v1/sites/:site_id/oauth-issuers/:issuer': operator('read', 'site'),
  'PUT /v1/sites/:site_id/oauth-issuers/:issuer': operator('administer', 'site'),
  'DELETE /v1/sites/:site_id/oauth-issuers/:issuer': operator('administer', 'site'),
  'POST /v1/sites/:site_id/targets': operator('administer', 'site'),
  'GET /v1/sites/:site_id/targets': operator('read', 'site'),
  'GET /v1/targets/:target_id': operator('read', 'site'),
  'PATCH /v1/targets/:target_id': operator('administer', 'site'),
  'POST /v1/targets/:target_id/rotate-token': operator('administer', 'site'),
  'POST /v1/targets/:target_id/detach': operator('administer', 'site'),
  'POST /v1/sites/:site_id/clients': operator('operate', 'site'),
  'GET /v1/sites/:site_id/clients': operator('read', 'site'),
  'GET /v1/sites/:site_id/clients/:client_id': operator('read', 'site'),
  'PATCH /v1/sites/:site_id/clients/:client_id': operator('operate', 'site'),
  'DELETE /v1/sites/:site_id/clients/:client_id': operator('operate', 'site'),
  'GET /v1/sites/:site_id/clients/:client_id/grants': operator('read', 'site'),
  'GET /v1/sites/:site_id/grants': operator('read', 'site'),
  'PUT /v1/sites/:site_id/clients/:client_id/grants/:resource': operator('operate', 'site'),
  'DELETE /v1/sites/:site_id/clients/:client_id/grants/:resource': operator('operate', 'site'),
  'POST /v1/sites/:site_id/routes': operator('operate', 'site'),
  'GET /v1/sites/:site_id/routes': operator('read', 'site'),
  'GET /v1/sites/:site_id/routes/:route_id': operator('read', 'site'),
  'PUT /v1/sites/:site_id/routes/:route_id': operator('operate', 'site'),
  'DELETE /v1/sites/:site_id/routes/:route_id': operator('operate', 'site'),
  'GET /v1/sites/:site_id/routes/:route_id/sources': operator('read', 'site'),
  'PUT /v1/sites/:site_id/routes/:route_id/sources': operator('operate', 'site'),
  'DELETE /v1/sites/:site_id/routes/:route_id/sources': operator('operate', 'site'),
  'POST /v1/role-grants': scoped('site'),
  'GET /v1/role-grants': signedIn,
  'GET /v1/role-grants/:role_grant_id': operator('read', 'site'),
  'DELETE /v1/role-grants/:role_grant_id': operator('administer', 'site'),
  'POST /v1/access-tokens': scoped('site'),
  'GET /v1/access-tokens': signedIn,
  'GET /v1/access-tokens/:access_token_id': operator('read', 'site'),
  'DELETE /v1/access-tokens/:access_token_id': operator('administer', 'site'),
  'POST /v1/access-tokens/:access_token_id/rotate': operator('administer', 'site'),
  'GET /v1/audit-events': signedIn,
  // Operators
  'GET /auth/login': anybody,
  'GET /auth/callback': anybody,
  'POST /auth/confirm': anybody,
  'POST /auth/logout': anybody,
  'POST /v1/session/exchange': anybody,
  'POST /v1/session/bootstrap': anybody,
  'GET /v1/sign-in-methods': anybody,
  'GET /v1/session': signedIn,
  // Their own; all need permissions: operators/sessions.test.ts.
  'GET /v1/sessions': signedIn,
  'GET /v1/sessions/:session_id': signedIn,
  'DELETE /v1/sessions': signedIn,
  'DELETE /v1/sessions/:session_id': signedIn,
  'GET /v1/changes': signedIn,
  'DELETE /v1/bootstrap-token': operator('administer', 'installation'),
  // Trust Anchor Sources
  'POST /v1/sites/:site_id/sources': operator('operate', 'site'),
  'GET /v1/sites/:site_id/sources': operator('read', 'site'),
  'GET /v1/sources/:source_id': operator('read', 'site'),
  'PATCH /v1/sources/:source_id': operator('operate', 'site'),
  'DELETE /v1/sources/:source_id': operator('operate', 'site'),
  'GET /v1/sources/:source_id/keys': operator('read', 'site'),
  'POST /v1/sources/:source_id/retire': operator('operate', 'site'),
  'POST /v1/sources/:source_id/revisions': operator('operate', 'site'),
  'GET /v1/sources/:source_id/revisions/:revision': operator('read', 'site'),
  'PATCH /v1/sources/:source_id/revisions/:revision': operator('operate', 'site'),
  'DELETE /v1/sources/:source_id/revisions/:revision': operator('operate', 'site'),
  'POST /v1/sources/:source_id/revisions/:revision/validate': operator('operate', 'site'),
  'POST /v1/sources/:source_id/revisions/:revision/activate': operator('operate', 'site'),
  'POST /v1/sources/:source_id/revisions/:revision/suspend': operator('operate', 'site'),
  'POST /v1/sources/:source_id/revisions/:revision/resume': operator('operate', 'site'),
  'POST /v1/sources/:source_id/revisions/:revision/retire': operator('operate', 'site'),
  // Enrollment
  'POST /v1/sites/:site_id/enrollment-policies': operator('operate', 'site'),
  'GET /v1/sites/:site_id/enrollment-policies': operator('read', 'site'),
  'GET /v1/enrollment-policies/:policy_id': operator('read', 'site'),
  'PATCH /v1/enrollment-policies/:policy_id': operator('operate', 'site'),
  'DELETE /v1/enrollment-policies/:policy_id': operator('operate', 'site'),
  'POST /v1/enrollment-policies/:policy_id/rebind': operator('operate', 'site'),
  'POST /v1/enrollment-policies/:policy_id/deactivate': operator('operate', 'site'),
  'POST /v1/enrollment-policies/:policy_id/reactivate': operator('operate', 'site'),
  'GET /v1/enrollment-policies/:policy_id/command': operator('read', 'site'),
  'POST /v1/enrollments/challenges': workload,
  'POST /v1/enrollments': workload,
  'GET /v1/enrollments/:enrollment_id/readiness': workload,
  'GET /v1/enrollments/:enrollment_id': { ...operator('read', 'site'), orWorkload: true },
  'GET /v1/sites/:site_id/enrollments': operator('read', 'site'),
  'POST /v1/enrollments/:enrollment_id/approve': operator('decide_enrollments', 'site'),
  'POST /v1/enrollments/:enrollment_id/deny': operator('decide_enrollments', 'site'),
  'GET /v1/sites/:site_id/derived-keys': operator('read', 'site'),
  'GET /v1/derived-keys/:key_id': operator('read', 'site'),
  'POST /v1/derived-keys/:key_id/revoke': operator('operate', 'site'),
  'GET /v1/sites/:site_id/blocked-subjects': operator('read', 'site'),
  'POST /v1/sites/:site_id/blocked-subjects': operator('operate', 'site'),
  'DELETE /v1/sites/:site_id/blocked-subjects': operator('operate', 'site'),
  'GET /v1/sites/:site_id/blocked-callers': operator('read', 'site'),
  'POST /v1/sites/:site_id/blocked-callers': operator('operate', 'site'),
  'DELETE /v1/sites/:site_id/blocked-callers': operator('operate', 'site'),
  // From key to traffic
  'GET /v1/derived-keys/:key_id/readiness': operator('read', 'site'),
  'GET /v1/derived-keys/:key_id/last-used': operator('read', 'site'),
  'GET /v1/derived-keys/:key_id/revocation-receipt': operator('read', 'site'),
  'GET /v1/sites/:site_id/receipt-keys': operator('read', 'site'),
  'GET /v1/derived-keys/:key_id/grants': operator('read', 'site'),
  'GET /v1/derived-keys/:key_id/signing-profiles': operator('read', 'site'),
  'GET /v1/sites/:site_id/overview': operator('read', 'site'),
  'GET /v1/sites/:site_id/signing-profiles': operator('read', 'site'),
  'GET /v1/sites/:site_id/profiles': operator('read', 'site'),
  'GET /v1/sites/:site_id/propagation': operator('read', 'site'),
  'POST /v1/sites/:site_id/explanations': operator('read', 'site'),
  // Distribution
  'GET /v1/targets/self/bundle': target,
  'POST /v1/targets/self/acks': target,
  'POST /v1/targets/self/summaries': target,
  'POST /v1/targets/self/last-used': target,
  'POST /v1/targets/self/unknown-keys': target,
  'GET /v1/targets/self/bundles/:revision/:file': target,
};

/** Permissions of each role, as in docs/operate/control.md. */
export const ROLE_PERMISSIONS: { readonly [role: string]: readonly Permission[] } = {
  viewer: ['read'],
  approver: ['read', 'decide_enrollments'],
  operator: ['read', 'decide_enrollments', 'operate'],
  admin: ['read', 'decide_enrollments', 'operate', 'administer'],
};

const DEFINITION = {
  method: 'GET',
  path_template: '/x',
  audience: 'x',
  freshness_class: 'realtime',
};
const SITE_SCOPE = { kind: 'site', id: 'inside' };

const BROKER = {
  definition: {
    trust_domain: 'x',
    subject_prefixes: [''],
    key_binding: 'software',
    keys: [
      {
        kid: 'x',
        alg: 'Ed25519',
        jwk: { kty: 'OKP', crv: 'Ed25519', x: '11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo' },
      },
    ],
  },
};

/** Bodies of valid shape, because the shape is checked before permissions. */
export const BODIES: { readonly [route: string]: unknown } = {
  'POST /v1/sites/:site_id/explanations': { request: '{}' },
  'POST /v1/environments': { name: 'x' },
  'PATCH /v1/environments/:environment_id': { name: 'x' },
  'POST /v1/environments/:environment_id/fleets': { name: 'x' },
  'PATCH /v1/fleets/:fleet_id': { name: 'x' },
  'POST /v1/fleets/:fleet_id/sites': {
    site_id: 'x',
    display_name: 'x',
    trust_domain: 'x',
    issuer_url: 'https://x.example',
    origins: ['https://x.example'],
  },
  'PATCH /v1/sites/:site_id': { display_name: 'x' },
  'PUT /v1/sites/:site_id/declaration': {
    format: 'proofgate.site/v1',
    environment: 'x',
    fleet: 'x',
    site: {
      site_id: 'x',
      trust_domain: 'x',
      issuer_url: 'https://x.example',
      origins: ['https://x.example'],
    },
  },
  'POST /v1/sites/:site_id/raise-floor': { above_revision: 1 },
  'POST /v1/sites/:site_id/signing-keys/rotate': { purpose: 'bundle' },
  'POST /v1/sites/:site_id/signing-keys/:signing_key_id/retire': {},
  'PUT /v1/sites/:site_id/brokers/:issuer': BROKER,
  'PUT /v1/sites/:site_id/brokers/:issuer/:trust_domain': BROKER,
  'PUT /v1/sites/:site_id/oauth-issuers/:issuer': { definition: { trust_domain: 'x' } },
  'POST /v1/sites/:site_id/targets': { name: 'x' },
  'PATCH /v1/targets/:target_id': { name: 'x' },
  'POST /v1/targets/:target_id/rotate-token': {},
  'POST /v1/sites/:site_id/clients': { client_id: 'x', subject: 'x' },
  'PATCH /v1/sites/:site_id/clients/:client_id': { subject: 'x' },
  'PUT /v1/sites/:site_id/clients/:client_id/grants/:resource': { access: 'read' },
  'POST /v1/sites/:site_id/routes': { route_id: 'x', definition: DEFINITION },
  'PUT /v1/sites/:site_id/routes/:route_id': { definition: DEFINITION },
  'PUT /v1/sites/:site_id/routes/:route_id/sources': {
    allowed_sources: [
      { issuer: 'x', trust_domain: 'x', subject_exact: 'x', required_key_binding: 'software' },
    ],
  },
  'POST /auth/confirm': { confirmation: 'x', decision: 'deny' },
  'POST /v1/session/bootstrap': { token: 'x' },
  'POST /v1/session/exchange': { code: 'x', verifier: 'x'.repeat(43) },
  'POST /v1/sites/:site_id/sources': {
    kind: 'oidc_jwks',
    display_name: 'x',
    issuer: 'https://i.example',
    jwks_uri: 'https://i.example/keys',
    audience: 'x',
  },
  'PATCH /v1/sources/:source_id': { display_name: 'x' },
  'POST /v1/sources/:source_id/revisions': {},
  'PATCH /v1/sources/:source_id/revisions/:revision': { audience: 'x' },
  'POST /v1/sources/:source_id/revisions/:revision/activate': { expected_scope: 'x' },
  'POST /v1/sites/:site_id/enrollment-policies': {
    display_name: 'x',
    source_id: 'x',
    source_revision: 1,
    client_id: 'x',
    approval: 'manual',
    max_key_lifetime_seconds: 60,
    verified_issuer: 'x',
    verified_subject: 'x',
  },
  'PATCH /v1/enrollment-policies/:policy_id': { display_name: 'x' },
  'POST /v1/enrollment-policies/:policy_id/rebind': {
    source_id: 'x',
    source_revision: 1,
    expected_issuer: 'x',
  },
  'POST /v1/enrollments/challenges': {
    policy: 'x',
    provider: 'oidc_jwks',
    public_key: { kty: 'OKP', crv: 'Ed25519', x: 'x' },
  },
  'POST /v1/enrollments': { challenge_id: 'x', workload_token: 'x', signature: 'x' },
  'POST /v1/enrollments/:enrollment_id/deny': {},
  'POST /v1/derived-keys/:key_id/revoke': {},
  'POST /v1/sites/:site_id/blocked-subjects': { issuer: 'x', subject: 'x' },
  'POST /v1/sites/:site_id/blocked-callers': { issuer: 'x', subject: 'x' },
  'POST /v1/targets/self/acks': { revision: 1, head: 'A'.repeat(43), outcome: 'accepted' },
  'POST /v1/targets/self/summaries': {
    ...{ routes: [], other: { allowed: 0, denied: {}, observed: {} }, methods: {} },
    ...{ latency: [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0], dropped: 0 },
  },
  'POST /v1/targets/self/unknown-keys': { keys: [{ issuer: 'https://login.example', kid: 'x' }] },
  'POST /v1/targets/self/last-used': { keys: [{ key_id: 'x', used_at: '2026-11-21T04:00:00Z' }] },
  'POST /v1/role-grants': { principal: 'group:x', role: 'viewer', scope: SITE_SCOPE },
  'POST /v1/access-tokens': { name: 'x', role: 'viewer', scope: SITE_SCOPE },
};

/** Required queries. */
export const QUERIES: { readonly [route: string]: string } = {
  'GET /v1/sites/:site_id/profiles': '?issuer=x&subject=x',
  'DELETE /v1/sessions': '?principal=x',
  'DELETE /v1/sites/:site_id/blocked-subjects': '?issuer=x&subject=x',
  'DELETE /v1/sites/:site_id/blocked-callers': '?issuer=x&subject=x',
};
