/**
 * Metrics of the signer's egress proxy: connections, requests, bodies and upstreams. No label names a peer or an upstream.
 * Source: docs/operate/signer.md "Metrics".
 */
import type { Registry } from 'prom-client';
import { servedMetric } from '../../../process/http-proxy/served-metrics.ts';
import { instrumentsOf } from '../../../process/telemetry/instruments.ts';

export type EgressMetrics = ReturnType<typeof createEgressMetrics>;

export function createEgressMetrics(registry: Registry) {
  const { counter, gauge } = instrumentsOf(registry);
  const connections = gauge('proofgate_signer_connections', 'Open connections of applications.');
  const requests = gauge('proofgate_signer_requests_in_flight', 'Requests that have begun and not ended.');
  const spooled = gauge('proofgate_signer_spooled_bytes', 'Bytes of request bodies in temporary files.');
  const failures = counter(
    'proofgate_signer_upstream_failures_total',
    'Requests that an upstream did not answer in full.',
    'code',
  );
  return {
    connections: (open: number) => connections.set(open),
    requests: (open: number) => requests.set(open),
    spooled: (changeBytes: number) => spooled.inc(changeBytes),
    upstreamFailed: (code: string) => failures.inc({ code }),
    served: servedMetric(registry),
  };
}
