/**
 * Metrics of the ext_authz server's connections and its certificate. No label names a peer.
 * Source: docs/enforcement.md "Metrics".
 */
import { Counter, Gauge, type Registry } from 'prom-client';

/**
 * Why the ext_authz server rejected a connection or a call: too many of them (`connections`, `calls`), a compressed
 * call (`compressed`), no TLS or no trusted certificate (`tls`), a certificate of another client (`client_name`), a
 * timeout of an incomplete request (`slow`), or too many incomplete bytes (`bytes`).
 */
type RejectionReason = 'connections' | 'calls' | 'compressed' | 'tls' | 'client_name' | 'slow' | 'bytes';

export interface ExtAuthzServerMetrics {
  refused(why: RejectionReason): void;
  connections(open: number): void;
  calls(open: number): void;
  /** @param seconds since the epoch */
  certificateExpires(seconds: number): void;
  certificateReloaded(outcome: 'succeeded' | 'failed'): void;
}

export function createExtAuthzServerMetrics(registry: Registry): ExtAuthzServerMetrics {
  const registers = [registry];
  const refused = new Counter({
    name: 'proofgate_grpc_refused_total',
    help: 'Connections and calls that the ext_authz server did not take.',
    labelNames: ['why'],
    registers,
  });
  const connections = new Gauge({
    name: 'proofgate_grpc_connections',
    help: 'Open connections of the ext_authz server.',
    registers,
  });
  const calls = new Gauge({
    name: 'proofgate_grpc_calls_in_flight',
    help: 'RPCs that have begun and not ended.',
    registers,
  });
  const expiry = new Gauge({
    name: 'proofgate_tls_certificate_expiry_timestamp_seconds',
    help: 'When the certificate of the ext_authz server expires; NaN without TLS.',
    registers,
  });
  expiry.set(Number.NaN);
  const reloads = new Counter({
    name: 'proofgate_tls_reloads_total',
    help: 'Times that changed TLS files were taken, or could not be.',
    labelNames: ['outcome'],
    registers,
  });
  // Alerts need series that exist from the start.
  for (const outcome of ['succeeded', 'failed']) reloads.inc({ outcome }, 0);
  return {
    refused: (why) => refused.inc({ why }),
    connections: (open) => connections.set(open),
    calls: (open) => calls.set(open),
    certificateExpires: (seconds) => expiry.set(seconds),
    certificateReloaded: (outcome) => reloads.inc({ outcome }),
  };
}
