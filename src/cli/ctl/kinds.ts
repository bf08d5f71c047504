/** The kinds of resources that `proofgate ctl get` shows. */

export interface Kind {
  /** Path of the list; `site`: percent-encoded. */
  readonly list?: (site: string) => string;
  /** Path of a single resource; its name is percent-encoded. */
  readonly one?: (site: string, name: string, trustDomain: string | undefined) => string;
  /** An endless list, of which only the newest page is shown. */
  readonly newestOnly?: true;
  readonly needsSite: 'list' | 'always' | 'never';
  /** Members that a list shows, in this order. */
  readonly columns: readonly string[];
}

/** Resources of a site whose IDs are unique in the installation. */
function byId(resource: string, columns: readonly string[]): Kind {
  return {
    list: (site) => `/v1/sites/${site}/${resource}`,
    one: (_site, id) => `/v1/${resource}/${id}`,
    needsSite: 'list',
    columns,
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

function ofInstallation(resource: string, columns: readonly string[]): Kind {
  return {
    list: () => `/v1/${resource}`,
    one: (_site, id) => `/v1/${resource}/${id}`,
    needsSite: 'never',
    columns,
  };
}

function oneOnly(path: (name: string) => string): Kind {
  return { one: (_site, name) => path(name), needsSite: 'never', columns: [] };
}

/** By name, in the order of the help. */
export const KINDS: { readonly [kind: string]: Kind } = {
  environments: ofInstallation('environments', ['environment_id', 'name']),
  sites: ofInstallation('sites', ['site_id', 'display_name']),
  targets: byId('targets', ['target_id', 'name', 'state', 'ahead_revision', 'created_at']),
  clients: byName('clients', ['client_id', 'subject']),
  routes: byName('routes', ['route_id', 'definition', 'published']),
  brokers: {
    list: (site) => `/v1/sites/${site}/brokers`,
    one: (site, issuer, trustDomain) =>
      `/v1/sites/${site}/brokers/${issuer}${trustDomain === undefined ? '' : `/${trustDomain}`}`,
    needsSite: 'always',
    columns: ['issuer', 'trust_domain', 'url', 'pinned_keys'],
  },
  sources: byId('sources', ['source_id', 'display_name', 'states', 'waiting_for']),
  policies: byId('enrollment-policies', [
    'policy_id',
    'display_name',
    'client_id',
    'approval',
    'state',
    'refuses_with',
    'reference',
  ]),
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
  command: oneOnly((policy) => `/v1/enrollment-policies/${policy}/command`),
  readiness: oneOnly((key) => `/v1/derived-keys/${key}/readiness`),
  propagation: oneOnly((site) => `/v1/sites/${site}/propagation`),
  audit: {
    list: (site) => (site === '' ? '/v1/audit-events' : `/v1/audit-events?site_id=${site}`),
    newestOnly: true,
    needsSite: 'never',
    columns: ['at', 'kind', 'actor', 'resource_id'],
  },
};

export function kindOf(name: string): Kind | undefined {
  return Object.hasOwn(KINDS, name) ? KINDS[name] : undefined;
}
