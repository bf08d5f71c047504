/**
 * Sends audit events to a collector over HTTP. Always best effort, so that a decision does not wait for a network round
 * trip.
 */
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
