/** Objects of Kubernetes: where they may be written, and what patches do to what was generated. */
import { readFileSync } from 'node:fs';
import { describe, expect, it } from '@jest/globals';
import { parseAllDocuments, stringify } from 'yaml';
import { UnreadableText } from '../../src/gateway-lint/source.ts';
import { exchanged, found } from './rule-files.ts';

const file = (path: string) => readFileSync(new URL(`./files/${path}`, import.meta.url), 'utf8');
const istio = file('policy-empty/good.yaml');
const envoyGateway = file('policy-overridden/good.yaml');
const rulesIn = (text: string) => [...new Set(found(text).map(({ rule }) => rule))];

const [meshMap, policy, patch] = istio.split('---\n');
const extAuthz = 'type.googleapis.com/envoy.extensions.filters.http.ext_authz.v3.ExtAuthz';
const manager =
  'type.googleapis.com/envoy.extensions.filters.network.http_connection_manager.v3.HttpConnectionManager';

describe('documents', () => {
  it('may be items of a List', () => {
    const items = parseAllDocuments(istio).map((document) => document.toJS());
    const text = JSON.stringify({ apiVersion: 'v1', kind: 'List', items }, undefined, 1);
    expect(found(text)).toEqual([]);
    expect(
      rulesIn(exchanged(text, '"CUSTOM"', '"CUSTOM", "rules2": []').replace('"rules": [', '"rulez": [')),
    ).toEqual(['policy-empty']);
  });

  it.each([
    [
      'IstioOperator',
      (mesh: unknown) => ({
        apiVersion: 'install.istio.io/v1alpha1',
        kind: 'IstioOperator',
        spec: { meshConfig: mesh },
      }),
    ],
    [
      'values within IstioOperator',
      (mesh: unknown) => ({
        apiVersion: 'install.istio.io/v1alpha1',
        kind: 'IstioOperator',
        spec: { values: { meshConfig: mesh } },
      }),
    ],
    [
      'values over what the IstioOperator says itself',
      (mesh: unknown) => ({
        apiVersion: 'install.istio.io/v1alpha1',
        kind: 'IstioOperator',
        spec: { meshConfig: { pathNormalization: { normalization: 'BASE' } }, values: { meshConfig: mesh } },
      }),
    ],
    [
      'unvalidated values over others',
      (mesh: unknown) => ({
        apiVersion: 'install.istio.io/v1alpha1',
        kind: 'IstioOperator',
        spec: {
          meshConfig: { accessLogFile: '/dev/stdout' },
          values: { meshConfig: { pathNormalization: { normalization: 'BASE' } } },
          unvalidatedValues: { meshConfig: mesh },
        },
      }),
    ],
    ['values of a chart', (mesh: unknown) => ({ meshConfig: mesh })],
    [
      'a ConfigMap, quoted',
      (mesh: unknown) => ({ apiVersion: 'v1', kind: 'ConfigMap', data: { mesh: JSON.stringify(mesh) } }),
    ],
  ])('mesh configuration in %s', (_what, around) => {
    const mesh = parseAllDocuments(parseAllDocuments(meshMap ?? '')[0]?.toJS().data.mesh)[0]?.toJS();
    const text = (one: unknown) => [stringify(around(one)), policy, patch].join('---\n');
    expect(rulesIn(text(mesh))).toEqual([]);
    mesh.extensionProviders[0].envoyExtAuthzGrpc.failOpen = 'true';
    expect(rulesIn(text(mesh))).toEqual(['fails-open']);
  });

  it('whose text is no YAML are said to be', () => {
    const broken = 'apiVersion: v1\nkind: ConfigMap\ndata:\n  mesh: |-\n    a: 1\n    b: [\n';
    expect(() => found(broken)).toThrow(UnreadableText);
    expect(() => found(broken)).toThrow(/^line [67]: /);
  });
});

