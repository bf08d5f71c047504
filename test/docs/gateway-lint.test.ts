/**
 * Checks that docs/reference/lint-rules.md lists every rule with its severity and effect, and that the example of an exception in
 * docs/operate/gateway-lint.md is valid.
 */
import { expect, it } from '@jest/globals';
import { CADDY_RULES } from '../../src/tools/gateway-lint/caddy/rules.ts';
import { EGRESS_RULES } from '../../src/tools/gateway-lint/egress/egress-rules.ts';
import type { Rule } from '../../src/tools/gateway-lint/gateway/gateway.ts';
import { lintGateway, RULES } from '../../src/tools/gateway-lint/lint.ts';
import { NGINX_RULES } from '../../src/tools/gateway-lint/nginx/rules.ts';
import { TRAEFIK_RULES } from '../../src/tools/gateway-lint/traefik/rules.ts';
import { codesIn, readText, tableNamed } from '../support/docs/markdown.ts';

const document = readText('docs/operate/gateway-lint.md');

it.each<[string, readonly Pick<Rule, 'effect' | 'id' | 'severity'>[]]>([
  ['rules', RULES],
  ['egress-rules', EGRESS_RULES],
  ['nginx-rules', NGINX_RULES],
  ['traefik-rules', TRAEFIK_RULES],
  ['caddy-rules', CADDY_RULES],
])('has every rule: %s', (table, rules) => {
  const described = tableNamed(readText('docs/reference/lint-rules.md'), table).map(([rule, ...cells]) => [
    codesIn(rule)[0],
    ...cells,
  ]);
  expect(described).toEqual(rules.map(({ effect, id, severity }) => [id, severity, effect]));
});

it('shows a comment that allows', () => {
  const [, example = ''] = /^```yaml\n([\s\S]*?)^```/m.exec(document) ?? [];
  const indented = example.replace(/^/gm, '      ');
  const text = `resources:\n  - "@type": type.googleapis.com/envoy.config.route.v3.RouteConfiguration\n    typed_per_filter_config:\n${indented}`;
  const rulesOf = (yaml: string) => lintGateway(yaml, { allowedRules: [] })?.findings.map(({ rule }) => rule);
  expect(rulesOf(text)).toEqual([]);
  expect(rulesOf(text.replace('allow', 'permit'))).toEqual(['route-unchecked']);
});
