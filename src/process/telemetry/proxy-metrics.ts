/**
 * Metrics of the reverse proxy: its connections, requests, bodies and upstream. No label names a peer.
 * Source: docs/proxy.md "Metrics".
 */
import type { Registry } from 'prom-client';
import { DurationHistogram } from './duration-histogram.ts';
import { instrumentsOf } from './instruments.ts';

export type ProxyMetrics = ReturnType<typeof createProxyMetrics>;

/** `1xx` is a switch of protocols; `gone`: the client left before the response ended. */
export const STATUS_CLASSES = ['1xx', '2xx', '3xx', '4xx', '5xx', 'gone'] as const;
export type StatusClass = (typeof STATUS_CLASSES)[number];

export function createProxyMetrics(registry: Registry) {
  const { counter, gauge } = instrumentsOf(registry);
  const refused = counter(
    'proofgate_proxy_refused_total',
    'Connections and requests that the proxy did not take.',
    'why',
  );
  const connections = gauge('proofgate_proxy_connections', 'Open connections of clients.');
  const requests = gauge('proofgate_proxy_requests_in_flight', 'Requests that have begun and not ended.');
  const tunnels = gauge('proofgate_proxy_websockets', 'Open WebSocket connections.');
  const spooled = gauge('proofgate_proxy_spooled_bytes', 'Bytes of request bodies in temporary files.');
  const failures = counter(
    'proofgate_proxy_upstream_failures_total',
    'Verified requests that the upstream did not answer in full.',
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
    /** @param why a code of the proxy */
    refused: (why: string) => refused.inc({ why }),
    connections: (open: number) => connections.set(open),
    requests: (open: number) => requests.set(open),
    tunnels: (open: number) => tunnels.set(open),
    spooled: (changeBytes: number) => spooled.inc(changeBytes),
    upstreamFailed: (code: string) => failures.inc({ code }),
    served: (status: StatusClass, seconds: number) => observe[status](seconds),
  };
}
