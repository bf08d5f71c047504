/**
 * Defines every metric of the verifier with its names, labels and buckets. No label carries a subject, key, client, address
 * or `jti`.
 * Source: docs/operate/enforcement.md "Operations".
 */
import { collectDefaultMetrics, Registry } from 'prom-client';
import { DurationHistogram } from '../process/telemetry/duration-histogram.ts';
import {
  createExtAuthzServerMetrics,
  createRpcMetrics,
} from '../process/telemetry/ext-authz-server-metrics.ts';
import { instrumentsOf } from '../process/telemetry/instruments.ts';
import type { ProofFormat } from '../protocol/proof-format.ts';

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
export interface BundleReading {
  readonly revision: number;
  readonly ageSeconds: number;
  /** Whether a break-glass statement applies to the bundle. */
  readonly isBreakGlass: boolean;
  /** Number of routes of each class that are denied because the bundle is too old. */
  readonly staleRoutes: { readonly bounded: number; readonly realtime: number };
}

interface CountedDecisions {
  readonly labels: { readonly [name: string]: string };
  count: number;
}

export type VerifierMetrics = ReturnType<typeof createVerifierMetrics>;

/** @param readBundle undefined while no bundle is loaded */
export function createVerifierMetrics(readBundle: () => BundleReading | undefined) {
  const registry = new Registry();
  const { counter, countsRead } = instrumentsOf(registry);
  collectDefaultMetrics({ register: registry });
  const decisions = new Map<string, CountedDecisions>();
  countsRead(
    'proofgate_decisions_total',
    'Decisions by outcome, reason, detail and route.',
    ['outcome', 'reason', 'detail', 'route_id'],
    (add) => {
      for (const { count, labels } of decisions.values()) add(labels, count);
    },
  );
  const steps = new DurationHistogram({
    name: 'proofgate_step_duration_seconds',
    help: 'Time spent in each step of decisions, in steps 1 to 5 together (pipeline), and in recording them (audit).',
    labelNames: ['step'],
    registry,
  });
  const timers = Object.fromEntries(TIMED_STEPS.map((step) => [step, steps.series({ step })])) as {
    readonly [S in TimedStep]: (seconds: number) => void;
  };
  const unavailable = counter('proofgate_replay_unavailable_total', 'Refusals of the replay store.', 'why');
  // Alerts need series that exist from the start.
  for (const why of ['store', 'fenced', 'quota']) unavailable.inc({ why }, 0);
  const refused = counter('proofgate_bundle_refused_total', 'Bundles and statements refused.', 'code');
  const brokenGlass = counter(
    'proofgate_break_glass_decisions_total',
    'Requests allowed only because of a break-glass statement.',
  );
  const accepted = counter(
    'proofgate_accepted_proofs_total',
    'Allowed requests of routes with accepted_proofs, by format of the proof.',
    'format',
  );
  registerBundleGauges(registry, readBundle);
  const rpc = createRpcMetrics(registry);
  const extAuthz = createExtAuthzServerMetrics(registry);
  return {
    registry,
    rpc,
    extAuthz,
    /** @param detail a code, never a name; empty when there is none */
    decided(
      outcome: 'allowed' | 'denied' | 'observed',
      reason: string,
      detail: string,
      route_id: string,
    ): void {
      const name = `${outcome}\n${reason}\n${detail}\n${route_id}`;
      const counted = decisions.get(name);
      if (counted === undefined)
        decisions.set(name, { labels: { outcome, reason, detail, route_id }, count: 1 });
      else counted.count += 1;
    },
    stepTook: (step: TimedStep, seconds: number) => timers[step](seconds),
    replayUnavailable: (why: string) => unavailable.inc({ why }),
    bundleRefused: (code: string) => refused.inc({ code }),
    allowedByBreakGlass: () => brokenGlass.inc(),
    acceptedProof: (format: ProofFormat) => accepted.inc({ format }),
  };
}

function registerBundleGauges(registry: Registry, readBundle: () => BundleReading | undefined): void {
  const { reading, readings } = instrumentsOf(registry);
  reading(
    'proofgate_bundle_revision',
    'Revision of the loaded bundle; 0 while none is loaded.',
    () => readBundle()?.revision ?? 0,
  );
  reading(
    'proofgate_bundle_age_seconds',
    'Age of the loaded bundle by its newest freshness statement; NaN while none is loaded.',
    () => readBundle()?.ageSeconds ?? Number.NaN,
  );
  reading(
    'proofgate_break_glass_active',
    '1 while a break-glass statement suspends the maximum age of the loaded bundle, otherwise 0.',
    () => (readBundle()?.isBreakGlass ? 1 : 0),
  );
  readings(
    'proofgate_stale_routes',
    'Routes that are denied because the loaded bundle is too old for them; 0 while none is loaded.',
    'freshness_class',
    () => Object.entries(readBundle()?.staleRoutes ?? { bounded: 0, realtime: 0 }),
  );
}

