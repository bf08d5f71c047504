/** Checks that docs/operate/proxy.md and docs/reference/command-line.md have every code and metric of the reverse proxy. */
import { expect, it } from '@jest/globals';
import { Registry } from 'prom-client';
import { createProxyMetrics } from '../../src/enforcement/reverse-proxy/proxy-metrics.ts';
import { PROXY_FAULTS } from '../../src/process/http-proxy/proxy-faults.ts';
import { codesIn, filesOfCheckout, readText, tableNamed } from '../support/docs/markdown.ts';

const proxy = readText('docs/operate/proxy.md');

it('docs/operate/proxy.md has every fault with its status', () => {
  const described = tableNamed(proxy, 'proxy-faults').flatMap(([statuses = '', codes = '']) => {
    const inRow = statuses.split(', ');
    return codesIn(codes).map((code, index) => [code, Number(inRow[index] ?? inRow.at(-1))] as const);
  });
  const known = Object.entries(PROXY_FAULTS).map(([code, { status }]) => [code, status] as const);
  expect(described.toSorted()).toEqual(known.toSorted());
});

it('docs/reference/metrics.md has every metric of the proxy with its labels', async () => {
  const registry = new Registry();
  createProxyMetrics(registry);
  const known = registry.getMetricsAsArray().map((metric) => {
    const labels: unknown = Reflect.get(metric, 'labelNames');
    return [metric.name, Array.isArray(labels) ? labels.map(String) : []] as const;
  });
  const described = tableNamed(readText('docs/reference/metrics.md'), 'proxy-metrics').map(
    ([name = '', type = '']) => [codesIn(name)[0] ?? '', codesIn(type)] as const,
  );
  expect(described.toSorted()).toEqual(known.toSorted());
});

it('docs/reference/command-line.md has every code with which the proxy alone fails at its start', () => {
  const raised = filesOfCheckout('src/enforcement/programs/proxy', '.ts').flatMap((file) =>
    [...readText(file).matchAll(/usageError\(\s*'([a-z0-9_]+)'/g)].map(([, code]) => code),
  );
  const described = tableNamed(readText('docs/reference/command-line.md'), 'proxy-start-errors').flatMap(
    ([cell]) => codesIn(cell),
  );
  expect(described.toSorted()).toEqual([...new Set(raised)].toSorted());
});
