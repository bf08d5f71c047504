/** Links from an audit event to the pages of what it names. */
import { Anchor } from '@mantine/core';
import { Link } from '@tanstack/react-router';
import type { Schemas } from '../api/client';
import { UntrustedText } from '../parts/values';

interface Place {
  /** Below the site's pages, or below the installation's. */
  readonly page: string;
  readonly search?: { readonly [name: string]: string };
  readonly isOfInstallation?: boolean;
}

const last = encodeURIComponent;

/** By kind of the resource. Source of the IDs: the calls of `audited` in src/control/. */
const PLACES: { readonly [kind: string]: (id: string) => Place } = {
  access_token: () => ({ page: '/access', search: { view: 'tokens' }, isOfInstallation: true }),
  blocked_caller: () => ({ page: 'blocked', search: { view: 'callers' } }),
  blocked_subject: () => ({ page: 'blocked' }),
  broker: () => ({ page: 'clients', search: { view: 'brokers' } }),
  client: (id) => ({ page: 'clients', search: { client: id } }),
  derived_key: (id) => ({ page: `keys/${last(id)}` }),
  enrollment: (id) => ({ page: `approvals/${last(id)}` }),
  enrollment_policy: (id) => ({ page: `policies/${last(id)}` }),
  // Client and resource, neither of which holds a space.
  grant: (id) => ({ page: 'clients', search: { client: id.split(' ')[0] ?? '' } }),
  role_grant: () => ({ page: '/access', isOfInstallation: true }),
  route: (id) => ({ page: `routes/${last(id)}` }),
  route_sources: (id) => ({ page: `routes/${last(id)}` }),
  session: () => ({ page: '/access', search: { view: 'sessions' }, isOfInstallation: true }),
  signing_key: () => ({ page: 'targets' }),
  site: () => ({ page: 'setup' }),
  source: (id) => ({ page: `sources/${last(id)}` }),
  // Source and revision.
  source_revision: (id) => ({ page: `sources/${last(id.split('/')[0] ?? '')}` }),
  target: () => ({ page: 'targets' }),
};

interface NamedProps {
  readonly kind: string;
  readonly id: string;
  readonly siteId: string | undefined;
  /** What people call it. Default: the ID. */
  readonly display?: string | undefined;
}

/** The name alone where no page shows the thing. */
export function Named({ kind, id, siteId, display = id }: NamedProps) {
  const name = <UntrustedText value={display} />;
  const place = Object.hasOwn(PLACES, kind) ? PLACES[kind]?.(id) : undefined;
  if (place === undefined || (place.isOfInstallation !== true && siteId === undefined)) return name;
  const { page, search = {}, isOfInstallation } = place;
  const to = isOfInstallation === true ? page : `/sites/${encodeURIComponent(siteId ?? '')}/${page}`;
  return (
    // The router's types know the search only of an address that is a literal.
    <Anchor component={Link} to={to} search={search as never} size="sm">
      {name}
    </Anchor>
  );
}

/** The name of the event's resource in its state; undefined if it has none. */
export function displayName({ before, after }: Schemas['AuditEvent']): string | undefined {
  const state: { readonly [member: string]: unknown } = { ...before, ...after };
  return [state.display_name, state.name, state.verified_subject, state.principal].find(
    (name) => typeof name === 'string',
  );
}

/** Whether the thing is gone, so that its page would not be found. */
export function isDeletion({ kind }: Schemas['AuditEvent']): boolean {
  return kind.endsWith('.delete');
}

/** Members that name other things of the site, by the kind of what they name. */
const MEMBERS = [
  ['derived_key', 'key_id', 'Key'],
  ['enrollment', 'enrollment_id', 'Enrollment'],
  ['enrollment_policy', 'policy_id', 'Policy'],
  ['source', 'source_id', 'Source'],
  ['route', 'route_id', 'Route'],
  ['target', 'target_id', 'Target'],
  ['client', 'client_id', 'Client'],
] as const;

/** What the state of the event names beside its own resource: label with link. */
export function namesIn(event: Schemas['AuditEvent']) {
  const { before, after, resource, site_id: siteId } = event;
  const state: { readonly [member: string]: unknown } = { ...before, ...after };
  return MEMBERS.flatMap(([kind, member, label]) => {
    const id = state[member];
    if (typeof id !== 'string' || id === '' || id === resource.id) return [];
    return [[label, <Named key={member} kind={kind} id={id} siteId={siteId} />] as const];
  });
}
