/** Audit events to a collector over HTTP, always best effort: an answer does not wait for a round trip to elsewhere. */
import { BatchingSink } from './batching.ts';
import { HttpTransport, type HttpTransportOptions } from './http-transport.ts';
import type { AuditObserver, OperatedAuditSink } from './sink.ts';

export interface HttpBatchesOptions extends HttpTransportOptions {
  readonly observer: AuditObserver;
  readonly maxQueueBytes: number;
}

export function createHttpBatchSink({
  observer,
  maxQueueBytes,
  ...transport
}: HttpBatchesOptions): OperatedAuditSink {
  return new BatchingSink(new HttpTransport(transport), observer, {
    maxQueueBytes,
    batchBytes: 256 * 1024,
    intervalMs: 1000,
    retry: { firstMs: 500, maxMs: 30_000 },
    closeTimeoutMs: 5000,
  });
}
