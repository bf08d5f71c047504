/** Checks that the linter reports every patch that could change the check, except the known patches in `envoy/`. */
import { describe, expect, it } from '@jest/globals';
import { parseAllDocuments, stringify } from 'yaml';
import { cleanBase, exchanged, found, rulesIn } from '../../support/docs/lint-rule-cases.ts';
import { MANIFEST_SETS, textOf } from '../../support/docs/manifest-sets.ts';

const TOUCHES = ['patch-touches-check'];
const type = (name: string) => `type.googleapis.com/envoy.extensions.filters.http.${name}`;
const named = (name: string, message: string) => ({ name, typed_config: { '@type': type(message) } });
const lua = named('x', 'lua.v3.Lua');
const setOf = (name: string) => {
  const set = MANIFEST_SETS.find((one) => one.name === name);
  if (set === undefined) throw new Error(`no such set: ${name}`);
  return textOf(set);
};

/** The patches in a set of shipped manifests. */
function patchesOf(name: string, list: 'configPatches' | 'jsonPatches'): readonly object[] {
  return parseAllDocuments(setOf(name)).flatMap((document) => document.toJS()?.spec?.[list] ?? []);
}

describe('EnvoyPatchPolicy', () => {
  const clean = cleanBase('envoy-gateway');
  const rules = (operation: object, patched = 'listener.v3.Listener') => {
    const jsonPatches = [{ type: `type.googleapis.com/envoy.config.${patched}`, name: 'x', operation }];
    const kind = { apiVersion: 'gateway.envoyproxy.io/v1alpha1', kind: 'EnvoyPatchPolicy' };
    return rulesIn(`${clean}---\n${stringify({ ...kind, metadata: { name: 'y' }, spec: { jsonPatches } })}`);
  };
  const filters = '/filter_chains/0/filters/0/typed_config/http_filters';
  const check = "$..http_filters[?(@.name == 'envoy.filters.http.ext_authz/securitypolicy/a/b')]";
  const router = "$..http_filters[?(@.name == 'envoy.filters.http.router')]";
  const decision = { header: { name: 'x-proofgate-decision-id', present_match: true } };
  const rbac = (settings: object) => ({
    name: 'proofgate.decision',
    typed_config: { '@type': type('rbac.v3.RBAC'), ...settings },
  });
  const decided = { policies: { decided: { permissions: [decision], principals: [{ any: true }] } } };

  it.each([
    ['removal by an index', { op: 'remove', path: `${filters}/1` }],
    ['removal of the settings', { op: 'remove', path: `${filters}/1/typed_config` }],
    ['removal of the list', { op: 'remove', path: filters }],
    ['removal of the chain', { op: 'remove', path: '/filter_chains/0' }],
    ['removal of all', { op: 'remove', jsonPath: '$..http_filters[*]' }],
    [
      'removal by the type',
      { op: 'remove', jsonPath: "$..http_filters[?(@.typed_config['@type'] =~ 'Authz$')]" },
    ],
    ['removal of one setting', { op: 'remove', jsonPath: check, path: 'typed_config/encode_raw_headers' }],
    ['another list', { op: 'replace', path: filters, value: [named('r', 'router.v3.Router')] }],
    ['another filter in its place', { op: 'replace', jsonPath: check, value: lua }],
    ['other settings', { op: 'add', jsonPath: check, path: 'typed_config', value: lua.typed_config }],
    ['moving it', { op: 'move', from: `${filters}/1`, path: `${filters}/3` }],
    ['copying over it', { op: 'copy', from: `${filters}/3`, path: `${filters}/1` }],
    ['its switch', { op: 'add', jsonPath: check, path: 'disabled', value: true }],
    ['a switch by index', { op: 'add', path: `${filters}/1/disabled`, value: true }],
    ['every switch', { op: 'replace', jsonPath: '$..disabled', value: true }],
    ['another name', { op: 'replace', jsonPath: check, path: 'name', value: 'guard' }],
    ['failing open', { op: 'add', jsonPath: check, path: 'typed_config/failure_mode_allow', value: true }],
    [
      'failing open, by an expression',
      { op: 'replace', jsonPath: `${check}.typed_config.failure_mode_allow`, value: true },
    ],
    [
      'failing open, in camel case',
      { op: 'add', jsonPath: check, path: 'typedConfig/failureModeAllow', value: true },
    ],
    [
      'a known setting that is off',
      { op: 'add', jsonPath: check, path: 'typed_config/encode_raw_headers', value: false },
    ],
    ['a filter behind it', { op: 'add', jsonPath: router, value: lua }],
    ['a filter in front of it', { op: 'add', jsonPath: '$..http_filters', path: '0', value: lua }],
    ['a decision that lets more through', { op: 'add', jsonPath: router, value: rbac({ rules: {} }) }],
    [
      'a decision beside a matcher',
      { op: 'add', jsonPath: router, value: rbac({ rules: decided, matcher: {} }) },
    ],
    ['a listener', { op: 'add', path: '', value: { filter_chains: [] } }],
  ])('%s', (_what, operation) => {
    expect(rules(operation)).toEqual(TOUCHES);
  });

  it.each([
    ['switches of routes', { op: 'remove', jsonPath: '$..routes[0].typed_per_filter_config' }],
    [
      'one switch',
      { op: 'remove', path: '/virtual_hosts/0/typed_per_filter_config/envoy.filters.http.ext_authz~1x' },
    ],
    ['a list of routes', { op: 'add', path: '/virtual_hosts/0/routes', value: [{ match: {}, route: {} }] }],
    ['upgrades', { op: 'add', path: '/virtual_hosts/0/routes/0/route/upgrade_configs', value: [{}] }],
  ])('%s', (_what, operation) => {
    expect(rules(operation, 'route.v3.RouteConfiguration')).toEqual(TOUCHES);
  });

  it.each([
    ['its TLS', { op: 'remove', path: '/transport_socket' }],
    ['filters of it', { op: 'add', path: '/typed_extension_protocol_options', value: {} }],
    ['its address', { op: 'add', path: '/load_assignment', value: {} }],
  ])('the cluster: %s', (_what, operation) => {
    expect(rules(operation, 'cluster.v3.Cluster')).toEqual(TOUCHES);
  });

  it('is known as `envoy/` has it', () => {
    const shipped = patchesOf('envoy-gateway-socket', 'jsonPatches');
    expect(shipped.length).toBeGreaterThan(8);
    expect(rules({ op: 'add', jsonPath: router, value: rbac({ rules: decided }) })).toEqual([]);
  });
});

