/**
 * Metrics of bundle distribution to a verifier. No label carries a key, client or address.
 * Source: docs/enforcement.md "Operations".
 */
import { Counter, Gauge, type Registry } from 'prom-client';

export interface RefreshMetrics {
  /** Deltas and links that were applied. */
  stepsApplied(kind: 'delta' | 'link', count: number): void;
  polled(outcome: 'changed' | 'unchanged' | 'failed'): void;
  controlFailed(activity: 'poll' | 'fetch' | 'acknowledge', code: string): void;
}

/** @param readLastContact seconds since the epoch; undefined before Control's first response, or without Control */
export function createRefreshMetrics(
  registry: Registry,
  readLastContact: () => number | undefined,
): RefreshMetrics {
  const registers = [registry];
  const steps = new Counter({
    name: 'proofgate_bundle_steps_total',
    help: 'Deltas and links applied to the loaded bundle.',
    labelNames: ['kind'],
    registers,
  });
  const polls = new Counter({
    name: 'proofgate_control_polls_total',
    help: 'Polls of Control, by what came of them.',
    labelNames: ['outcome'],
    registers,
  });
  const failures = new Counter({
    name: 'proofgate_control_failures_total',
    help: 'Times that speaking to Control began to fail, once for each change of what is wrong.',
    labelNames: ['activity', 'code'],
    registers,
  });
  new Gauge({
    name: 'proofgate_control_last_contact_timestamp_seconds',
    help: 'When Control last answered as it should; NaN while it never has.',
    registers,
    collect() {
      this.set(readLastContact() ?? Number.NaN);
    },
  });
  return {
    stepsApplied: (kind, count) => steps.inc({ kind }, count),
    polled: (outcome) => polls.inc({ outcome }),
    controlFailed: (activity, code) => failures.inc({ activity, code }),
  };
}
