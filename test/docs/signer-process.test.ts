/** Checks that the documents have every flag, start error, metric and log event of `proofgate signer`. */
import { expect, it } from '@jest/globals';
import { AGENT_SETTINGS } from '../../src/caller/agent/agent-settings.ts';
import { createSignerMetrics } from '../../src/caller/signer/program/signer-metrics.ts';
import { SIGNER_SETTINGS } from '../../src/caller/signer/program/signer-settings.ts';
import { codesIn, filesOfCheckout, readText, tableNamed } from '../support/docs/markdown.ts';

const cli = readText('docs/reference/command-line.md');
const rows = tableNamed(cli, 'signer-flags');

it('has every flag with its default, and no other', () => {
  const own = Object.entries(SIGNER_SETTINGS).filter(
    ([name, setting]) => Reflect.get(AGENT_SETTINGS, name) !== setting,
  );
  const described = rows.map(([cell = '']) => codesIn(cell)[0]?.replace(/^--([a-z-]+).*$/, '$1') ?? '');
  expect(described.toSorted()).toEqual(own.map(([, { flag }]) => flag).toSorted());
  for (const [, { flag, description }] of own) {
    const byDefault = /\(default: ([\w./:-]+)\)$/.exec(description)?.[1];
    if (byDefault === undefined) continue;
    const [, shown] = rows[described.indexOf(flag)] ?? [];
    expect([flag, shown]).toEqual([flag, byDefault]);
  }
});

it('has every code with which the signer alone fails at its start', () => {
  const text = filesOfCheckout('src/caller/signer', '.ts').map(readText).join('\n');
  const raised = [...text.matchAll(/usageError\(\s*'([a-z0-9_]+)'/g)].map(([, code = '']) => code);
  const described = tableNamed(cli, 'signer-start-errors').flatMap(([cell]) => codesIn(cell));
  const shared = new Set(tableNamed(cli, 'error-codes').flatMap((cells) => cells.flatMap(codesIn)));
  expect(raised.filter((code) => !described.includes(code) && !shared.has(code))).toEqual([]);
  expect(raised.length).toBeGreaterThan(3);
});

it('has every metric with its labels, and no other', () => {
  const known = createSignerMetrics(() => 0)
    .registry.getMetricsAsArray()
    .filter(({ name }) => name.startsWith('proofgate_'))
    .map((metric) => {
      const labels: unknown = Reflect.get(metric, 'labelNames');
      return [metric.name, Array.isArray(labels) ? labels.map(String) : []] as const;
    });
  const described = tableNamed(readText('docs/reference/metrics.md'), 'signer-metrics').map(
    ([name, labels]) => [codesIn(name)[0] ?? '', codesIn(labels)] as const,
  );
  expect(described.toSorted()).toEqual(known.toSorted());
});

it('has every log event, and no other', () => {
  const files = [...filesOfCheckout('src/caller/signer', '.ts'), 'src/process/program/closers.ts'];
  const logged = files.flatMap((file) =>
    [...readText(file).matchAll(/\bevent: '([a-z_]+)'/g)].map(([, event = '']) => event),
  );
  const described = tableNamed(readText('docs/reference/log.md'), 'signer-log').flatMap(([events]) =>
    codesIn(events),
  );
  expect(described.toSorted()).toEqual([...new Set(logged)].toSorted());
});
