/** Patches that take the check away, or put something behind it, however they say where. */
import { readFileSync } from 'node:fs';
import { describe, expect, it } from '@jest/globals';
import { stringify } from 'yaml';
import { found } from './rule-files.ts';

const file = (path: string) => readFileSync(new URL(`./files/${path}`, import.meta.url), 'utf8');
const type = (name: string) => `type.googleapis.com/envoy.extensions.filters.http.${name}`;
const named = (name: string, message: string) => ({ name, typed_config: { '@type': type(message) } });
const lua = named('x', 'lua.v3.Lua');
const patchOf = (apiVersion: string, kind: string, spec: object) =>
  `---\n${stringify({ apiVersion, kind, spec })}`;
const rulesIn = (text: string) => [...new Set(found(text).map(({ rule }) => rule))].toSorted();

describe('EnvoyPatchPolicy', () => {
  const others = file('policy-overridden/good.yaml').trimEnd();
  const rules = (...operations: readonly object[]) => {
    const jsonPatches = operations.map((operation) => ({ operation }));
    return rulesIn(
      `${others}\n${patchOf('gateway.envoyproxy.io/v1alpha1', 'EnvoyPatchPolicy', { jsonPatches })}`,
    );
  };
  const filters = '/filter_chains/0/filters/0/typed_config/http_filters';
  const check = "$..http_filters[?(@.name == 'envoy.filters.http.ext_authz/securitypolicy/a/b')]";
  const router = "$..http_filters[?(@.name == 'envoy.filters.http.router')]";
  const otherFilter = { '@type': type('lua.v3.Lua') };

  it.each([
    ['an index', { op: 'remove', path: `${filters}/1` }],
    ['an index, the settings', { op: 'remove', path: `${filters}/1/typed_config` }],
    ['the list', { op: 'remove', path: filters }],
    ['the chain', { op: 'remove', path: '/filter_chains/0' }],
    ['an index in an expression', { op: 'remove', jsonPath: '$..http_filters[1]' }],
    ['all', { op: 'remove', jsonPath: '$..http_filters[*]' }],
    ['the type', { op: 'remove', jsonPath: "$..http_filters[?(@.typed_config['@type'] =~ 'ExtAuthz$')]" }],
    ['an expression alone', { op: 'remove', jsonPath: "$..[?(@.name =~ 'ext_authz')]" }],
    ['what is not one', { op: 'remove', jsonPath: "$..http_filters[?(@.name != 'x')]" }],
    ['another list', { op: 'replace', path: filters, value: [named('r', 'router.v3.Router')] }],
    ['another list, added', { op: 'add', jsonPath: '$..http_filters', value: [] }],
    ['other settings', { op: 'add', jsonPath: check, path: 'typed_config', value: otherFilter }],
    ['moving it', { op: 'move', from: `${filters}/1`, path: `${filters}/3` }],
    ['a switch by index', { op: 'add', path: `${filters}/1/disabled`, value: true }],
    ['every switch', { op: 'replace', jsonPath: '$..disabled', value: true }],
    ['another name', { op: 'replace', jsonPath: check, path: 'name', value: 'guard' }],
    ['what routes switch on', { op: 'remove', jsonPath: '$..routes[0].typed_per_filter_config' }],
    ['every entry of routes', { op: 'remove', jsonPath: '$..typed_per_filter_config[*]' }],
    ['a list of routes', { op: 'add', path: '/virtual_hosts/0/routes', value: [{ match: {}, route: {} }] }],
  ])('takes the check away by %s', (_what, operation) => {
    expect(rules(operation)).toEqual(['check-removed']);
  });

  it('takes it away by another filter in its place', () => {
    expect(rules({ op: 'replace', jsonPath: check, value: lua })).toEqual(['check-removed']);
    expect(rules({ op: 'replace', path: `${filters}/1`, value: lua })).toContain('check-removed');
    expect(
      rules({ op: 'replace', path: `${filters}/1`, value: named('c', 'ext_authz.v3.ExtAuthz') }),
    ).not.toContain('check-removed');
  });

  it.each([
    ['another filter', { op: 'remove', jsonPath: "$..http_filters[?(@.name == 'envoy.filters.http.cors')]" }],
    ['what is below another', { op: 'remove', jsonPath: router, path: 'typed_config/start_child_span' }],
    ['a setting of it', { op: 'remove', jsonPath: check, path: 'typed_config/stat_prefix' }],
    ['a setting by index', { op: 'remove', path: `${filters}/1/typed_config/stat_prefix` }],
    ['the switch of another', { op: 'add', jsonPath: router, path: 'disabled', value: true }],
    ['upgrades', { op: 'remove', jsonPath: '$..upgrade_configs' }],
    ['routes', { op: 'remove', path: '/virtual_hosts/0/routes/0' }],
    ['the entry of another filter', { op: 'remove', jsonPath: '$..typed_per_filter_config', path: 'cors' }],
  ])('may take away %s', (_what, operation) => {
    expect(rules(operation)).toEqual([]);
  });

  it('puts a filter behind the check unless it is sure to come before it', () => {
    for (const where of [
      { jsonPath: router },
      { path: `${filters}/2` },
      { jsonPath: '$..http_filters', path: '3' },
      { jsonPath: "$..http_filters[?(@.name != 'envoy.filters.http.ext_authz')]" },
    ]) {
      expect(rules({ op: 'add', ...where, value: lua })).toEqual(['filter-behind-check']);
    }
    for (const where of [
      { jsonPath: check },
      { jsonPath: "$..http_filters[?(@.typed_config['@type'] =~ 'ExtAuthz$')]" },
      { path: `${filters}/0` },
      { jsonPath: '$..http_filters', path: '0' },
    ]) {
      expect(rules({ op: 'add', ...where, value: lua })).toEqual([]);
    }
  });

  it.each([
    ['other settings of the router', { jsonPath: router, path: 'typed_config' }, [lua], true],
    ['its list', { jsonPath: router, path: 'typed_config/upstream_http_filters' }, [lua], false],
    ['one more', { jsonPath: '$', path: `${filters}/0/typed_config/upstream_http_filters/0` }, lua, false],
  ])('puts a filter behind the check as one of the upstream: %s', (_what, where, value, isRouter) => {
    const settings = { '@type': type('router.v3.Router'), upstream_http_filters: value };
    expect(rules({ op: 'replace', ...where, value: isRouter ? settings : value })).toContain(
      'filter-behind-check',
    );
  });

  it.each(['', '/0', '/-'])('puts a filter behind the check as one of a cluster: http_filters%s', (index) => {
    const options = 'envoy.extensions.upstreams.http.v3.HttpProtocolOptions';
    const path = `/typed_extension_protocol_options/${options}/http_filters${index}`;
    const operation = { op: 'add', path, value: index === '' ? [lua] : lua };
    const patch = { type: 'type.googleapis.com/envoy.config.cluster.v3.Cluster', name: 'orders', operation };
    const spec = { jsonPatches: [patch] };
    expect(
      rulesIn(`${others}\n${patchOf('gateway.envoyproxy.io/v1alpha1', 'EnvoyPatchPolicy', spec)}`),
    ).toContain('filter-behind-check');
  });

  it('takes away the filter that wants a decision', () => {
    const header = { name: 'x-proofgate-decision-id', present_match: true };
    const policies = { decided: { permissions: [{ header }], principals: [{ any: true }] } };
    const config = { '@type': type('rbac.v3.RBAC'), rules: { policies } };
    const put = { op: 'add', jsonPath: router, value: { name: 'decision', typed_config: config } };
    const remove = (name: string) => ({ op: 'remove', jsonPath: `$..http_filters[?(@.name == '${name}')]` });
    expect(rules(put, remove('decision'))).toEqual(['decision-not-required']);
    expect(rules(put, remove('other'))).toEqual([]);
  });

  it('that gives the whole list is read in its order', () => {
    const guard = named('c', 'ext_authz.v3.ExtAuthz');
    const list = (...value: readonly object[]) => rules({ op: 'replace', path: filters, value });
    expect(list(lua, guard)).not.toContain('filter-behind-check');
    expect(list(guard, lua)).toContain('filter-behind-check');
    expect(list(guard, lua)).not.toContain('check-removed');
  });
});

