/**
 * Metrics of the reverse proxy: its connections, requests, bodies and upstream. No label names a peer.
 * Source: docs/operate/proxy.md "Metrics".
 */
import type { Registry } from 'prom-client';
import { servedMetric } from '../../process/http-proxy/served-metrics.ts';
import { instrumentsOf } from '../../process/telemetry/instruments.ts';

export type ProxyMetrics = ReturnType<typeof createProxyMetrics>;

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
  return {
    /** @param why a code of the proxy */
    refused: (why: string) => refused.inc({ why }),
    connections: (open: number) => connections.set(open),
    requests: (open: number) => requests.set(open),
    tunnels: (open: number) => tunnels.set(open),
    spooled: (changeBytes: number) => spooled.inc(changeBytes),
    upstreamFailed: (code: string) => failures.inc({ code }),
    served: servedMetric(registry),
  };
}
