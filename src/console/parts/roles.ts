/** Roles, and those that the session may grant. */
import type { Schemas } from '../api/client';
import { may, type Place } from '../api/permissions';
import { usePlaces } from '../api/places';
import { useSession } from '../api/session';

type Role = Schemas['RoleGrant']['role'];
type Scope = Schemas['Scope'];

export const ROLES: readonly { readonly value: Role; readonly label: string }[] = [
  { value: 'viewer', label: 'viewer: reads' },
  { value: 'approver', label: 'approver: also decides enrollments' },
  { value: 'operator', label: 'operator: also sources, policies, keys, clients, routes' },
  { value: 'admin', label: 'admin: everything' },
];

/** Whether the session administers a scope. */
export function useAdministers(): (scope: Scope) => boolean {
  const session = useSession();
  const { data } = usePlaces();
  return ({ kind, id }) => {
    const fleet = kind === 'fleet' ? data?.fleets.find(({ fleet_id }) => fleet_id === id) : undefined;
    const site = kind === 'site' ? data?.sites.find(({ site_id }) => site_id === id) : undefined;
    const place: Place = site ?? fleet ?? (id === undefined ? {} : { [`${kind}_id`]: id });
    return may(session, 'administer', place);
  };
}

/** Whether the session administers anything. */
export function useAdministersSome(): boolean {
  return useSession().roles.some(({ role }) => role === 'admin');
}

/** Whether the session may create sites somewhere: the administrator of one site may not create another. */
export function useMayCreateSites(): boolean {
  return useSession().roles.some(({ role, scope }) => role === 'admin' && scope.kind !== 'site');
}
