/**
 * Defines every metric of the agent with its names and labels. No label carries text from Control or a token.
 * Source: docs/workloads.md "Metrics".
 */
import { Counter, collectDefaultMetrics, Gauge, Registry } from 'prom-client';

/** Result of an enrollment run. */
type EnrollmentOutcome = 'enrolled' | 'unavailable' | 'pending' | 'refused' | 'denied';

export interface AgentMetrics {
  readonly registry: Registry;
  enrollmentEnded(outcome: EnrollmentOutcome): void;
}

/** @param keyEndSeconds Unix time at which the current key expires, 0 without a key; read at each scrape */
export function createAgentMetrics(keyEndSeconds: () => number): AgentMetrics {
  const registry = new Registry();
  const registers = [registry];
  collectDefaultMetrics({ register: registry });
  const ended = new Counter({
    name: 'proofgate_agent_enrollments_total',
    help: 'Runs of enrolling, by what they ended with.',
    labelNames: ['outcome'],
    registers,
  });
  new Gauge({
    name: 'proofgate_agent_key_expires_at_seconds',
    help: 'Unix time at which the key in place ends; 0 where there is none that is good.',
    registers,
    collect() {
      this.set(keyEndSeconds());
    },
  });
  return { registry, enrollmentEnded: (outcome) => ended.inc({ outcome }) };
}
