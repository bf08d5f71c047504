/**
 * Defines every metric of the verifier with its names, labels and buckets. No label carries a subject, key or `jti`.
 * Source: docs/enforcement.md "Operations".
 */

import { setImmediate as othersTurn } from 'node:timers/promises';
import { Counter, collectDefaultMetrics, Gauge, Registry } from 'prom-client';
import { DurationHistogram } from './duration-histogram.ts';
import { createExtAuthzServerMetrics, type ExtAuthzServerMetrics } from './ext-authz-server-metrics.ts';
import { createRpcMetrics, type RpcMetrics } from './rpc-metrics.ts';

/**
 * The steps of a decision: 1 `route` (includes reading the credentials), 2 `source`, 3 `freshness`, 4 `attributes`, 5
 * `proof` (passport, proof and binding), together the `pipeline`; then 6 `replay`, and the `audit` record.
 */
const TIMED_STEPS = [
  'route',
  'source',
  'freshness',
  'attributes',
  'proof',
  'pipeline',
  'replay',
  'audit',
] as const;
type TimedStep = (typeof TIMED_STEPS)[number];

/** Values of the bundle gauges, read at each scrape. */
interface BundleReading {
  readonly revision: number;
  readonly ageSeconds: number;
  /** Number of routes of each class that are denied because the bundle is too old. */
  readonly staleRoutes: { readonly bounded: number; readonly realtime: number };
}

export interface VerifierMetrics {
  readonly registry: Registry;
  /** @param detail a code, never a name; empty when there is none */
  decided(outcome: 'allowed' | 'denied', reason: string, detail: string, routeId: string): void;
  stepTook(step: TimedStep, seconds: number): void;
  replayUnavailable(why: string): void;
  bundleRefused(code: string): void;
  readonly rpc: RpcMetrics;
  readonly extAuthz: ExtAuthzServerMetrics;
}

/** @param readBundle undefined while no bundle is loaded */
export function createVerifierMetrics(readBundle: () => BundleReading | undefined): VerifierMetrics {
  const registry = new Registry();
  const registers = [registry];
  collectDefaultMetrics({ register: registry });
  const decisions = new Counter({
    name: 'proofgate_decisions_total',
    help: 'Decisions by outcome, reason, detail and route.',
    labelNames: ['outcome', 'reason', 'detail', 'route_id'],
    registers,
  });
  const steps = new DurationHistogram({
    name: 'proofgate_step_duration_seconds',
    help: 'Time spent in each step of decisions, in steps 1 to 5 together (pipeline), and in recording them (audit).',
    labelNames: ['step'],
    registry,
  });
  const timers = Object.fromEntries(TIMED_STEPS.map((step) => [step, steps.series({ step })])) as {
    readonly [S in TimedStep]: (seconds: number) => void;
  };
  const unavailable = counter(
    registry,
    'proofgate_replay_unavailable_total',
    'Refusals of the replay store.',
    ['why'],
  );
  // Alerts need series that exist from the start.
  for (const why of ['store', 'fenced', 'quota']) unavailable.inc({ why }, 0);
  const refused = counter(registry, 'proofgate_bundle_refused_total', 'Bundles and statements refused.', [
    'code',
  ]);
  registerBundleGauges(registry, readBundle);
  const rpc = createRpcMetrics(registry);
  const extAuthz = createExtAuthzServerMetrics(registry);
  const decisionChildren = createChildCache((outcome, reason, detail, route_id) =>
    decisions.labels({ outcome, reason, detail, route_id }),
  );
  return {
    registry,
    decided: (outcome, reason, detail, routeId) => decisionChildren(outcome, reason, detail, routeId).inc(),
    stepTook: (step, seconds) => timers[step](seconds),
    replayUnavailable: (why) => unavailable.inc({ why }),
    bundleRefused: (code) => refused.inc({ code }),
    rpc,
    extAuthz,
  };
}

function counter(registry: Registry, name: string, help: string, labelNames: string[]): Counter {
  return new Counter({ name, help, labelNames, registers: [registry] });
}

function registerBundleGauges(registry: Registry, readBundle: () => BundleReading | undefined): void {
  new Gauge({
    name: 'proofgate_bundle_revision',
    help: 'Revision of the loaded bundle; 0 while none is loaded.',
    registers: [registry],
    collect() {
      this.set(readBundle()?.revision ?? 0);
    },
  });
  new Gauge({
    name: 'proofgate_bundle_age_seconds',
    help: 'Age of the loaded bundle by its newest freshness statement; NaN while none is loaded.',
    registers: [registry],
    collect() {
      this.set(readBundle()?.ageSeconds ?? Number.NaN);
    },
  });
  new Gauge({
    name: 'proofgate_stale_routes',
    help: 'Routes that are denied because the loaded bundle is too old for them; 0 while none is loaded.',
    labelNames: ['freshness_class'],
    registers: [registry],
    collect() {
      const { bounded, realtime } = readBundle()?.staleRoutes ?? { bounded: 0, realtime: 0 };
      this.set({ freshness_class: 'bounded' }, bounded);
      this.set({ freshness_class: 'realtime' }, realtime);
    },
  });
}

/** Every request looks up children; prom-client would sort and hash their labels each time. */
function createChildCache<Child>(create: (...labels: [string, string, string, string]) => Child) {
  const children = new Map<string, Child>();
  return (a: string, b: string, c: string, d: string): Child => {
    const id = `${a}\n${b}\n${c}\n${d}`;
    let child = children.get(id);
    if (child === undefined) {
      child = create(a, b, c, d);
      children.set(id, child);
    }
    return child;
  };
}

/** Returns the same text as `registry.metrics()`, which blocks until all of it is rendered. */
export async function renderMetrics(registry: Registry): Promise<string> {
  const texts: string[] = [];
  for (const { name } of registry.getMetricsAsArray()) {
    texts.push(await registry.getSingleMetricAsString(name));
    await othersTurn();
  }
  return `${texts.join('\n\n')}\n`;
}
