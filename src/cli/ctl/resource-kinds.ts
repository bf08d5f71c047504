/** The kinds of resources that `proofgate ctl get` shows. */
import { nearestName } from '../../process/http-service/nearest-name.ts';
import { usageError } from '../../process/program/errors.ts';
import type { GetPath, ItemOf, ListPath } from './client/control-api.ts';

export interface Kind {
  /** Path of the list. */
  readonly list?: ListPath;
  /** Path of a single resource, which its first column names. */
  readonly one?: GetPath;
  /** Path of a single resource that is identified by its trust domain as well. */
  readonly oneOfTrustDomain?: GetPath;
  /** The whole list comes in one answer, without pages. */
  readonly isOnePage?: true;
  /** An endless list, of which only the newest page is shown. */
  readonly newestOnly?: true;
  readonly needsSite: 'list' | 'always' | 'never';
  /** Members that a list shows, in this order; the first one identifies the resource. */
  readonly columns: readonly string[];
  /** Prefix of the IDs, and the member that holds the name. Absent when people choose the ID, or there is no name. */
  readonly named?: { readonly prefix: string; readonly member: string };
  /** Kind of the resource that NAME identifies, if it differs: in `get grants NAME` it is a client. */
  readonly parent?: string;
}
export type NamedKind = Kind & { readonly name: string };

/** Columns that `ctl get` derives from other members. */
type DerivedColumn = 'pinned_keys' | 'resource_id' | 'states' | 'waiting_for';

/** A kind that has a list. The compiler checks path and columns with the API's document. */
function listed<P extends ListPath>(
  list: P,
  columns: readonly ((keyof ItemOf<P> & string) | DerivedColumn)[],
  more: Omit<Kind, 'list' | 'columns'>,
): Kind {
  return { list, columns, ...more };
}

/** A view of one resource of another kind. */
function viewOf(parent: string, one: GetPath, needsSite: Kind['needsSite'] = 'never'): Kind {
  return { parent, one, needsSite, columns: [] };
}

