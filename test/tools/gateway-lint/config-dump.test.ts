/** Tests config dumps of a running Envoy: `dumps/config-dump.json` comes from Envoy 1.40, without its list of extensions. */
import { readFileSync } from 'node:fs';
import { describe, expect, it } from '@jest/globals';
import { parse, stringify } from 'yaml';
import { cleanBase, exchanged, found } from '../../support/docs/lint-rule-cases.ts';

const dumped = readFileSync(new URL('./dumps/config-dump.json', import.meta.url), 'utf8');
const admin = 'type.googleapis.com/envoy.admin.v3.';
const pretty = (value: unknown) => JSON.stringify(value, undefined, 1);

describe('a dump of Envoy 1.40', () => {
  it('shows a route, fetched by RDS, that skips the check below a weighted cluster', () => {
    const line = dumped.split('\n').findIndex((text) => text.includes('"disabled": true')) + 1;
    expect(found(dumped)).toEqual([{ rule: 'route-unchecked', line }]);
  });

  it('is clean without it, and says once what its listener has', () => {
    const clean = exchanged(dumped, '"disabled": true', '"disabled": false');
    expect(found(clean)).toEqual([]);
    const open = clean.replaceAll('"pack_as_bytes": true', '"pack_as_bytes": false');
    expect(found(open).map(({ rule }) => rule)).toEqual(['body-not-packed']);
  });

  it('does not know routes that the dump leaves out', () => {
    const { configs } = JSON.parse(dumped);
    const rest = configs.filter((dump: { '@type': string }) => !dump['@type'].endsWith('.RoutesConfigDump'));
    const rules = found(pretty({ configs: rest })).map(({ rule }) => rule);
    expect(rules).toEqual(['not-in-file']);
  });
});

describe('what egctl prints', () => {
  const one = JSON.parse(dumped);
  const pods = (value: unknown) => ({
    'envoy-gateway-system': { 'envoy-a': value },
    other: { 'envoy-b': value },
  });

  it('are the dumps of all pods, by namespace and name', () => {
    for (const text of [pretty(pods(one)), stringify(pods(one), { aliasDuplicateObjects: false })]) {
      expect(found(text).map(({ rule }) => rule)).toEqual(['route-unchecked', 'route-unchecked']);
    }
  });

  it('is one dump of one kind for each pod', () => {
    const isListeners = (dump: { '@type': string }) => dump['@type'].endsWith('.ListenersConfigDump');
    const text = pretty(pods(one.configs.find(isListeners))).replaceAll(
      '"pack_as_bytes": true',
      '"pack_as_bytes": false',
    );
    expect(found(text).filter(({ rule }) => rule === 'body-not-packed').length).toBe(2);
  });

  it('is not understood in part', () => {
    expect(() => found(pretty({ a: { b: one, c: 'not a dump' } }))).toThrow('nothing was recognised');
  });
});

describe('other forms', () => {
  const bootstrap = parse(cleanBase('envoy'));
  const [listener] = bootstrap.static_resources.listeners;
  const routeConfig = listener.filter_chains[0].filters[0].typed_config.route_config;
  const clusters = bootstrap.static_resources.clusters.map((cluster: unknown) => ({ cluster }));
  const clustersDump = { '@type': `${admin}ClustersConfigDump`, dynamic_active_clusters: clusters };
  const off = {
    'envoy.filters.http.ext_authz': {
      '@type': 'type.googleapis.com/envoy.config.route.v3.FilterConfig',
      disabled: true,
    },
  };

  it('reads listeners that were fetched, active and warming', () => {
    const open = JSON.parse(
      JSON.stringify(listener).replace('"failure_mode_allow":false', '"failure_mode_allow":true'),
    );
    const dump = (state: string) => ({
      '@type': `${admin}ListenersConfigDump`,
      dynamic_listeners: [{ name: 'ingress', [state]: { listener: open } }],
    });
    for (const state of ['active_state', 'warming_state']) {
      const rules = found(pretty({ configs: [clustersDump, dump(state)] })).map(({ rule }) => rule);
      expect(rules).toEqual(['fails-open']);
    }
  });

  it('says once what the bootstrap, the listeners and the routes of a dump all hold', () => {
    const routes = { ...routeConfig, typed_per_filter_config: off };
    const one = structuredClone(listener);
    one.filter_chains[0].filters[0].typed_config.route_config = routes;
    const configs = [
      { '@type': `${admin}BootstrapConfigDump`, bootstrap: { static_resources: { listeners: [one] } } },
      clustersDump,
      { '@type': `${admin}ListenersConfigDump`, static_listeners: [{ listener: one }] },
      { '@type': `${admin}RoutesConfigDump`, static_route_configs: [{ route_config: routes }] },
    ];
    expect(found(pretty({ configs })).map(({ rule }) => rule)).toEqual(['route-unchecked']);
    expect(found(pretty({ configs: configs.slice(3) })).map(({ rule }) => rule)).toContain('route-unchecked');
  });

  it('finds a filter by its discovery, and says when it is not there', () => {
    const one = structuredClone(listener);
    const filters = one.filter_chains[0].filters[0].typed_config.http_filters;
    const check = { ...filters[1].typed_config, failure_mode_allow: true };
    const name = filters[1].name;
    filters[1] = { name, config_discovery: { type_urls: [check['@type']], config_source: { ads: {} } } };
    const listeners = { '@type': `${admin}ListenersConfigDump`, static_listeners: [{ listener: one }] };
    const discovered = {
      '@type': `${admin}EcdsConfigDump`,
      ecds_filters: [{ ecds_filter: { name, typed_config: check } }],
    };
    const rules = (configs: readonly unknown[]) => found(pretty({ configs })).map(({ rule }) => rule);
    expect(rules([clustersDump, discovered, listeners])).toEqual(['fails-open']);
    expect(rules([clustersDump, listeners])).toContain('not-in-file');
  });
});
