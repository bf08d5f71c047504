/**
 * Checks that the linter finds each bypass of the check that an attacker or a mistake could configure, in a bootstrap and in a
 * `config_dump`.
 */
import { expect, it } from '@jest/globals';
import { parse, stringify } from 'yaml';
import { cleanBase, rulesIn } from '../../support/docs/lint-rule-cases.ts';

const TYPE = 'type.googleapis.com/envoy.';
const ADMIN = `${TYPE}admin.v3.`;
const CHECK = 'envoy.filters.http.ext_authz';
const perRoute = `${TYPE}extensions.filters.http.ext_authz.v3.ExtAuthzPerRoute`;
const http = (kind: string, message: string, settings: object = {}) => ({
  name: kind,
  typed_config: { '@type': `${TYPE}extensions.filters.http.${kind}.v3.${message}`, ...settings },
});
const network = (kind: string, message: string, settings: object = {}) => ({
  name: kind,
  typed_config: { '@type': `${TYPE}extensions.filters.network.${kind}.v3.${message}`, ...settings },
});

/** The clean bootstrap, and the parts of it that tests change. */
function bootstrapParts() {
  const bootstrap = parse(cleanBase('envoy'));
  const { clusters, listeners } = bootstrap.static_resources;
  const manager = listeners[0].filter_chains[0].filters[0].typed_config;
  const filters = manager.http_filters;
  const at = filters.findIndex(({ name }: { name: string }) => name === CHECK);
  const [host] = manager.route_config.virtual_hosts;
  return { bootstrap, clusters, listeners, manager, filters, at, check: filters[at].typed_config, host };
}

type Parts = ReturnType<typeof bootstrapParts>;

/** The config dump of such an Envoy. */
function dumpOf({ bootstrap, clusters, listeners }: Parts, discovered: readonly object[]): string {
  const configs = [
    { '@type': `${ADMIN}BootstrapConfigDump`, bootstrap },
    {
      '@type': `${ADMIN}ClustersConfigDump`,
      static_clusters: clusters.map((cluster: object) => ({ cluster })),
    },
    {
      '@type': `${ADMIN}ListenersConfigDump`,
      dynamic_listeners: listeners.map((listener: object) => ({ active_state: { listener } })),
    },
    {
      '@type': `${ADMIN}EcdsConfigDump`,
      ecds_filters: discovered.map((ecds_filter) => ({ ecds_filter })),
    },
  ];
  return JSON.stringify({ configs }, undefined, 1);
}

const remote = { address: { socket_address: { address: '10.0.0.8', port_value: 9191 } } };
const endpointsAt = (endpoint: object) => ({ endpoints: [{ lb_endpoints: [{ endpoint }] }] });
const rogue = { name: 'rogue', load_assignment: endpointsAt(remote) };
const tcp = network('tcp_proxy', 'TcpProxy', { cluster: 'upstream' });
const appended = [{ append: { header: { key: 'x-proofgate-subject', value: 'admin' } } }];

