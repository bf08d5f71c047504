/** Compares the metrics reference in docs/reference/metrics.md with the metrics of a running verifier: names, types and labels. */

import { join } from 'node:path';
import { expect, it } from '@jest/globals';
import { createExtAuthzHttpMetrics } from '../../src/enforcement/ext-authz-http/ext-authz-http-metrics.ts';
import { createReadinessMetrics } from '../../src/process/admin/readiness-metrics.ts';
import { createOtlpTracer } from '../../src/process/telemetry/tracing.ts';
import { createAuditMetrics } from '../../src/verifier/audit/audit-metrics.ts';
import { createCaptureMetrics } from '../../src/verifier/capture/capture-metrics.ts';
import {
  createLastUsedMetrics,
  createRefreshMetrics,
  createReplayMetrics,
  createSummaryMetrics,
  createVerifierMetrics,
  createWorkerMetrics,
} from '../../src/verifier/verifier-metrics.ts';
import { codesIn, readText, tableNamed } from '../support/docs/markdown.ts';
import { useSite } from '../support/site/site-fixture.ts';

const fixture = useSite();

interface Documented {
  readonly type: string;
  readonly labels: readonly string[];
}

/** Rows of the reference: a name, then its type and labels. */
function documented(): ReadonlyMap<string, Documented> {
  const rows = tableNamed(readText('docs/reference/metrics.md'), 'metrics');
  return new Map(
    rows.map(([name, type = '']) => [
      codesIn(name)[0] ?? '',
      { type: /^[a-z]+/.exec(type)?.[0] ?? '', labels: codesIn(type).toSorted() },
    ]),
  );
}

const isOurs = (name: string) => /^(?:proofgate|grpc)_/.test(name);

/** Every registry that the verifier's process puts together, with the labels that each metric is declared with. */
async function declaredLabels(): Promise<ReadonlyMap<string, readonly string[]>> {
  const { registry } = createVerifierMetrics(() => undefined);
  createRefreshMetrics(registry, () => undefined);
  createSummaryMetrics(registry);
  createLastUsedMetrics(registry);
  createAuditMetrics(registry);
  createCaptureMetrics(registry);
  createReplayMetrics(registry, [], () => undefined);
  createReadinessMetrics(registry, () => []);
  createWorkerMetrics(registry, () => 0);
  createExtAuthzHttpMetrics(registry);
  const endpoint = new URL('http://127.0.0.1:1');
  const tracer = createOtlpTracer({
    endpoint,
    registry,
    authSite: '',
    version: '',
    onFailure: () => undefined,
  });
  await tracer.close();
  const labelled = registry.getMetricsAsArray().map((metric) => {
    const labels: unknown = Reflect.get(metric, 'labelNames');
    if (!Array.isArray(labels)) throw new Error(`${metric.name} says nothing of its labels`);
    return [metric.name, labels.map(String).sort()] as const;
  });
  return new Map(labelled.filter(([name]) => isOurs(name)));
}

it('has each metric of the process, with its type, and no other', async () => {
  const socket = `unix:${join(fixture.site.directory, 'http.sock')}`;
  const http = [
    '--http-listen',
    socket,
    '--http-profile',
    'caddy',
    '--external-origin',
    'http://api.example',
  ];
  const others = ['--otlp-endpoint', 'http://127.0.0.1:1', '--capture-denied', fixture.site.directory];
  const verifier = await fixture.verifier({ flags: [...others, ...http] });
  const { text } = await verifier.probe('/metrics');
  const shown = [...text.matchAll(/^# TYPE (\S+) (\S+)$/gm)].filter(([, name = '']) => isOurs(name));
  expect(shown.length).toBeGreaterThan(20);
  // Metrics of a primary are not this process's: test/e2e/workers/workers.extended.test.ts covers them.
  const own = [...documented()].filter(([name]) => !/^proofgate_worker/.test(name));
  const types = own.map(([name, { type }]) => `${name} ${type}`);
  expect(types.sort()).toEqual(shown.map(([, name, type]) => `${name} ${type}`).sort());
});

it('has the labels that each is declared with, and none names a caller, a key or a proof', async () => {
  const declared = await declaredLabels();
  const documentedLabels = new Map([...documented()].map(([name, { labels }]) => [name, labels]));
  expect(Object.fromEntries(documentedLabels)).toEqual(Object.fromEntries(declared));
  const all = new Set([...declared.values()].flat());
  const known =
    'outcome reason detail route_id freshness_class step why state code check sink kind activity format grpc_type grpc_service grpc_method grpc_code status';
  expect([...all].filter((label) => !known.split(' ').includes(label))).toEqual([]);
});
