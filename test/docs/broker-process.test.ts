/** Checks that the documents have every flag, start error, metric and log event of `proofgate broker`. */

import { expect, it } from '@jest/globals';
import { createBrokerProcessMetrics } from '../../src/broker/program/broker-process-metrics.ts';
import { BROKER_SETTINGS } from '../../src/broker/program/broker-settings.ts';
import { AUDIT_SETTINGS } from '../../src/verifier/assembly/audit-settings.ts';
import { codesIn, filesOfCheckout, readText, tableNamed } from '../support/docs/markdown.ts';

const cli = readText('docs/reference/command-line.md');
const rows = tableNamed(cli, 'broker-flags');
const OF_VERIFIER = new Set(Object.values(AUDIT_SETTINGS).map(({ flag }) => flag));

it('has every flag with its default, and no other', () => {
  const described = rows.map(([cell = '']) => codesIn(cell)[0]?.replace(/^--([a-z-]+).*$/, '$1') ?? '');
  const settings = Object.values(BROKER_SETTINGS);
  const own = settings
    .map(({ flag }) => flag)
    .filter((flag) => flag === 'audit-file' || !OF_VERIFIER.has(flag));
  expect(described.toSorted()).toEqual(own.toSorted());
  for (const { flag, description } of settings) {
    const byDefault = /\(default: ([\w./:-]+)\)$/.exec(description)?.[1];
    if (byDefault === undefined || OF_VERIFIER.has(flag)) continue;
    const [, shown] = rows[described.indexOf(flag)] ?? [];
    expect([flag, shown]).toEqual([flag, byDefault]);
  }
});

it('has every code with which the broker alone fails at its start', () => {
  const files = filesOfCheckout('src/broker/program', '.ts').filter((file) => !file.includes('rotate-key'));
  const text = [...files, 'src/broker/key-directory.ts'].map(readText).join('\n');
  const raised = [...text.matchAll(/(?:usageError|KeyDirectoryError)\(\s*'([a-z0-9_]+)'/g)].map(
    ([, code]) => code,
  );
  const described = tableNamed(cli, 'broker-start-errors').flatMap(([cell]) => codesIn(cell));
  const shared = new Set(tableNamed(cli, 'error-codes').flatMap((cells) => cells.flatMap(codesIn)));
  const missing = raised.filter((code = '') => !described.includes(code) && !shared.has(code));
  expect(missing).toEqual([]);
  expect(raised.length).toBeGreaterThan(20);
});

it('has every metric with its labels, and no other', () => {
  const known = createBrokerProcessMetrics()
    .registry.getMetricsAsArray()
    .filter(({ name }) => name.startsWith('proofgate_broker_'))
    .map((metric) => {
      const labels: unknown = Reflect.get(metric, 'labelNames');
      return [metric.name, Array.isArray(labels) ? labels.map(String) : []] as const;
    });
  const described = tableNamed(readText('docs/reference/metrics.md'), 'broker-metrics').map(
    ([name = '', type = '']) =>
      [codesIn(name)[0] ?? '', codesIn(type).filter((label) => label !== 'issued')] as const,
  );
  expect(described.toSorted()).toEqual(known.toSorted());
});

it('has every log event, and no other', () => {
  const files = [...filesOfCheckout('src/broker', '.ts'), 'src/process/program/closers.ts'];
  const logged = files.flatMap((file) =>
    [...readText(file).matchAll(/\bevent: '([a-z_]+)'/g)].map(([, event = '']) => event),
  );
  const described = tableNamed(readText('docs/reference/log.md'), 'broker-log').flatMap(([events]) =>
    codesIn(events),
  );
  expect(described.toSorted()).toEqual([...new Set(logged)].toSorted());
});