describe('EnvoyFilter', () => {
  const clean = cleanBase('istio');
  const rules = (change: object) => {
    const kind = { apiVersion: 'networking.istio.io/v1alpha3', kind: 'EnvoyFilter' };
    return rulesIn(
      `${clean}\n---\n${stringify({ ...kind, metadata: {}, spec: { configPatches: [change] } })}`,
    );
  };
  const change = (applyTo: string, operation: string, name: string, value?: object) => {
    const filter = applyTo === 'NETWORK_FILTER' ? { name } : { subFilter: { name } };
    return rules({ applyTo, match: { listener: { filterChain: { filter } } }, patch: { operation, value } });
  };
  const check = 'envoy.filters.http.ext_authz';
  const checkWith = (settings: object) => ({
    typed_config: { '@type': type('ext_authz.v3.ExtAuthz'), ...settings },
  });
  const manager =
    'type.googleapis.com/envoy.extensions.filters.network.http_connection_manager.v3.HttpConnectionManager';

  it.each([
    ['REMOVE', check, undefined],
    ['REPLACE', check, named('x', 'cors.v3.Cors')],
    ['REMOVE', 'envoy.filters.http.rbac', undefined],
    ['REPLACE', 'envoy.filters.http.rbac', named('x', 'rbac.v3.RBAC')],
    ['MERGE', '', { typed_config: { '@type': type('rbac.v3.RBAC'), shadow_rules: {} } }],
    ['MERGE', check, { name: 'guard', disabled: true }],
    ['MERGE', check, { ...checkWith({ encode_raw_headers: true }), disabled: true }],
    ['MERGE', check, { ...checkWith({ encode_raw_headers: true }), name: 'guard' }],
    ['MERGE', check, checkWith({ failure_mode_allow: true })],
    ['MERGE', check, checkWith({ filter_enabled_metadata: {} })],
    ['MERGE', check, checkWith({ encode_raw_headers: true, encodeRawHeaders: false })],
    ['MERGE', check, { typed_config: { '@type': type('lua.v3.Lua'), encode_raw_headers: true } }],
    ['INSERT_BEFORE', check, lua],
    ['INSERT_FIRST', '', lua],
    ['INSERT_AFTER', check, lua],
    ['ADD', '', lua],
  ])('that says %s of %s: %j', (operation, name, value) => {
    expect(change('HTTP_FILTER', operation, name, value).filter((rule) => rule !== 'setting-twice')).toEqual(
      TOUCHES,
    );
  });

  it.each(['envoy.filters.network.ext_authz', 'envoy.filters.network.rbac'])('that removes %s', (name) => {
    expect(change('NETWORK_FILTER', 'REMOVE', name)).toEqual(TOUCHES);
  });

  it.each([
    'LISTENER',
    'FILTER_CHAIN',
    'NETWORK_FILTER',
    'ROUTE_CONFIGURATION',
    'VIRTUAL_HOST',
    'HTTP_ROUTE',
    'CLUSTER',
    'EXTENSION_CONFIG',
    'BOOTSTRAP',
  ])('for %s', (applyTo) => {
    expect(rules({ applyTo, patch: { operation: 'ADD', value: { name: 'x' } } })).toEqual(TOUCHES);
    const perFilter = { typed_per_filter_config: { [check]: { disabled: true } } };
    expect(rules({ applyTo, patch: { operation: 'MERGE', value: perFilter } })).toEqual(TOUCHES);
  });

  it.each([
    [{ normalize_path: false }, TOUCHES],
    [{ http_filters: [] }, TOUCHES],
    [{ use_remote_address: false }, TOUCHES],
    [{ use_remote_address: true, stream_idle_timeout: '60s' }, []],
  ])('that merges %j into the connection manager', (settings, expected) => {
    const value = { typed_config: { '@type': manager, ...settings } };
    expect(change('NETWORK_FILTER', 'MERGE', 'envoy.filters.network.http_connection_manager', value)).toEqual(
      expected,
    );
  });

  it.each([
    [{ circuit_breakers: { thresholds: [{ max_requests: 9 }] }, connect_timeout: '1s' }, []],
    [{ transport_socket: { name: 'envoy.transport_sockets.raw_buffer' } }, TOUCHES],
    [{ connect_timeout: '1s', typed_extension_protocol_options: {} }, TOUCHES],
  ])('that merges %j into clusters', (value, expected) => {
    expect(rules({ applyTo: 'CLUSTER', patch: { operation: 'MERGE', value } })).toEqual(expected);
  });
});

