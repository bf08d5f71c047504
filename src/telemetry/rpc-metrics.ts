/**
 * Metrics of the ext_authz server's RPCs by method, with the names of go-grpc-prometheus, which dashboards know. Starts
 * and messages are plain numbers that a scrape reads, so that they cost requests nothing.
 */
import { Counter, type Registry } from 'prom-client';
import { DurationHistogram } from './duration-histogram.ts';

/** gRPC's name of the method's streaming type. */
export type RpcType = 'unary' | 'server_stream' | 'client_stream' | 'bidi_stream';

export interface RpcMethodMetrics {
  started(): void;
  received(): void;
  sent(): void;
  /** @param code gRPC's name of the status, such as `OK` @param seconds from the complete request to the end of the RPC */
  handled(code: string, seconds: number): void;
}

/** @param path such as `/envoy.service.auth.v3.Authorization/Check`; only methods that the server implements */
export type RpcMetrics = (path: string, type: RpcType) => RpcMethodMetrics;

const METHOD_LABELS = ['grpc_type', 'grpc_service', 'grpc_method'] as const;
type MethodLabels = { readonly [L in (typeof METHOD_LABELS)[number]]: string };

interface Counts {
  readonly labels: MethodLabels;
  started: number;
  received: number;
  sent: number;
  readonly handled: Map<string, { count: number }>;
}

export function createRpcMetrics(registry: Registry): RpcMetrics {
  const counted: Counts[] = [];
  readWhenScraped(registry, counted, 'started', 'grpc_server_started_total', 'RPCs started.');
  new Counter({
    name: 'grpc_server_handled_total',
    help: 'RPCs completed, by code.',
    labelNames: [...METHOD_LABELS, 'grpc_code'],
    registers: [registry],
    collect() {
      this.reset();
      for (const { handled, labels } of counted) {
        for (const [grpc_code, { count }] of handled) this.inc({ ...labels, grpc_code }, count);
      }
    },
  });
  readWhenScraped(registry, counted, 'received', 'grpc_server_msg_received_total', 'Messages received.');
  readWhenScraped(registry, counted, 'sent', 'grpc_server_msg_sent_total', 'Messages sent.');
  const handling = new DurationHistogram({
    name: 'grpc_server_handling_seconds',
    help: 'Time from the complete request to the end of the RPC.',
    labelNames: METHOD_LABELS,
    registry,
  });
  return (path, type) => {
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
      handled: (grpc_code, seconds) => {
        const ofCode = counts.handled.get(grpc_code);
        if (ofCode === undefined) counts.handled.set(grpc_code, { count: 1 });
        else ofCode.count += 1;
        observe(seconds);
      },
    };
  };
}

function readWhenScraped(
  registry: Registry,
  counted: readonly Counts[],
  what: 'started' | 'received' | 'sent',
  name: string,
  help: string,
): void {
  new Counter({
    name,
    help,
    labelNames: METHOD_LABELS,
    registers: [registry],
    collect() {
      this.reset();
      for (const counts of counted) this.inc(counts.labels, counts[what]);
    },
  });
}
