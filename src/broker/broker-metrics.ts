/**
 * Metrics of the broker. Labels come from closed sets (route patterns, codes, kinds of proof); none names a caller.
 * Source: docs/operate/broker.md "Metrics".
 */
import { Histogram, type Registry } from 'prom-client';
import { instrumentsOf } from '../process/telemetry/instruments.ts';

const REQUEST_BUCKETS_SECONDS = [0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1];

export type BrokerMetrics = ReturnType<typeof createBrokerMetrics>;

/** Registers the broker's metrics. */
export function createBrokerMetrics(registry: Registry) {
  const { counter } = instrumentsOf(registry);
  const requests = counter(
    'proofgate_broker_requests_total',
    'Requests answered, by route, method and status.',
    ...['route', 'method', 'status'],
  );
  const requestSeconds = new Histogram({
    name: 'proofgate_broker_request_seconds',
    help: 'Time from the header of a request to its answer.',
    labelNames: ['route'],
    buckets: REQUEST_BUCKETS_SECONDS,
    registers: [registry],
  });
  const decisions = counter(
    'proofgate_broker_decisions_total',
    'Passports, proofs and profile lists, by operation, kind of proof, and outcome: issued or a problem code.',
    ...['operation', 'proof', 'outcome'],
  );
  return {
    /** @param route the pattern, such as `/v1/passports`; `none` for a request that matches no route */
    requestAnswered(route: string, method: string, status: number, seconds: number) {
      requests.inc({ route, method, status: String(status) });
      requestSeconds.observe({ route }, seconds);
    },
    /** @param outcome `issued` or a problem code */
    decided: (operation: string, proof: string, outcome: string) =>
      decisions.inc({ operation, proof, outcome }),
  };
}
