/**
 * Checks that docs/gateway-lint.md lists every rule with its severity and effect, and that its example of an exception is
 * valid.
 */
import { expect, it } from '@jest/globals';
import { lintGateway, RULES } from '../../src/gateway-lint/lint.ts';
import { codesIn, readText, tableNamed } from './markdown.ts';

const document = readText('docs/gateway-lint.md');

it('has every rule', () => {
  const described = tableNamed(document, 'rules').map(([rule, ...cells]) => [codesIn(rule)[0], ...cells]);
  expect(described).toEqual(RULES.map(({ effect, id, severity }) => [id, severity, effect]));
});

it('shows a comment that allows', () => {
  const [, example = ''] = /^```yaml\n([\s\S]*?)^```/m.exec(document) ?? [];
  const indented = example.replace(/^/gm, '      ');
  const text = `resources:\n  - "@type": type.googleapis.com/envoy.config.route.v3.RouteConfiguration\n    typed_per_filter_config:\n${indented}`;
  const rulesOf = (yaml: string) => lintGateway(yaml, { allowedRules: [] })?.findings.map(({ rule }) => rule);
  expect(rulesOf(text)).toEqual([]);
  expect(rulesOf(text.replace('allow', 'permit'))).toEqual(['route-unchecked']);
});
