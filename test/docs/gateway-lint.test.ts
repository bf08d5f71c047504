/** docs/gateway-lint.md has every rule, with its severity and what it does, in the order in which they are. */
import { expect, it } from '@jest/globals';
import { lintGateway } from '../../src/gateway-lint/lint.ts';
import { RULES } from '../../src/gateway-lint/rules.ts';
import { codesIn, readText, sectionOf, tableRows } from './markdown.ts';

const document = readText('docs/gateway-lint.md');

it('has every rule', () => {
  const rows = tableRows(sectionOf(document, 'Rules'));
  const described = rows.map(([rule, severity, looksAt, effect]) => [
    codesIn(rule)[0],
    severity,
    effect,
    looksAt !== '',
  ]);
  expect(described).toEqual(RULES.map(({ effect, id, severity }) => [id, severity, effect, true]));
});

it('shows a comment that allows', () => {
  const [, example = ''] = /^```yaml\n([\s\S]*?)^```/m.exec(document) ?? [];
  const indented = example.replace(/^/gm, '      ');
  const text = `resources:\n  - "@type": type.googleapis.com/envoy.config.route.v3.RouteConfiguration\n    typed_per_filter_config:\n${indented}`;
  const rulesOf = (yaml: string) => lintGateway(yaml, { allowedRules: [] })?.findings.map(({ rule }) => rule);
  expect(rulesOf(text)).toEqual([]);
  expect(rulesOf(text.replace('allow', 'permit'))).toEqual(['route-unchecked']);
});

it('shows what it says of a setting that fails open', () => {
  const rule = RULES.find(({ id }) => id === 'fails-open');
  expect(document).toContain(`error ${rule?.id}: ${rule?.effect}\n    fix: ${rule?.fix}\n`);
});
