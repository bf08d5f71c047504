/**
 * Roles, permissions and scopes. A role granted on the installation, an environment, a fleet or a site applies to
 * everything below it.
 * Source: docs/operate/control.md "Scope, permissions, secrets".
 */
import type { Role, ScopeKind } from '../contract/vocabulary.ts';

/** Permissions of requests. Each role has its own permission and those of the roles before it. */
export const PERMISSIONS = ['read', 'decide_enrollments', 'operate', 'administer'] as const;
export type Permission = (typeof PERMISSIONS)[number];

const GRANTED: { readonly [R in Role]: readonly Permission[] } = {
  viewer: ['read'],
  approver: ['read', 'decide_enrollments'],
  operator: ['read', 'decide_enrollments', 'operate'],
  admin: ['read', 'decide_enrollments', 'operate', 'administer'],
};

export function roleHolds(role: Role, permission: Permission): boolean {
  return GRANTED[role].includes(permission);
}

/** The scope of a role grant. `id` is empty for the installation. */
export interface Scope {
  readonly kind: ScopeKind;
  readonly id: string;
}

/** A resource's place in the hierarchy, with everything above it. */
export interface ScopePath {
  readonly environmentId?: string;
  readonly fleetId?: string;
  readonly siteId?: string;
}

export const INSTALLATION: Scope = { kind: 'installation', id: '' };

/** Whether a role granted on `scope` applies at `place`. */
function scopeCovers(scope: Scope, place: ScopePath): boolean {
  switch (scope.kind) {
    case 'installation':
      return true;
    case 'environment':
      return scope.id === place.environmentId;
    case 'fleet':
      return scope.id === place.fleetId;
    case 'site':
      return scope.id === place.siteId;
  }
}

/** The actor of the bootstrap token, and of sessions that it starts. */
export const BOOTSTRAP_ACTOR = 'bootstrap';

export interface HeldRole {
  readonly role: Role;
  readonly scope: Scope;
}

/** Whether the roles grant the permission at the place. Every authorization decision goes through here. */
export function mayDo(held: readonly HeldRole[], permission: Permission, place: ScopePath): boolean {
  return held.some(({ role, scope }) => roleHolds(role, permission) && scopeCovers(scope, place));
}

/** All places where an operator has a permission. */
export type Reach =
  | { readonly kind: 'everything' }
  | {
      readonly kind: 'below';
      readonly environmentIds: readonly string[];
      readonly fleetIds: readonly string[];
      readonly siteIds: readonly string[];
    };

/** What {@link mayDo} would allow, as a set: lists use it to filter. */
export function reachOf(held: readonly HeldRole[], permission: Permission): Reach {
  const scopes = held.filter(({ role }) => roleHolds(role, permission)).map(({ scope }) => scope);
  if (scopes.some(({ kind }) => kind === 'installation')) return { kind: 'everything' };
  const ids = (wanted: ScopeKind) => scopes.filter(({ kind }) => kind === wanted).map(({ id }) => id);
  return { kind: 'below', environmentIds: ids('environment'), fleetIds: ids('fleet'), siteIds: ids('site') };
}
