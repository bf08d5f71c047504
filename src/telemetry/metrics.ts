/**
 * Every metric of the verifier: names, labels and buckets, once. No label carries a subject, key or `jti`.
 * Source: docs/enforcement.md "Operations, at every door".
 */
import { Counter, collectDefaultMetrics, Gauge, Histogram, Registry } from 'prom-client';
import { createDoorMetrics, type DoorMetrics } from './door-metrics.ts';
import { createRpcMetrics, type RpcMetrics } from './rpc-metrics.ts';

/** Seconds; a decision takes about a tenth of a millisecond. */
const DURATION_BUCKETS_SECONDS = [
  0.00005, 0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.05, 0.1, 0.5,
];

export type TimedStep = 'pipeline' | 'replay';

/** Where the bundle gauges read from when somebody scrapes. */
export interface BundleReading {
  readonly revision: number;
  readonly ageSeconds: number;
}

export interface VerifierMetrics {
  readonly registry: Registry;
  decided(outcome: 'allowed' | 'denied', reason: string, routeId: string): void;
  stepTook(step: TimedStep, seconds: number): void;
  replayUnavailable(why: string): void;
  bundleRefused(code: string): void;
  readonly rpc: RpcMetrics;
  readonly door: DoorMetrics;
}

/** @param readBundle undefined while no bundle is loaded */
export function createVerifierMetrics(readBundle: () => BundleReading | undefined): VerifierMetrics {
  const registry = new Registry();
  const registers = [registry];
  collectDefaultMetrics({ register: registry });
  const decisions = new Counter({
    name: 'proofgate_decisions_total',
    help: 'Decisions by outcome, reason and route.',
    labelNames: ['outcome', 'reason', 'route_id'],
    registers,
  });
  const steps = new Histogram({
    name: 'proofgate_step_duration_seconds',
    help: 'Time spent in steps 1 to 5 (pipeline) and in the replay store (replay).',
    labelNames: ['step'],
    buckets: DURATION_BUCKETS_SECONDS,
    registers,
  });
  const unavailable = counter(
    registry,
    'proofgate_replay_unavailable_total',
    'Refusals of the replay store.',
    ['why'],
  );
  const refused = counter(registry, 'proofgate_bundle_refused_total', 'Bundles and statements refused.', [
    'code',
  ]);
  registerBundleGauges(registry, readBundle);
  const rpc = createRpcMetrics(registry);
  const door = createDoorMetrics(registry);
  const decisionChildren = createChildCache((outcome, reason, route_id) =>
    decisions.labels({ outcome, reason, route_id }),
  );
  const timers = { pipeline: steps.labels({ step: 'pipeline' }), replay: steps.labels({ step: 'replay' }) };
  return {
    registry,
    decided: (outcome, reason, routeId) => decisionChildren(outcome, reason, routeId).inc(),
    stepTook: (step, seconds) => timers[step].observe(seconds),
    replayUnavailable: (why) => unavailable.inc({ why }),
    bundleRefused: (code) => refused.inc({ code }),
    rpc,
    door,
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
}

/** Children are looked up by every request; prom-client would sort and hash their labels each time. */
function createChildCache<Child>(create: (...labels: [string, string, string]) => Child) {
  const children = new Map<string, Child>();
  return (a: string, b = '', c = ''): Child => {
    const id = `${a}\n${b}\n${c}`;
    let child = children.get(id);
    if (child === undefined) {
      child = create(a, b, c);
      children.set(id, child);
    }
    return child;
  };
}