describe('EnvoyFilter', () => {
  const others = file('policy-empty/good.yaml').trimEnd();
  const rules = (applyTo: string, operation: string, name: string, value?: object) => {
    const filter = applyTo === 'NETWORK_FILTER' ? { name } : { subFilter: { name } };
    const change = { applyTo, match: { listener: { filterChain: { filter } } }, patch: { operation, value } };
    return rulesIn(
      `${others}\n${patchOf('networking.istio.io/v1alpha3', 'EnvoyFilter', { configPatches: [change] })}`,
    );
  };

  it.each([
    ['REPLACE', 'envoy.filters.http.ext_authz', named('x', 'cors.v3.Cors')],
    ['REMOVE', 'envoy.filters.http.rbac', undefined],
    ['REPLACE', 'envoy.filters.http.rbac', named('x', 'rbac.v3.RBAC')],
    ['MERGE', '', { typed_config: { '@type': type('rbac.v3.RBAC'), shadow_rules: {} } }],
    ['MERGE', 'envoy.filters.http.ext_authz', { name: 'guard', disabled: true }],
  ])('takes the check away by %s of %s', (operation, name, value) => {
    expect(rules('HTTP_FILTER', operation, name, value)).toEqual(['check-removed']);
  });

  it('takes away what connections are asked about', () => {
    for (const name of ['envoy.filters.network.ext_authz', 'envoy.filters.network.rbac']) {
      expect(rules('NETWORK_FILTER', 'REMOVE', name)).toEqual(['check-removed']);
    }
  });

  it('may put another ext_authz in its place, and take other filters away', () => {
    const guard = named('c', 'ext_authz.v3.ExtAuthz');
    const replaced = rules('HTTP_FILTER', 'REPLACE', 'envoy.filters.http.ext_authz', guard);
    expect(replaced).not.toContain('check-removed');
    expect(rules('HTTP_FILTER', 'REMOVE', 'envoy.filters.http.cors')).toEqual([]);
  });

  it.each([
    ['INSERT_AFTER', 'envoy.filters.http.cors'],
    ['INSERT_BEFORE', 'envoy.filters.http.cors'],
    ['REPLACE', 'envoy.filters.http.fault'],
    ['ADD', ''],
  ])('puts a filter behind the check by %s %s', (operation, name) => {
    expect(rules('HTTP_FILTER', operation, name, lua)).toEqual(['filter-behind-check']);
  });

  const namespace = 'envoy.filters.http.rbac';
  const lookalike = { '@type': type('rbac.v3.RBAC'), shadow_rules: {} };
  it.each([
    ['set_metadata', { metadata: [{ metadata_namespace: namespace }] }],
    ['header_to_metadata', { request_rules: [{ on_header_present: { metadata_namespace: namespace } }] }],
    ['lua', { default_source_code: { inline_string: `m:set("${namespace}", "k", "v")` } }],
    ['rbac', { ...lookalike, shadow_rules_stat_prefix: 'istio_ext_authz_' }],
  ])('writes by %s what the check hangs on', (kind, settings) => {
    const filter = { name: 'x', typed_config: { '@type': type(`${kind}.v3.Filter`), ...settings } };
    expect(rules('HTTP_FILTER', 'INSERT_BEFORE', 'envoy.filters.http.ext_authz', filter)).toEqual([
      'check-conditional',
    ]);
  });

  it('changes the check itself, which is judged by what it says alone', () => {
    const condition = { filter: namespace, path: [{ key: 'k' }], value: { present_match: true } };
    const typed_config = { '@type': type('ext_authz.v3.ExtAuthz'), filter_enabled_metadata: condition };
    const value = { name: 'envoy.filters.http.ext_authz', typed_config };
    const filter = { subFilter: { name: value.name } };
    const match = { listener: { filterChain: { filter } } };
    const change = { applyTo: 'HTTP_FILTER', match, patch: { operation: 'MERGE', value } };
    const patch = patchOf('networking.istio.io/v1alpha3', 'EnvoyFilter', { configPatches: [change] });
    expect(found(`${others}\n${patch}`).map(({ rule }) => rule)).toEqual(['check-conditional']);
  });

  it('may write other metadata in front of the check', () => {
    const settings = { metadata: [{ metadata_namespace: 'envoy.lb' }] };
    for (const typed_config of [{ '@type': type('set_metadata.v3.Config'), ...settings }, lookalike]) {
      const filter = { name: 'x', typed_config };
      expect(rules('HTTP_FILTER', 'INSERT_BEFORE', 'envoy.filters.http.ext_authz', filter)).toEqual([]);
    }
  });

  it.each([
    ['INSERT_BEFORE', 'envoy.filters.http.rbac'],
    ['INSERT_AFTER', 'istio.metadata_exchange'],
  ])('puts one in front by %s %s', (operation, name) => {
    expect(rules('HTTP_FILTER', operation, name, lua)).toEqual([]);
  });

  describe('of clusters', () => {
    const plain = { transport_socket: { name: 'envoy.transport_sockets.raw_buffer' } };
    const clusterRules = (beside: string, cluster?: object) => {
      const match = cluster === undefined ? undefined : { cluster };
      const change = { applyTo: 'CLUSTER', match, patch: { operation: 'MERGE', value: plain } };
      const patch = patchOf('networking.istio.io/v1alpha3', 'EnvoyFilter', { configPatches: [change] });
      return rulesIn(`${file(beside).trimEnd()}\n${patch}`);
    };

    it('takes TLS from a verifier that the file does not name, where it is for all', () => {
      expect(clusterRules('policy-empty/good.yaml')).toEqual(['verifier-plaintext']);
      expect(clusterRules('policy-empty/good.yaml', { portNumber: 9191 })).toEqual(['verifier-plaintext']);
      expect(clusterRules('policy-empty/good.yaml', { service: 'shop.example.internal' })).toEqual([]);
    });

    it('takes none from one on the same machine', () => {
      expect(clusterRules('verifier-plaintext/good-istio.yaml')).toEqual([]);
    });
  });
});
