/**
 * Metrics of the forward-authentication server. No label names a peer.
 * Source: docs/operate/enforcement.md "Metrics".
 */
import type { Registry } from 'prom-client';
import { DurationHistogram } from '../../process/telemetry/duration-histogram.ts';
import { instrumentsOf } from '../../process/telemetry/instruments.ts';

/**
 * Why a connection was closed, or a request denied before its evaluation: too many connections (`connections`), no TLS or no
 * trusted certificate (`tls`), a certificate of another client (`client_name`), an untrusted address (`peer`), no HTTP
 * request (`request`), another secret (`secret`), no original request in it (`source`, `path`), or a header that the client
 * must not send (`header`).
 */
type RejectionReason =
  | 'connections'
  | 'tls'
  | 'client_name'
  | 'peer'
  | 'request'
  | 'secret'
  | 'source'
  | 'path'
  | 'header';

export type ExtAuthzHttpMetrics = ReturnType<typeof createExtAuthzHttpMetrics>;

export function createExtAuthzHttpMetrics(registry: Registry) {
  const { counter, gauge } = instrumentsOf(registry);
  const refused = counter(
    'proofgate_http_refused_total',
    'Connections that the HTTP port closed, and requests that it denied before their evaluation.',
    'why',
  );
  const connections = gauge('proofgate_http_connections', 'Open connections of the HTTP port.');
  const inFlight = gauge(
    'proofgate_http_checks_in_flight',
    'Checks over HTTP that have begun and not ended.',
  );
  const checks = counter('proofgate_http_checks_total', 'Answered checks over HTTP, by status.', 'status');
  const duration = new DurationHistogram({
    name: 'proofgate_http_check_duration_seconds',
    help: 'Time from the headers of a check over HTTP to the end of its answer.',
    labelNames: [],
    registry,
  }).series({});
  const expiry = gauge(
    'proofgate_http_tls_certificate_expiry_timestamp_seconds',
    'When the certificate of the HTTP port expires; NaN without TLS.',
  );
  expiry.set(Number.NaN);
  const reloads = counter(
    'proofgate_http_tls_reloads_total',
    'Times that changed TLS files of the HTTP port were taken, or could not be.',
    'outcome',
  );
  // Alerts need series that exist from the start.
  for (const outcome of ['succeeded', 'failed']) reloads.inc({ outcome }, 0);
  return {
    refused: (why: RejectionReason) => refused.inc({ why }),
    connections: (open: number) => connections.set(open),
    /** @returns a function that ends the check; its status is undefined when the proxy did not wait for the answer */
    started: () => {
      const startedMs = performance.now();
      inFlight.inc();
      return (status: number | undefined) => {
        inFlight.dec();
        if (status === undefined) return;
        checks.inc({ status: String(status) });
        duration((performance.now() - startedMs) / 1000);
      };
    },
    /** @param seconds since the epoch */
    certificateExpires: (seconds: number) => expiry.set(seconds),
    certificateReloaded: (outcome: 'succeeded' | 'failed') => reloads.inc({ outcome }),
  };
}
