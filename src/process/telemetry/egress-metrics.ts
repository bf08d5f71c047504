/**
 * Metrics of the signer's egress proxy: connections, requests, bodies and upstreams. No label names a peer or an upstream.
 * Source: docs/signer.md "Metrics".
 */
import type { Registry } from 'prom-client';
import { DurationHistogram } from './duration-histogram.ts';
import { instrumentsOf } from './instruments.ts';
import { STATUS_CLASSES, type StatusClass } from './proxy-metrics.ts';

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
  const duration = new DurationHistogram({
    name: 'http_server_request_duration_seconds',
    help: 'Time from the head of a request to the end of its response.',
    labelNames: ['status'],
    registry,
  });
  const observe = Object.fromEntries(
    STATUS_CLASSES.map((status) => [status, duration.series({ status })]),
  ) as { readonly [S in StatusClass]: (seconds: number) => void };
  return {
    connections: (open: number) => connections.set(open),
    requests: (open: number) => requests.set(open),
    spooled: (changeBytes: number) => spooled.inc(changeBytes),
    upstreamFailed: (code: string) => failures.inc({ code }),
    served: (status: StatusClass, seconds: number) => observe[status](seconds),
  };
}