describe('EnvoyFilter', () => {
  const withPatch = (change: object) =>
    [
      meshMap,
      policy,
      patch,
      JSON.stringify({
        apiVersion: 'networking.istio.io/v1alpha3',
        kind: 'EnvoyFilter',
        spec: { configPatches: [change] },
      }),
    ].join('---\n');
  const merge = (value: object) => withPatch({ patch: { operation: 'MERGE', value } });
  const neighbour = (name: string) => ({ listener: { filterChain: { filter: { subFilter: { name } } } } });
  const lua = {
    name: 'x',
    typed_config: { '@type': 'type.googleapis.com/envoy.extensions.filters.http.lua.v3.Lua' },
  };

  it('is judged by what it merges', () => {
    expect(rulesIn(merge({ typed_config: { '@type': extAuthz, failure_mode_allow: true } }))).toEqual([
      'fails-open',
    ]);
    expect(rulesIn(merge({ typed_config: { '@type': extAuthz, validate_mutations: false } }))).toEqual([
      'mutations-not-validated',
    ]);
    expect(rulesIn(merge({ typed_config: { '@type': manager, normalize_path: false } }))).toEqual([
      'path-not-normalized',
    ]);
    expect(rulesIn(merge({ typed_config: { '@type': manager, normalize_path: true } }))).toEqual([]);
    expect(rulesIn(merge({ route: { upgrade_configs: [{ upgrade_type: 'websocket' }] } }))).toEqual([
      'upgrades-allowed',
    ]);
    const perRoute = { 'envoy.filters.http.ext_authz': { '@type': `${extAuthz}PerRoute`, disabled: true } };
    expect(rulesIn(merge({ typed_per_filter_config: perRoute }))).toEqual(['route-unchecked']);
  });

  it('that puts a whole ext_authz in is held to all of it', () => {
    const value = { name: 'envoy.filters.http.ext_authz', typed_config: { '@type': extAuthz } };
    const rules = rulesIn(withPatch({ patch: { operation: 'INSERT_BEFORE', value } }));
    expect(rules).toEqual(
      expect.arrayContaining(['body-not-shown', 'headers-merged', 'status-on-error', 'transport-version']),
    );
  });

  it('may put a filter in front of the check, and none behind it', () => {
    const insert = (operation: string, name: string) =>
      rulesIn(withPatch({ match: neighbour(name), patch: { operation, value: lua } }));
    expect(insert('INSERT_BEFORE', 'envoy.filters.http.router')).toEqual(['filter-behind-check']);
    expect(insert('INSERT_AFTER', 'envoy.filters.http.ext_authz')).toEqual(['filter-behind-check']);
    expect(insert('INSERT_BEFORE', 'envoy.filters.http.ext_authz')).toEqual([]);
    expect(insert('INSERT_FIRST', '')).toEqual([]);
  });

  it('may not switch the check off', () => {
    expect(rulesIn(merge({ name: 'envoy.filters.http.ext_authz', disabled: true }))).toEqual([
      'check-removed',
    ]);
    expect(rulesIn(merge({ name: 'envoy.filters.http.lua', disabled: true }))).toEqual([]);
  });
});