export type RefreshMetrics = ReturnType<typeof createRefreshMetrics>;

/**
 * Metrics of bundle distribution.
 * @param readLastContact seconds since the epoch; undefined before Control's first response, or without Control
 */
export function createRefreshMetrics(registry: Registry, readLastContact: () => number | undefined) {
  const { counter, reading } = instrumentsOf(registry);
  const steps = counter(
    'proofgate_bundle_steps_total',
    'Deltas and links applied to the loaded bundle.',
    'kind',
  );
  const polls = counter(
    'proofgate_control_polls_total',
    'Polls of Control, by what came of them.',
    'outcome',
  );
  const failures = counter(
    'proofgate_control_failures_total',
    'Times that speaking to Control began to fail, once for each change of what is wrong.',
    ...['activity', 'code'],
  );
  reading(
    'proofgate_control_last_contact_timestamp_seconds',
    'When Control last answered as it should; NaN while it never has.',
    () => readLastContact() ?? Number.NaN,
  );
  return {
    /** Deltas and links that were applied. */
    stepsApplied: (kind: 'delta' | 'link', count: number) => steps.inc({ kind }, count),
    polled: (outcome: 'changed' | 'unchanged' | 'failed') => polls.inc({ outcome }),
    controlFailed: (activity: 'poll' | 'fetch' | 'acknowledge', code: string) =>
      failures.inc({ activity, code }),
  };
}

/** Metrics of the decision summaries that Control gets. */
export function createSummaryMetrics(registry: Registry) {
  const { counter } = instrumentsOf(registry);
  const summarized = counter(
    'proofgate_summarized_decisions_total',
    'Decisions in summaries for Control, by what came of them.',
    'outcome',
  );
  return {
    posted: (outcome: 'taken' | 'unsupported' | 'failed', decisions: number) =>
      summarized.inc({ outcome }, decisions),
  };
}

/** Metrics of the last uses of derived keys that Control gets. */
export function createLastUsedMetrics(registry: Registry) {
  const { counter } = instrumentsOf(registry);
  const reports = counter(
    'proofgate_reported_key_uses_total',
    'Derived keys in reports of last uses for Control, by what came of them.',
    'outcome',
  );
  return {
    reported: (outcome: 'taken' | 'unsupported' | 'failed', keys: number) => reports.inc({ outcome }, keys),
  };
}

/** State of the replay store, read at each scrape. */
export interface ReplayReading {
  /** Seconds until no fence is up; 0 when none is. */
  readonly fenceSecondsLeft: number;
  /** Undefined for a store without connections. */
  readonly links: { readonly serving: number; readonly unfit: number } | undefined;
}

/** @param reasons every value of `why`, because alerts need series that exist from the start */
export function createReplayMetrics(
  registry: Registry,
  reasons: readonly string[],
  read: () => ReplayReading | undefined,
) {
  const { counter, reading, readings } = instrumentsOf(registry);
  const fences = counter(
    'proofgate_replay_fences_total',
    'Fences of the replay store that this process saw go up, by reason.',
    'why',
  );
  for (const why of reasons) fences.inc({ why }, 0);
  reading(
    'proofgate_replay_fence_seconds',
    'Seconds until proofs signed then are taken by every part of the replay store; 0 without a fence.',
    () => read()?.fenceSecondsLeft ?? 0,
  );
  readings(
    'proofgate_replay_links',
    'Connections to primaries of the replay store by state.',
    'state',
    () => {
      const { serving, unfit } = read()?.links ?? {};
      return serving === undefined || unfit === undefined ? [] : Object.entries({ serving, unfit });
    },
  );
  return { fenceRaised: (why: string) => fences.inc({ why }) };
}

/** Metrics of worker processes, exported by the primary. @param countRunning called at each scrape */
export function createWorkerMetrics(registry: Registry, countRunning: () => number) {
  const { counter, reading } = instrumentsOf(registry);
  const restarts = counter(
    'proofgate_worker_restarts_total',
    'Worker processes that ended and were started again.',
  );
  reading('proofgate_workers_running', 'Worker processes that serve.', countRunning);
  return { restarted: () => restarts.inc() };
}
