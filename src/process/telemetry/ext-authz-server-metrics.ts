/**
 * Metrics of the ext_authz server: its connections, its certificate and its RPCs. No label names a peer.
 * Source: docs/operate/enforcement.md "Metrics".
 */
import type { Registry } from 'prom-client';
import { DurationHistogram } from './duration-histogram.ts';
import { instrumentsOf } from './instruments.ts';

/**
 * Why the ext_authz server rejected a connection or a call: too many of them (`connections`, `calls`), a compressed
 * call (`compressed`), no TLS or no trusted certificate (`tls`), a certificate of another client (`client_name`), a
 * timeout of an incomplete request (`slow`), or too many incomplete bytes (`bytes`).
 */
type RejectionReason = 'connections' | 'calls' | 'compressed' | 'tls' | 'client_name' | 'slow' | 'bytes';

export type ExtAuthzServerMetrics = ReturnType<typeof createExtAuthzServerMetrics>;

export function createExtAuthzServerMetrics(registry: Registry) {
  const { counter, gauge } = instrumentsOf(registry);
  const refused = counter(
    'proofgate_grpc_refused_total',
    'Connections and calls that the ext_authz server did not take.',
    'why',
  );
  const connections = gauge('proofgate_grpc_connections', 'Open connections of the ext_authz server.');
  const calls = gauge('proofgate_grpc_calls_in_flight', 'RPCs that have begun and not ended.');
  const expiry = gauge(
    'proofgate_tls_certificate_expiry_timestamp_seconds',
    'When the certificate of the ext_authz server expires; NaN without TLS.',
  );
  expiry.set(Number.NaN);
  const reloads = counter(
    'proofgate_tls_reloads_total',
    'Times that changed TLS files were taken, or could not be.',
    'outcome',
  );
  // Alerts need series that exist from the start.
  for (const outcome of ['succeeded', 'failed']) reloads.inc({ outcome }, 0);
  return {
    refused: (why: RejectionReason) => refused.inc({ why }),
    connections: (open: number) => connections.set(open),
    calls: (open: number) => calls.set(open),
    /** @param seconds since the epoch */
    certificateExpires: (seconds: number) => expiry.set(seconds),
    certificateReloaded: (outcome: 'succeeded' | 'failed') => reloads.inc({ outcome }),
  };
}

/** gRPC's name of the method's streaming type. */
export type RpcType = 'unary' | 'server_stream' | 'client_stream' | 'bidi_stream';
export type RpcMetrics = ReturnType<typeof createRpcMetrics>;
export type RpcMethodMetrics = ReturnType<RpcMetrics>;

const METHOD_LABELS = ['grpc_type', 'grpc_service', 'grpc_method'] as const;

interface Counts {
  readonly labels: { readonly [L in (typeof METHOD_LABELS)[number]]: string };
  started: number;
  received: number;
  sent: number;
  readonly handled: Map<string, { count: number }>;
}

/**
 * Metrics of RPCs by method, with the names of go-grpc-prometheus, which dashboards know. Starts and messages are plain
 * numbers that a scrape reads, so that they cost requests nothing.
 */
export function createRpcMetrics(registry: Registry) {
  const counted: Counts[] = [];
  const { countsRead } = instrumentsOf(registry);
  countsRead('grpc_server_started_total', 'RPCs started.', METHOD_LABELS, (add) => {
    for (const { labels, started } of counted) add(labels, started);
  });
  countsRead(
    'grpc_server_handled_total',
    'RPCs completed, by code.',
    [...METHOD_LABELS, 'grpc_code'],
    (add) => {
      for (const { handled, labels } of counted) {
        for (const [grpc_code, { count }] of handled) add({ ...labels, grpc_code }, count);
      }
    },
  );
  countsRead('grpc_server_msg_received_total', 'Messages received.', METHOD_LABELS, (add) => {
    for (const { labels, received } of counted) add(labels, received);
  });
  countsRead('grpc_server_msg_sent_total', 'Messages sent.', METHOD_LABELS, (add) => {
    for (const { labels, sent } of counted) add(labels, sent);
  });
  const handling = new DurationHistogram({
    name: 'grpc_server_handling_seconds',
    help: 'Time from the complete request to the end of the RPC.',
    labelNames: METHOD_LABELS,
    registry,
  });
  /** @param path such as `/envoy.service.auth.v3.Authorization/Check`; only methods that the server implements */
  return (path: string, type: RpcType) => {
    const [, grpc_service = '', grpc_method = ''] = path.split('/');
    const labels = { grpc_type: type, grpc_service, grpc_method };
    const counts: Counts = { labels, started: 0, received: 0, sent: 0, handled: new Map() };
    counted.push(counts);
    const observe = handling.series(labels);
    return {
      started: () => {
        counts.started += 1;
      },
      received: () => {
        counts.received += 1;
      },
      sent: () => {
        counts.sent += 1;
      },
      /** @param code gRPC's name of the status, such as `OK` @param seconds from the complete request to the end of the RPC */
      handled: (code: string, seconds: number) => {
        const ofCode = counts.handled.get(code);
        if (ofCode === undefined) counts.handled.set(code, { count: 1 });
        else ofCode.count += 1;
        observe(seconds);
      },
    };
  };
}
