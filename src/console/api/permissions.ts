/**
 * Permissions of the session's roles, so that the console shows only actions that Control would accept. Only Control
 * enforces them.
 */
import type { Schemas } from './client';

export type Permission = 'read' | 'decide_enrollments' | 'operate' | 'administer';

const GRANTED: { readonly [role: string]: readonly Permission[] } = {
  viewer: ['read'],
  approver: ['read', 'decide_enrollments'],
  operator: ['read', 'decide_enrollments', 'operate'],
  admin: ['read', 'decide_enrollments', 'operate', 'administer'],
};

/** A resource's place; `{}` is the installation. */
export interface Place {
  readonly environment_id?: string;
  readonly fleet_id?: string;
  readonly site_id?: string;
}

export function may(session: Schemas['Session'], permission: Permission, place: Place): boolean {
  return session.roles.some(
    ({ role, scope }) => GRANTED[role]?.includes(permission) === true && covers(scope, place),
  );
}

function covers(scope: Schemas['Scope'], place: Place): boolean {
  return scope.kind === 'installation' || (scope.id !== undefined && scope.id === place[`${scope.kind}_id`]);
}