describe('the shipped patches', () => {
  it.each([
    ['istio-gateway-socket', 'encode_raw_headers: true', 'encode_raw_headers: false'],
    ['istio-gateway-socket', '- remove: x-proofgate-subject', '- append: { header: { key: x, value: y } }'],
    ['istio-gateway-socket', 'name: proofgate.callers', 'name: envoy.filters.http.rbac'],
    [
      'istio-gateway-socket',
      'principals: [{ any: true }]',
      'principals: [{ any: true }]\n                open: { permissions: [{ any: true }], principals: [{ any: true }] }',
    ],
    [
      'istio-gateway-socket',
      'value: { response_headers_to_remove',
      'value: { routes: [], response_headers_to_remove',
    ],
    ['istio-sidecar-loopback', 'use_remote_address: true', 'use_remote_address: false'],
    [
      'envoy-gateway-socket',
      'path: typed_config/validate_mutations',
      'path: typed_config/failure_mode_allow',
    ],
    ['envoy-gateway-socket', "'envoy.filters.http.router'", "'envoy.filters.http.cors'"],
    ['envoy-gateway-socket', 'jsonPath: $..upgrade_configs', 'jsonPath: $..typed_per_filter_config'],
    ['envoy-gateway-socket', 'prefix_len: 32', 'prefix_len: 8'],
  ])('are no longer known when they are changed: %s, %s', (set, passage, by) => {
    const touched = found(exchanged(setOf(set), passage, by)).filter(
      ({ rule }) => rule === 'patch-touches-check',
    );
    expect(touched).toHaveLength(1);
  });
});

it.each(['"{{ .Values.patches }}"', '[]', 'null'])('finds patches that cannot be read: %s', (patches) => {
  const text = `apiVersion: networking.istio.io/v1alpha3\nkind: EnvoyFilter\nspec: { configPatches: ${patches} }\n`;
  expect(rulesIn(`${cleanBase('istio').trimEnd()}\n---\n${text}`)).toEqual(TOUCHES);
});

it('finds a bootstrap that Envoy Gateway merges or replaces', () => {
  const bootstrap = { type: 'Merge', value: 'admin: {}' };
  const proxy = { apiVersion: 'gateway.envoyproxy.io/v1alpha1', kind: 'EnvoyProxy', spec: { bootstrap } };
  expect(rulesIn(`${cleanBase('envoy-gateway')}---\n${stringify(proxy)}`)).toEqual(TOUCHES);
});
