/** Istio's condition of the check: it holds for every request only where all that it hangs on says so. */
import { readFileSync } from 'node:fs';
import { expect, it } from '@jest/globals';
import { exchanged, found } from './rule-files.ts';

const good = readFileSync(new URL('./files/check-conditional/good-istio.yaml', import.meta.url), 'utf8');
const rulesIn = (text: string) => [...new Set(found(text).map(({ rule }) => rule))];

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
