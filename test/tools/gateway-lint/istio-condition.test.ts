/** Tests Istio's condition of the check: it covers every request only when all settings that it depends on do. */
import { expect, it } from '@jest/globals';
import { parse, stringify } from 'yaml';
import { cleanBase, exchanged, rulesIn } from '../../support/docs/lint-rule-cases.ts';

const good = cleanBase('istio-sidecar');

const WRITER = '                  - name: envoy.filters.http.rbac\n';
const CHECK = '                  - name: envoy.filters.http.ext_authz\n';
const rbacMessage = 'envoy.extensions.filters.http.rbac.v3.RBAC';
const filter = (type: string, settings: object) =>
  `                  - ${JSON.stringify({ name: 'between', typed_config: { '@type': `type.googleapis.com/${type}`, ...settings } })}\n`;
const other = (settings: object) => filter(rbacMessage, settings);
const any = { permissions: [{ any: true }], principals: [{ any: true }] };
const sameKey = { shadow_rules_stat_prefix: 'istio_ext_authz_' };

it.each([
  ['another key', 'key: istio_ext_authz_shadow_effective_policy_id', 'key: shadow_effective_policy_id'],
  ['another filter', 'filter: envoy.filters.http.rbac', 'filter: other'],
  ['no prefix', 'prefix: istio-ext-authz-proofgate-', 'suffix: istio-ext-authz-proofgate-'],
  ["somebody else's prefix", 'prefix: istio-ext-authz-proofgate-', 'prefix: istio-ext-authz-other-'],
  [
    'a contrary condition',
    'path: [{ key: istio',
    'invert: true\n                        path: [{ key: istio',
  ],
  ['callers of one kind', 'ids: [{ any: true }]', 'ids: [{ any: true }, { authenticated: {} }]'],
  ['no rule', 'permissions: [{ and_rules: { rules: [{ any: true }] } }]', 'permissions: []'],
  [
    'another prefix of what is written',
    'shadow_rules_stat_prefix: istio_ext_authz_',
    'shadow_rules_stat_prefix: x_',
  ],
  [
    'a matcher, for which the rules are left out',
    'shadow_rules:\n',
    'shadow_matcher: {}\n                      shadow_rules:\n',
  ],
  [
    'a condition of the policy',
    'permissions: [{ and',
    'condition: { const_expr: {} }\n                            permissions: [{ and',
  ],
  [
    'a checked condition of the policy',
    'permissions: [{ and',
    'checked_condition: {}\n                            permissions: [{ and',
  ],
  ['an unknown member', 'permissions: [{ and', 'more: {}\n                            permissions: [{ and'],
  ['another condition beside `any`', 'rules: [{ any: true }]', 'rules: [{ any: true, url_path: {} }]'],
])('does not hold with %s', (_what, passage, by) => {
  expect(rulesIn(exchanged(good, passage, by))).toEqual(['check-conditional']);
});

it('does not hold where a route has rules of its own for the filter that writes', () => {
  const own = `routes:
                        - match: { path: /healthz }
                          route: { cluster: upstream }
                          typed_per_filter_config:
                            envoy.filters.http.rbac:
                              "@type": type.googleapis.com/envoy.extensions.filters.http.rbac.v3.RBACPerRoute
`;
  expect(rulesIn(exchanged(good, 'routes:\n', own))).toEqual(['check-conditional']);
});

it.each([
  ['another rbac', other({ ...sameKey, shadow_rules: { policies: { other: any } } })],
  ['an rbac with a matcher', other({ ...sameKey, shadow_matcher: {} })],
  ['set_metadata', filter('envoy.extensions.filters.http.set_metadata.v3.Config', {})],
  ['Lua', filter('envoy.extensions.filters.http.lua.v3.Lua', {})],
  ['what a matcher chooses', filter('envoy.extensions.common.matching.v3.ExtensionWithMatcher', {})],
  ['a filter that is known by its name alone', '                  - name: cors\n'],
])('does not hold where %s between the two may write the same', (_what, between) => {
  expect(rulesIn(exchanged(good, CHECK, `${between}${CHECK}`))).toContain('check-conditional');
  expect(rulesIn(exchanged(good, WRITER, `${between}${WRITER}`))).not.toContain('check-conditional');
});

it.each([
  ['another key', other({ shadow_rules: { policies: { other: any } } })],
  [
    'a policy of the same prefix',
    other({ ...sameKey, shadow_rules: { policies: { 'istio-ext-authz-proofgate-x': any } } }),
  ],
  ['CORS', filter('envoy.extensions.filters.http.cors.v3.Cors', {})],
])('holds with %s between the two', (_what, between) => {
  expect(rulesIn(exchanged(good, CHECK, `${between}${CHECK}`))).toEqual([]);
});

it('is by what rbac writes under its own name, whatever the filter is called', () => {
  const renamed = exchanged(good, '- name: envoy.filters.http.rbac', '- name: first');
  expect(rulesIn(renamed)).toEqual([]);
  expect(rulesIn(exchanged(renamed, 'filter: envoy.filters.http.rbac', 'filter: first'))).toEqual([
    'check-conditional',
  ]);
});

it('is asked of each chain, also of one that is an alias of the settings of another', () => {
  const bootstrap = parse(good);
  const chains = bootstrap.static_resources.listeners[0].filter_chains;
  const open = structuredClone(chains[0]);
  const filters = open.filters[0].typed_config.http_filters;
  const isNamed = (name: string) => (one: { readonly name: string }) => one.name === name;
  const check = isNamed('envoy.filters.http.ext_authz');
  filters.find(check).typed_config = chains[0].filters[0].typed_config.http_filters.find(check).typed_config;
  filters.splice(filters.findIndex(isNamed('envoy.filters.http.rbac')), 1);
  chains.push(open);
  const text = stringify(bootstrap);
  expect(text).toContain('typed_config: *');
  expect(rulesIn(text)).toEqual(['check-conditional']);
});