/** By name, in the order of the help. */
export const KINDS: { readonly [kind: string]: Kind } = {
  environments: listed('/v1/environments', ['environment_id', 'name'], {
    one: '/v1/environments/{environment_id}',
    needsSite: 'never',
    named: { prefix: 'env_', member: 'name' },
  }),
  // One list for each environment.
  fleets: listed('/v1/environments/{environment_id}/fleets', ['fleet_id', 'name', 'environment_id'], {
    one: '/v1/fleets/{fleet_id}',
    needsSite: 'never',
    named: { prefix: 'flt_', member: 'name' },
  }),
  sites: listed('/v1/sites', ['site_id', 'display_name'], {
    one: '/v1/sites/{site_id}',
    needsSite: 'never',
  }),
  targets: listed(
    '/v1/sites/{site_id}/targets',
    ['target_id', 'name', 'state', 'ahead_revision', 'enforced_observations', 'created_at'],
    {
      one: '/v1/targets/{target_id}',
      needsSite: 'list',
      named: { prefix: 'tgt_', member: 'name' },
    },
  ),
  clients: listed('/v1/sites/{site_id}/clients', ['client_id', 'subject'], {
    one: '/v1/sites/{site_id}/clients/{client_id}',
    needsSite: 'always',
  }),
  grants: listed('/v1/sites/{site_id}/grants', ['client_id', 'resource', 'access'], {
    parent: 'clients',
    one: '/v1/sites/{site_id}/clients/{client_id}/grants',
    needsSite: 'always',
  }),
  routes: listed('/v1/sites/{site_id}/routes', ['route_id', 'definition', 'published'], {
    one: '/v1/sites/{site_id}/routes/{route_id}',
    needsSite: 'always',
  }),
  'route-sources': viewOf('routes', '/v1/sites/{site_id}/routes/{route_id}/sources', 'always'),
  brokers: listed('/v1/sites/{site_id}/brokers', ['issuer', 'trust_domain', 'url', 'pinned_keys'], {
    one: '/v1/sites/{site_id}/brokers/{issuer}',
    oneOfTrustDomain: '/v1/sites/{site_id}/brokers/{issuer}/{trust_domain}',
    needsSite: 'always',
  }),
  'oauth-issuers': listed(
    '/v1/sites/{site_id}/oauth-issuers',
    ['issuer', 'trust_domain', 'published', 'fetched_at', 'failure'],
    { one: '/v1/sites/{site_id}/oauth-issuers/{issuer}', needsSite: 'always' },
  ),
  sources: listed('/v1/sites/{site_id}/sources', ['source_id', 'display_name', 'states', 'waiting_for'], {
    one: '/v1/sources/{source_id}',
    needsSite: 'list',
    named: { prefix: 'tas_', member: 'display_name' },
  }),
  'source-keys': viewOf('sources', '/v1/sources/{source_id}/keys'),
  policies: listed(
    '/v1/sites/{site_id}/enrollment-policies',
    ['policy_id', 'display_name', 'client_id', 'approval', 'state', 'refuses_with', 'reference'],
    {
      one: '/v1/enrollment-policies/{policy_id}',
      needsSite: 'list',
      named: { prefix: 'ep_', member: 'display_name' },
    },
  ),
  enrollments: listed(
    '/v1/sites/{site_id}/enrollments',
    ['enrollment_id', 'client_id', 'state', 'verified_subject', 'created_at'],
    { one: '/v1/enrollments/{enrollment_id}', needsSite: 'list' },
  ),
  keys: listed(
    '/v1/sites/{site_id}/derived-keys',
    ['key_id', 'client_id', 'status', 'expires_at', 'last_used_at', 'verified_subject'],
    { one: '/v1/derived-keys/{key_id}', needsSite: 'list' },
  ),
  'blocked-subjects': listed(
    '/v1/sites/{site_id}/blocked-subjects',
    ['issuer', 'subject', 'blocked_at', 'blocked_by'],
    { needsSite: 'always' },
  ),
  'blocked-callers': listed(
    '/v1/sites/{site_id}/blocked-callers',
    ['issuer', 'subject', 'holder_thumbprint', 'waiting_for', 'blocked_at', 'blocked_by'],
    { needsSite: 'always' },
  ),
  profiles: listed('/v1/sites/{site_id}/signing-profiles', ['client_id', 'route_id', 'state'], {
    needsSite: 'always',
  }),
  'signing-keys': listed(
    '/v1/sites/{site_id}/signing-keys',
    ['signing_key_id', 'purpose', 'state', 'thumbprint', 'created_at', 'retire_at'],
    { isOnePage: true, needsSite: 'always' },
  ),
  'role-grants': listed('/v1/role-grants', ['role_grant_id', 'principal', 'role', 'scope'], {
    one: '/v1/role-grants/{role_grant_id}',
    needsSite: 'never',
  }),
  'access-tokens': listed(
    '/v1/access-tokens',
    ['access_token_id', 'name', 'role', 'scope', 'created_by', 'last_used_at', 'expires_at'],
    {
      one: '/v1/access-tokens/{access_token_id}',
      needsSite: 'never',
      named: { prefix: 'at_', member: 'name' },
    },
  ),
  sessions: listed('/v1/sessions', ['session_id', 'principal', 'expires_at', 'current'], {
    one: '/v1/sessions/{session_id}',
    needsSite: 'never',
  }),
  command: viewOf('policies', '/v1/enrollment-policies/{policy_id}/command'),
  readiness: viewOf('keys', '/v1/derived-keys/{key_id}/readiness'),
  'last-used': viewOf('keys', '/v1/derived-keys/{key_id}/last-used'),
  'revocation-receipt': viewOf('keys', '/v1/derived-keys/{key_id}/revocation-receipt'),
  'receipt-keys': viewOf('sites', '/v1/sites/{site_id}/receipt-keys'),
  overview: viewOf('sites', '/v1/sites/{site_id}/overview'),
  decisions: viewOf('sites', '/v1/sites/{site_id}/decisions'),
  propagation: viewOf('sites', '/v1/sites/{site_id}/propagation'),
  audit: listed('/v1/audit-events', ['at', 'kind', 'actor', 'resource_id', 'reason'], {
    newestOnly: true,
    needsSite: 'never',
  }),
};

/** The kind of this name, if it is one of these; its singular works too, such as `source` or `policy`. */
export function kindOf(given: string, names: readonly string[] = Object.keys(KINDS)): NamedKind | undefined {
  const name = [given, `${given}s`, given.replace(/y$/, 'ies')].find((each) => names.includes(each));
  const kind = name === undefined ? undefined : KINDS[name];
  return name === undefined || kind === undefined ? undefined : { ...kind, name };
}

/** The kinds that a command takes as its first argument. */
export const KINDS_OF: { readonly [C in 'get' | 'delete' | 'rename']: readonly string[] } = {
  get: Object.keys(KINDS),
  delete: [
    'environments',
    'fleets',
    'sites',
    'sources',
    'policies',
    'clients',
    'routes',
    'brokers',
    'oauth-issuers',
    'role-grants',
    'access-tokens',
    'sessions',
  ],
  rename: ['environments', 'fleets', 'targets', 'sources', 'policies'],
};

/** @throws CliError `kind_unknown` */
export function requireKind(given: string, command: keyof typeof KINDS_OF): NamedKind {
  const names = KINDS_OF[command];
  const kind = kindOf(given, names);
  if (kind !== undefined) return kind;
  const meant = nearestName(given, names);
  const advice = meant === undefined ? `kinds: ${names.join(', ')}` : `did you mean ${meant}?`;
  throw usageError('kind_unknown', `\`${given}\` is not a kind for \`${command}\`; ${advice}`);
}
