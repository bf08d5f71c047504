/** The kinds of resources that `proofgate ctl get` shows. */
import { nearestName } from '../../process/http-service/nearest-name.ts';
import { usageError } from '../../process/program/errors.ts';

export interface Kind {
  /** Path of the list; `owner`: percent-encoded ID of what the items belong to, in most cases the Auth Site. */
  readonly list?: (owner: string) => string;
  /** Path of a single resource; its name is percent-encoded. */
  readonly one?: (site: string, name: string, trustDomain: string | undefined) => string;
  /** The whole list comes in one answer, without pages. */
  readonly isOnePage?: true;
  /** An endless list, of which only the newest page is shown. */
  readonly newestOnly?: true;
  readonly needsSite: 'list' | 'always' | 'never';
  /** Members that a list shows, in this order; the first one identifies the resource. */
  readonly columns: readonly string[];
  /** Prefix of the IDs, and the member that holds the name. Absent when people choose the ID, or there is no name. */
  readonly named?: { readonly prefix: string; readonly member: string };
  /** Kind of the resource that NAME identifies, where it is another one: the client of `get grants NAME`. */
  readonly parent?: string;
}
export type NamedKind = Kind & { readonly name: string };

/** Resources of a site whose IDs are unique in the installation. */
function byId(resource: string, columns: readonly string[], named?: Kind['named']): Kind {
  return {
    list: (site) => `/v1/sites/${site}/${resource}`,
    one: (_site, id) => `/v1/${resource}/${id}`,
    needsSite: 'list',
    columns,
    ...(named === undefined ? {} : { named }),
  };
}

/** Resources of a site whose names are unique in it. */
function byName(resource: string, columns: readonly string[]): Kind {
  return {
    list: (site) => `/v1/sites/${site}/${resource}`,
    one: (site, name) => `/v1/sites/${site}/${resource}/${name}`,
    needsSite: 'always',
    columns,
  };
}

function listOnly(resource: string, columns: readonly string[]): Kind {
  return { list: (site) => `/v1/sites/${site}/${resource}`, needsSite: 'always', columns };
}

function ofInstallation(resource: string, columns: readonly string[], named?: Kind['named']): Kind {
  return {
    list: () => `/v1/${resource}`,
    one: (_site, id) => `/v1/${resource}/${id}`,
    needsSite: 'never',
    columns,
    ...(named === undefined ? {} : { named }),
  };
}

/** A view of one resource of another kind. */
function viewOf(parent: string, path: (name: string) => string): Kind {
  return { parent, one: (_site, name) => path(name), needsSite: 'never', columns: [] };
}

/** By name, in the order of the help. */
export const KINDS: { readonly [kind: string]: Kind } = {
  environments: ofInstallation('environments', ['environment_id', 'name'], {
    prefix: 'env_',
    member: 'name',
  }),
  // One list for each environment.
  fleets: {
    list: (environment) => `/v1/environments/${environment}/fleets`,
    one: (_site, id) => `/v1/fleets/${id}`,
    needsSite: 'never',
    columns: ['fleet_id', 'name', 'environment_id'],
    named: { prefix: 'flt_', member: 'name' },
  },
  sites: ofInstallation('sites', ['site_id', 'display_name']),
  targets: byId('targets', ['target_id', 'name', 'state', 'ahead_revision', 'created_at'], {
    prefix: 'tgt_',
    member: 'name',
  }),
  clients: byName('clients', ['client_id', 'subject']),
  grants: {
    parent: 'clients',
    list: (site) => `/v1/sites/${site}/grants`,
    one: (site, client) => `/v1/sites/${site}/clients/${client}/grants`,
    needsSite: 'always',
    columns: ['client_id', 'resource', 'access'],
  },
  routes: byName('routes', ['route_id', 'definition', 'published']),
  'route-sources': {
    parent: 'routes',
    one: (site, route) => `/v1/sites/${site}/routes/${route}/sources`,
    needsSite: 'always',
    columns: [],
  },
  brokers: {
    list: (site) => `/v1/sites/${site}/brokers`,
    one: (site, issuer, trustDomain) =>
      `/v1/sites/${site}/brokers/${issuer}${trustDomain === undefined ? '' : `/${trustDomain}`}`,
    needsSite: 'always',
    columns: ['issuer', 'trust_domain', 'url', 'pinned_keys'],
  },
  sources: byId('sources', ['source_id', 'display_name', 'states', 'waiting_for'], {
    prefix: 'tas_',
    member: 'display_name',
  }),
  'source-keys': viewOf('sources', (source) => `/v1/sources/${source}/keys`),
  policies: byId(
    'enrollment-policies',
    ['policy_id', 'display_name', 'client_id', 'approval', 'state', 'refuses_with', 'reference'],
    { prefix: 'ep_', member: 'display_name' },
  ),
  enrollments: byId('enrollments', ['enrollment_id', 'client_id', 'state', 'verified_subject', 'created_at']),
  keys: byId('derived-keys', ['key_id', 'client_id', 'status', 'expires_at', 'verified_subject']),
  'blocked-subjects': listOnly('blocked-subjects', ['issuer', 'subject', 'blocked_at', 'blocked_by']),
  'blocked-callers': listOnly('blocked-callers', [
    'issuer',
    'subject',
    'holder_thumbprint',
    'waiting_for',
    'blocked_at',
    'blocked_by',
  ]),
  profiles: listOnly('signing-profiles', ['client_id', 'route_id', 'state']),
  'signing-keys': {
    list: (site) => `/v1/sites/${site}/signing-keys`,
    isOnePage: true,
    needsSite: 'always',
    columns: ['signing_key_id', 'purpose', 'state', 'thumbprint', 'created_at', 'retire_at'],
  },
  'role-grants': ofInstallation('role-grants', ['role_grant_id', 'principal', 'role', 'scope']),
  'access-tokens': ofInstallation(
    'access-tokens',
    ['access_token_id', 'name', 'role', 'scope', 'created_by', 'last_used_at', 'expires_at'],
    { prefix: 'at_', member: 'name' },
  ),
  sessions: ofInstallation('sessions', ['session_id', 'principal', 'expires_at', 'current']),
  command: viewOf('policies', (policy) => `/v1/enrollment-policies/${policy}/command`),
  readiness: viewOf('keys', (key) => `/v1/derived-keys/${key}/readiness`),
  overview: viewOf('sites', (site) => `/v1/sites/${site}/overview`),
  propagation: viewOf('sites', (site) => `/v1/sites/${site}/propagation`),
  audit: {
    list: (site) => (site === '' ? '/v1/audit-events' : `/v1/audit-events?site_id=${site}`),
    newestOnly: true,
    needsSite: 'never',
    columns: ['at', 'kind', 'actor', 'resource_id', 'reason'],
  },
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
