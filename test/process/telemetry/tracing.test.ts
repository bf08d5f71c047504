/** Tests traces as a collector receives them: their parent, their content, and that tracing never delays a request. */
import type { ServerResponse } from 'node:http';
import { afterEach, describe, expect, it } from '@jest/globals';
import { Registry } from 'prom-client';
import type { DecisionTracer } from '../../../src/process/telemetry/decision-trace.ts';
import { createOtlpTracer } from '../../../src/process/telemetry/tracing.ts';
import {
  type CollectedSpan,
  type OtlpCollector,
  startOtlpCollector,
} from '../../support/fakes/otlp-collector.ts';
import { waitFor } from '../../support/wait.ts';

const TRACE = '4bf92f3577b34da6a3ce929d0e0e4736';
const SPAN = '00f067aa0ba902b7';
const SAMPLED = `00-${TRACE}-${SPAN}-01`;

const stops: (() => Promise<void>)[] = [];
afterEach(async () => {
  for (const stop of stops.splice(0).reverse()) await stop();
});

async function startCollector(answer?: (response: ServerResponse) => void): Promise<OtlpCollector> {
  const collector = await startOtlpCollector(answer);
  stops.push(collector.stop);
  return collector;
}

function open(url: string) {
  const registry = new Registry();
  const failures: string[] = [];
  const tracer = createOtlpTracer({
    endpoint: new URL(url),
    registry,
    authSite: 'shop',
    version: '1.2.3',
    onFailure: (code) => failures.push(code),
  });
  stops.push(() => tracer.close());
  const count = async (outcome: string) => {
    const text = await registry.getSingleMetricAsString('proofgate_trace_spans_total');
    return Number(new RegExp(`outcome="${outcome}"\\} (\\d+)`).exec(text)?.[1] ?? 0);
  };
  return { tracer, failures, count };
}

function decide(tracer: DecisionTracer, ...parents: (string | undefined)[]): boolean {
  const trace = tracer.begin(...parents);
  const startedMs = performance.now();
  trace?.stepTook('pipeline', startedMs, startedMs + 2);
  trace?.stepTook('replay', startedMs + 2, startedMs + 5);
  trace?.decided({
    decisionId: 'd-1',
    outcome: 'denied',
    reason: 'jti_replay',
    routeId: 'orders-read',
    bundleRevision: 7,
  });
  return trace !== undefined;
}

const attributesOf = ({ attributes }: CollectedSpan) =>
  Object.fromEntries(attributes.map(({ key, value }) => [key, Object.values(value)[0]]));

describe('a decision', () => {
  it.each(['', '/', '/v1/traces'])('is three spans at the collector, URL ending in %j', async (path) => {
    const collector = await startCollector();
    const { count, tracer } = open(`${collector.url}${path}`);
    expect(decide(tracer, SAMPLED)).toBe(true);
    await tracer.close();
    expect(collector.paths).toEqual(['POST /v1/traces application/json']);
    const [check, ...steps] = [...collector.spans].sort((a, b) => a.name.localeCompare(b.name));
    if (check === undefined) throw new Error('no span');
    expect(check).toMatchObject({ name: 'proofgate.check', traceId: TRACE, parentSpanId: SPAN, kind: 2 });
    expect(attributesOf(check)).toEqual({
      'proofgate.decision_id': 'd-1',
      'proofgate.outcome': 'denied',
      'proofgate.reason': 'jti_replay',
      'proofgate.route_id': 'orders-read',
      'proofgate.bundle_revision': 7,
    });
    expect(steps.map(({ name, parentSpanId, traceId }) => [name, parentSpanId, traceId])).toEqual([
      ['proofgate.pipeline', check.spanId, TRACE],
      ['proofgate.replay', check.spanId, TRACE],
    ]);
    const nanoseconds = steps.map((step) =>
      Number(BigInt(step.endTimeUnixNano) - BigInt(step.startTimeUnixNano)),
    );
    expect(nanoseconds.map((length) => Math.round(length / 1e6))).toEqual([2, 3]);
    expect(Math.abs(Number(BigInt(check.startTimeUnixNano) / 1_000_000n) - Date.now())).toBeLessThan(60_000);
    expect([...collector.resource].map(([key, value]) => [key, Object.values(value)[0]])).toEqual(
      expect.arrayContaining([
        ['service.name', 'proofgate'],
        ['service.version', '1.2.3'],
        ['proofgate.auth_site', 'shop'],
      ]),
    );
    expect(await count('exported')).toBe(3);
  });
});

describe('the parent', () => {
  const other = `00-${'a'.repeat(32)}-${'b'.repeat(16)}`;
  const cases: readonly (readonly [string, (string | undefined)[], boolean])[] = [
    ['none', [], false],
    ['neither', [undefined, undefined], false],
    ['the nearer', [`${other}-01`, SAMPLED], true],
    ['the nearer, not sampled', [`${other}-00`, SAMPLED], false],
    ['the one that there is', [undefined, SAMPLED], true],
    ['the one that is valid', ['00-xyz-01', SAMPLED], true],
    ['other flags beside sampled', [`00-${TRACE}-${SPAN}-03`], true],
    ['other flags without sampled', [`00-${TRACE}-${SPAN}-fe`], false],
    ['a version to come, with more', [`01-${TRACE}-${SPAN}-01-more`], true],
    ['this version with more', [`00-${TRACE}-${SPAN}-01-more`], false],
    ['version ff', [`ff-${TRACE}-${SPAN}-01`], false],
    ['a trace of zeros', [`00-${'0'.repeat(32)}-${SPAN}-01`], false],
    ['a parent of zeros', [`00-${TRACE}-${'0'.repeat(16)}-01`], false],
    ['capitals', [SAMPLED.toUpperCase()], false],
  ];
  it.each(cases)('%s', async (_what, parents, isTraced) => {
    const collector = await startCollector();
    const { tracer } = open(collector.url);
    expect(decide(tracer, ...parents)).toBe(isTraced);
    await tracer.close();
    expect(collector.spans).toHaveLength(isTraced ? 3 : 0);
    if (parents[0]?.startsWith(other)) {
      expect(new Set(collector.spans.map(({ traceId }) => traceId))).toEqual(
        new Set(isTraced ? ['a'.repeat(32)] : []),
      );
    }
  });
});

describe('a collector', () => {
  it('that is away costs spans and nothing else, and is reported once', async () => {
    const { stop, url } = await startCollector();
    await stop();
    stops.splice(0);
    const { count, failures, tracer } = open(url);
    for (let round = 0; round < 400; round += 1) expect(decide(tracer, SAMPLED)).toBe(true);
    await waitFor('a failure', () => failures[0]);
    await tracer.close();
    expect(failures).toHaveLength(1);
    expect((await count('failed')) + (await count('dropped'))).toBe(1200);
  });

  it('that does not answer fills a queue that has an end', async () => {
    const { url } = await startCollector(() => undefined);
    const { count, tracer } = open(url);
    // 512 are on their way, 4096 wait.
    for (let round = 0; round < 2_000; round += 1) decide(tracer, SAMPLED);
    expect(await count('dropped')).toBe(6_000 - 512 - 4_096);
    await tracer.close();
    expect((await count('failed')) + (await count('dropped'))).toBe(6_000);
  });

  it('that refuses is reported with its status', async () => {
    const { url } = await startCollector((response) => response.writeHead(400).end('{"secret":1}'));
    const { count, failures, tracer } = open(url);
    decide(tracer, SAMPLED);
    await tracer.close();
    expect([failures, await count('failed')]).toEqual([['400'], 3]);
  });
});
