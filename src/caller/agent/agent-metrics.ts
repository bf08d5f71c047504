/**
 * Defines every metric of the agent with its names and labels. No label carries text from Control or a token.
 * Source: docs/operate/workloads.md "Metrics".
 */
import { collectDefaultMetrics, Registry } from 'prom-client';
import { instrumentsOf } from '../../process/telemetry/instruments.ts';

/** Result of an enrollment run. */
type EnrollmentOutcome = 'enrolled' | 'unavailable' | 'pending' | 'refused' | 'denied';

/** Result of a call to the broker. */
type PassportOutcome = 'issued' | 'refused' | 'timed_out' | 'unreachable' | 'usage' | 'internal';

/**
 * Metrics of an agent with a broker.
 * @param passportEndSeconds Unix time at which the first passport expires, 0 without one; read at each scrape
 */
export function createPassportMetrics(passportEndSeconds: () => number) {
  const registry = new Registry();
  const { counter, reading } = instrumentsOf(registry);
  collectDefaultMetrics({ register: registry });
  const ended = counter(
    'proofgate_agent_passports_total',
    'Attempts to get passports, by what they ended with.',
    'outcome',
  );
  reading(
    'proofgate_agent_passport_expires_at_seconds',
    'Unix time at which the first passport in place ends; 0 where there is none that is good.',
    passportEndSeconds,
  );
  return { registry, passportsEnded: (outcome: PassportOutcome) => ended.inc({ outcome }) };
}

/** @param keyEndSeconds Unix time at which the current key expires, 0 without a key; read at each scrape */
export function createAgentMetrics(keyEndSeconds: () => number) {
  const registry = new Registry();
  const { counter, reading } = instrumentsOf(registry);
  collectDefaultMetrics({ register: registry });
  const ended = counter(
    'proofgate_agent_enrollments_total',
    'Runs of enrolling, by what they ended with.',
    'outcome',
  );
  reading(
    'proofgate_agent_key_expires_at_seconds',
    'Unix time at which the key in place ends; 0 where there is none that is good.',
    keyEndSeconds,
  );
  return { registry, enrollmentEnded: (outcome: EnrollmentOutcome) => ended.inc({ outcome }) };
}
