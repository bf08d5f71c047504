/**
 * States, roles, kinds and limits that the API shows. The state machines of Control use the same names.
 * Source: specification "States and transitions", "Limits"; docs/operate/control.md.
 */

export const ROLES = ['viewer', 'approver', 'operator', 'admin'] as const;
export type Role = (typeof ROLES)[number];

export const SCOPE_KINDS = ['installation', 'environment', 'fleet', 'site'] as const;
export type ScopeKind = (typeof SCOPE_KINDS)[number];

export const SOURCE_KINDS = ['oidc_jwks'] as const;
export type SourceKind = (typeof SOURCE_KINDS)[number];

/** Whether validation compares a source with its issuer's discovery document. */
export const SOURCE_DISCOVERIES = ['checked', 'skipped'] as const;
export const SOURCE_STATES = [
  'draft',
  'failed_draft',
  'validated',
  'activating',
  'publishing',
  'active',
  'suspended',
  'retired',
  'removed',
] as const;
export type SourceState = (typeof SOURCE_STATES)[number];
/** States in which a source revision can be edited and deleted. */
export const DRAFT_STATES: readonly SourceState[] = ['draft', 'failed_draft', 'validated'];

/** What happens to living keys when their source is suspended or retired. */
export const KEY_POLICIES = ['keep', 'revoke'] as const;
export type KeyPolicy = (typeof KEY_POLICIES)[number];

/** Default number of source slots of a site. */
export const DEFAULT_SOURCE_CAPACITY = 16;
/** Maximum number of revisions of a source: the limit of the database column. */
export const MAX_SOURCE_REVISION = 2_147_483_647;
/** Maximum number of listed targets that a publishing source waits for; a site's propagation lists them all. */
export const MAX_SHOWN_TARGETS = 10;

/** `waiting`: until its source is active. */
export const POLICY_STATES = ['waiting', 'active', 'deactivated', 'deleted'] as const;
export type PolicyState = (typeof POLICY_STATES)[number];

export const APPROVALS = ['automatic', 'manual'] as const;
export type Approval = (typeof APPROVALS)[number];

/** Limits of a policy's maximum key lifetime. */
export const MIN_KEY_LIFETIME_SECONDS = 60;
export const MAX_KEY_LIFETIME_SECONDS = 86_400;
/** Default limit of keys per workload token. More than one, because a restarted pod finds its token again. */
export const MAX_KEYS_PER_TOKEN = 5;

export const ENROLLMENT_STATES = ['pending_approval', 'issued', 'denied', 'expired'] as const;
export type EnrollmentState = (typeof ENROLLMENT_STATES)[number];

export const KEY_STATES = ['active', 'revoked', 'expired'] as const;
export type KeyState = (typeof KEY_STATES)[number];

export const PROFILE_STATES = ['active', 'inactive'] as const;
export type ProfileState = (typeof PROFILE_STATES)[number];