const WAYS: readonly (readonly [what: string, rule: string, change: (parts: Parts) => unknown])[] = [
  [
    'off for one route',
    'route-unchecked',
    ({ host }) => {
      host.routes[0].typed_per_filter_config = { [CHECK]: { '@type': perRoute, disabled: true } };
    },
  ],
  [
    'off for a virtual host, by FilterConfig',
    'route-unchecked',
    ({ host }) => {
      const entry = { '@type': `${TYPE}config.route.v3.FilterConfig`, disabled: true };
      host.typed_per_filter_config = { [CHECK]: entry };
    },
  ],
  [
    'off for a weighted cluster',
    'route-unchecked',
    ({ host }) => {
      const typed_per_filter_config = { [CHECK]: { '@type': perRoute, disabled: true } };
      host.routes[0].route = {
        weighted_clusters: { clusters: [{ name: 'upstream', weight: 1, typed_per_filter_config }] },
      };
    },
  ],
  [
    'failing open',
    'fails-open',
    ({ check }) => {
      check.failure_mode_allow = true;
    },
  ],
  [
    'failing open, in camel case',
    'fails-open',
    ({ check }) => {
      check.failureModeAllow = true;
    },
  ],
  [
    'off in its chain',
    'check-off',
    ({ at, filters }) => {
      filters[at].disabled = true;
    },
  ],
  [
    'optional',
    'check-optional',
    ({ at, filters }) => {
      filters[at].is_optional = true;
    },
  ],
  [
    'for a share of the requests',
    'check-sampled',
    ({ check }) => {
      check.filter_enabled = { default_value: { numerator: 99, denominator: 'HUNDRED' } };
    },
  ],
  [
    'switched by a runtime key',
    'check-sampled',
    ({ check }) => {
      check.filter_enabled = { default_value: { numerator: 100 }, runtime_key: 'check' };
    },
  ],
  [
    'on a condition',
    'check-conditional',
    ({ check }) => {
      check.filter_enabled_metadata = { filter: 'x', path: [{ key: 'y' }], value: { present_match: true } };
    },
  ],
  [
    'within a matcher',
    'check-conditional',
    ({ at, filters }) => {
      const typed_config = {
        '@type': `${TYPE}extensions.common.matching.v3.ExtensionWithMatcher`,
        extension_config: { ...filters[at] },
        xds_matcher: {},
      };
      filters[at] = { name: CHECK, typed_config };
    },
  ],
  [
    'a filter behind it',
    'filter-behind-check',
    ({ at, filters }) => filters.splice(at + 1, 0, http('lua', 'Lua')),
  ],
  [
    'a filter behind the router',
    'filter-behind-check',
    ({ filters }) => {
      filters.at(-1).typed_config.upstream_http_filters = [
        http('lua', 'Lua'),
        http('upstream_codec', 'UpstreamCodec'),
      ];
    },
  ],
  [
    'a filter of the API cluster',
    'filter-behind-check',
    ({ clusters }) => {
      const options = 'envoy.extensions.upstreams.http.v3.HttpProtocolOptions';
      const value = {
        '@type': `type.googleapis.com/${options}`,
        http_filters: [http('header_mutation', 'HeaderMutation')],
      };
      clusters[1].typed_extension_protocol_options = { [options]: value };
    },
  ],
  [
    'a filter of another kind under its name',
    'check-missing',
    ({ at, filters }) => {
      filters[at] = { ...http('cors', 'Cors'), name: CHECK };
    },
  ],
  [
    'a cache in front of it',
    'answers-before-check',
    ({ at, filters }) => filters.splice(at, 0, http('cache', 'CacheConfig')),
  ],
  [
    'a program in front of it',
    'answers-before-check',
    ({ filters }) => filters.unshift(http('wasm', 'Wasm')),
  ],
  [
    'another server, in the clear',
    'verifier-plaintext',
    ({ check, clusters }) => {
      clusters.push(rogue);
      check.grpc_service.envoy_grpc.cluster_name = 'rogue';
    },
  ],
  [
    'another server for one route',
    'verifier-plaintext',
    ({ clusters, host }) => {
      clusters.push(rogue);
      const grpc_service = { timeout: '0.5s', envoy_grpc: { cluster_name: 'rogue' } };
      host.typed_per_filter_config = { [CHECK]: { '@type': perRoute, check_settings: { grpc_service } } };
    },
  ],
  [
    'another server, by google_grpc',
    'verifier-plaintext',
    ({ check }) => {
      check.grpc_service = { timeout: '0.5s', google_grpc: { target_uri: 'rogue.example:9191' } };
    },
  ],
  [
    'one endpoint more, in the clear',
    'verifier-plaintext',
    ({ clusters }) => {
      clusters[0].load_assignment.endpoints[0].lb_endpoints.push({ endpoint: remote });
    },
  ],
  [
    'any certificate',
    'verifier-unverified',
    ({ clusters }) => {
      const typed_config = { '@type': `${TYPE}extensions.transport_sockets.tls.v3.UpstreamTlsContext` };
      clusters[0].load_assignment = endpointsAt(remote);
      clusters[0].transport_socket = { name: 'tls', typed_config };
    },
  ],
  [
    'a cluster that is not there',
    'not-in-file',
    ({ check }) => {
      check.grpc_service.envoy_grpc.cluster_name = 'none';
    },
  ],
  [
    'no body',
    'body-not-shown',
    ({ check }) => {
      delete check.with_request_body;
    },
  ],
  [
    'a part of the body',
    'partial-body',
    ({ check }) => {
      check.with_request_body.allow_partial_message = true;
    },
  ],
  [
    'a streamed body',
    'body-streamed',
    ({ host }) => {
      const check_settings = { disable_request_body_buffering: true };
      host.typed_per_filter_config = { [CHECK]: { '@type': perRoute, check_settings } };
    },
  ],
  [
    'hidden headers',
    'headers-hidden',
    ({ check }) => {
      check.disallowed_headers = { patterns: [{ exact: 'authorization' }] };
    },
  ],
  [
    'ignored header changes',
    'header-changes-refused',
    ({ check }) => {
      check.decoder_header_mutation_rules = { disallow_all: { value: true } };
    },
  ],
  [
    "callers' context headers",
    'context-headers-kept',
    ({ filters }) => {
      filters[0].typed_config.mutations.request_mutations.shift();
    },
  ],
  [
    'a context header of the route',
    'context-header-written',
    ({ host }) => {
      host.request_headers_to_add = [{ header: { key: 'X-Proofgate-Subject', value: 'admin' } }];
    },
  ],
  [
    'a context header of a filter',
    'context-header-written',
    ({ filters }) => {
      filters[0].typed_config.mutations.request_mutations.push(...appended);
    },
  ],
  [
    'a second listener',
    'check-missing',
    ({ listeners }) => {
      const second = structuredClone(listeners[0]);
      second.filter_chains[0].filters[0].typed_config.http_filters.splice(1, 1);
      listeners.push({ ...second, name: 'second' });
    },
  ],
  [
    'a second listener that claims to be outbound',
    'tcp-proxy',
    ({ listeners }) => {
      listeners[0].traffic_direction = 'INBOUND';
      listeners.push({ ...remote, traffic_direction: 'OUTBOUND', filter_chains: [{ filters: [tcp] }] });
    },
  ],
  [
    'a second filter chain',
    'tcp-proxy',
    ({ listeners }) => listeners[0].filter_chains.push({ filters: [tcp] }),
  ],
  [
    'a default filter chain',
    'tcp-proxy',
    ({ listeners }) => {
      listeners[0].default_filter_chain = { filters: [tcp] };
    },
  ],
  [
    'an upgrade',
    'upgrades-allowed',
    ({ manager }) => {
      manager.upgrade_configs = [{ upgrade_type: 'websocket' }];
    },
  ],
  [
    'a tunnel',
    'upgrades-allowed',
    ({ host }) => {
      host.routes[0].match = { connect_matcher: {} };
    },
  ],
  [
    'a target that the caller names',
    'caller-chooses-target',
    ({ host }) => {
      host.routes[0].route = { cluster_header: 'x-target' };
    },
  ],
  [
    'another route after it',
    'route-cache-cleared',
    ({ check }) => {
      check.clear_route_cache = true;
    },
  ],
  ['no decision needed', 'decision-not-required', ({ at, filters }) => filters.splice(at + 1, 1)],
  [
    'no decision needed on a route',
    'decision-not-required',
    ({ host }) => {
      const entry = { '@type': `${TYPE}extensions.filters.http.rbac.v3.RBACPerRoute` };
      host.routes[0].typed_per_filter_config = { 'envoy.filters.http.rbac': entry };
    },
  ],
  [
    'routes from elsewhere',
    'not-in-file',
    ({ manager }) => {
      delete manager.route_config;
      manager.rds = { route_config_name: 'none', config_source: { ads: {} } };
    },
  ],
  [
    'a filter from elsewhere',
    'not-in-file',
    ({ at, filters }) => {
      filters.splice(at + 1, 0, { name: 'later', config_discovery: { config_source: { ads: {} } } });
    },
  ],
  [
    'filter chains from elsewhere',
    'not-in-file',
    ({ listeners }) => {
      listeners[0].filter_chains[0].filters.unshift({
        name: 'later',
        config_discovery: { config_source: { ads: {} } },
      });
    },
  ],
];

it.each(WAYS)('finds the check weakened: %s (%s)', (_what, rule, change) => {
  const parts = bootstrapParts();
  change(parts);
  for (const text of [stringify(parts.bootstrap), dumpOf(parts, [])]) expect(rulesIn(text)).toContain(rule);
});

it('finds a check that is fetched and fails open, and another filter that is fetched in its place', () => {
  const parts = bootstrapParts();
  const fetched = { name: CHECK, typed_config: { ...parts.check, failure_mode_allow: true } };
  parts.filters[parts.at] = { name: CHECK, config_discovery: { config_source: { ads: {} } } };
  expect(rulesIn(dumpOf(parts, [fetched]))).toEqual(['fails-open']);
  expect(rulesIn(dumpOf(parts, [{ ...http('cors', 'Cors'), name: CHECK }]))).toContain('check-missing');
  expect(rulesIn(dumpOf(parts, [{ ...http('lua', 'Lua'), name: CHECK }]))).toContain('check-missing');
  expect(rulesIn(dumpOf(parts, []))).toContain('not-in-file');
});

it('has no finding in the same without a change', () => {
  expect(rulesIn(dumpOf(bootstrapParts(), []))).toEqual([]);
});
