/**
 * Metrics of the broker's process: connections, certificate, reloaded files, trust bundles, and those of its requests. No
 * label names a caller.
 * Source: docs/operate/broker.md "Metrics".
 */
import { collectDefaultMetrics, Registry } from 'prom-client';
import { instrumentsOf } from '../../process/telemetry/instruments.ts';
import { createBrokerMetrics } from '../broker-metrics.ts';

type Outcome = 'succeeded' | 'failed';

export type BrokerProcessMetrics = ReturnType<typeof createBrokerProcessMetrics>;

export function createBrokerProcessMetrics() {
  const registry = new Registry();
  collectDefaultMetrics({ register: registry });
  const { counter, gauge } = instrumentsOf(registry);
  const connections = gauge('proofgate_broker_connections', 'Open connections of callers.');
  const refused = counter(
    'proofgate_broker_connections_refused_total',
    'Connections that the broker did not take: too many, or a failed TLS handshake.',
    'why',
  );
  const closed = counter(
    'proofgate_broker_connections_closed_total',
    'Connections that the broker closed because their certificate ended or the trust bundles changed.',
    'cause',
  );
  const expiry = gauge(
    'proofgate_broker_certificate_expiry_timestamp_seconds',
    "When the broker's own TLS certificate expires; NaN without TLS.",
  );
  expiry.set(Number.NaN);
  const reloads = counter(
    'proofgate_broker_reloads_total',
    'Times that changed files were taken, or could not be.',
    ...['file', 'outcome'],
  );
  const reloaded = (file: string, outcome: Outcome) => reloads.inc({ file, outcome });
  return {
    registry,
    broker: createBrokerMetrics(registry),
    listener: {
      connections: (open: number) => connections.set(open),
      refused: (why: string) => refused.inc({ why }),
    },
    connectionClosed: (cause: string) => closed.inc({ cause }),
    /** @param file name of its readiness check */
    reloaded,
    certificate: {
      /** @param seconds since the epoch */
      certificateExpires: (seconds: number) => expiry.set(seconds),
      certificateReloaded: (outcome: Outcome) => reloaded('tls', outcome),
    },
  };
}