describe('EnvoyPatchPolicy', () => {
  const selected = "..http_filters[?(@.name=='envoy.filters.http.ext_authz/x')]";
  const withPatch = (operation: object) =>
    [
      envoyGateway.trimEnd(),
      stringify({
        apiVersion: 'gateway.envoyproxy.io/v1alpha1',
        kind: 'EnvoyPatchPolicy',
        spec: { jsonPatches: [{ operation }] },
      }),
    ].join('\n---\n');

  it.each([
    [
      'a path below what is selected',
      { op: 'add', jsonPath: selected, path: 'typed_config/failure_mode_allow', value: true },
    ],
    [
      'an expression alone',
      { op: 'replace', jsonPath: `${selected}.typed_config.failure_mode_allow`, value: true },
    ],
    [
      'a path with indexes',
      {
        op: 'add',
        path: '/filter_chains/0/filters/0/typed_config/http_filters/1/typed_config/failure_mode_allow',
        value: true,
      },
    ],
    [
      'a message',
      { op: 'replace', jsonPath: selected, path: 'typed_config', value: { failure_mode_allow: true } },
    ],
  ])('by %s', (_what, operation) => {
    expect(rulesIn(withPatch(operation))).toEqual(['fails-open']);
    const [closed] = [JSON.parse(JSON.stringify(operation).replace('true', 'false'))];
    expect(rulesIn(withPatch(closed))).toEqual([]);
  });

  it('for a route, whose filter has a name with a slash', () => {
    const path = '/virtual_hosts/0/routes/0/typed_per_filter_config/envoy.filters.http.ext_authz~1x';
    const value = { '@type': `${extAuthz}PerRoute`, disabled: true };
    expect(
      rulesIn(
        withPatch({
          op: 'add',
          path: path.replace(/\/[^/]*$/, ''),
          value: { 'envoy.filters.http.ext_authz/x': value },
        }),
      ),
    ).toEqual(['route-unchecked']);
    expect(rulesIn(withPatch({ op: 'add', path, value }))).toEqual(['route-unchecked']);
  });

  it('may not take the check away', () => {
    expect(rulesIn(withPatch({ op: 'remove', jsonPath: selected }))).toEqual(['check-removed']);
    expect(rulesIn(withPatch({ op: 'add', jsonPath: selected, path: 'disabled', value: true }))).toEqual([
      'check-removed',
    ]);
    expect(
      rulesIn(withPatch({ op: 'remove', jsonPath: selected, path: 'typed_config/stat_prefix' })),
    ).toEqual([]);
  });
});

describe('Envoy Gateway', () => {
  it('upgrades connections where a BackendTrafficPolicy says so', () => {
    const more = stringify({
      apiVersion: 'gateway.envoyproxy.io/v1alpha1',
      kind: 'BackendTrafficPolicy',
      spec: { httpUpgrade: [{ type: 'websocket' }] },
    });
    expect(rulesIn(`${envoyGateway}---\n${more}`)).toEqual(['upgrades-allowed']);
  });

  it('reaches a verifier on a socket without TLS', () => {
    const local = exchanged(
      envoyGateway,
      '{ name: verifier, port: 9191 }',
      '{ kind: Backend, group: gateway.envoyproxy.io, name: sidecar }',
    );
    const backend = (endpoint: object) =>
      stringify({
        apiVersion: 'gateway.envoyproxy.io/v1alpha1',
        kind: 'Backend',
        metadata: { name: 'sidecar' },
        spec: { endpoints: [endpoint] },
      });
    expect(rulesIn(local)).toEqual(['verifier-plaintext']);
    expect(rulesIn(`${local}---\n${backend({ unix: { path: '/run/v.sock' } })}`)).toEqual([]);
    expect(rulesIn(`${local}---\n${backend({ ip: { address: '127.0.0.1', port: 9191 } })}`)).toEqual([]);
    expect(rulesIn(`${local}---\n${backend({ ip: { address: '10.0.0.7', port: 9191 } })}`)).toEqual([
      'verifier-plaintext',
    ]);
  });
});

it('takes what a selector selects of a Gateway that is not there for the one that is named', () => {
  const other = file('policy-overridden/good-listener.yaml');
  const reference = 'targetRefs: [{ group: gateway.networking.k8s.io, kind: Gateway, name: other }]';
  const selectors = 'targetSelectors: [{ group: gateway.networking.k8s.io, kind: Gateway }]';
  expect(rulesIn(exchanged(other, reference, selectors))).toEqual(['policy-overridden']);
  const moved = exchanged(other, reference, `${selectors}\n  mergeType: StrategicMerge`);
  expect(rulesIn(moved)).toEqual(['policy-overridden']);
});
