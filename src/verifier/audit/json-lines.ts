/**
 * Writes audit events as JSON lines to a file, a FIFO or standard output.
 * Source: docs/operate/enforcement.md "Audit events".
 */
import { BatchingSink } from './batching.ts';
import { openDestination } from './destination.ts';
import { FileTransport } from './file-transport.ts';
import type { AuditMode, AuditObserver, OperatedAuditSink } from './sink.ts';
import { WriteThroughSink } from './write-through.ts';

export interface JsonLinesOptions {
  /** `-` is standard output. A file is created with mode 0600 and appended to. */
  readonly destination: string;
  readonly mode: AuditMode;
  readonly observer: AuditObserver;
  /** Default 16 MiB. */
  readonly maxQueueBytes?: number;
  /** Whether other processes append to the same file. Default false. */
  readonly isShared?: boolean;
}

const MAX_QUEUE_BYTES = 16 * 1024 * 1024;
const FILE_BATCH_BYTES = 64 * 1024;
/** PIPE_BUF on Linux: lines of several processes stay intact (pipe(7)). */
const PIPE_BATCH_BYTES = 4096;

/** @throws Error of the file system when the destination cannot be opened */
export function createJsonLinesSink(options: JsonLinesOptions): OperatedAuditSink {
  const { mode, observer, maxQueueBytes = MAX_QUEUE_BYTES } = options;
  const destination = openDestination(options.destination, options.isShared);
  if (mode === 'required') return new WriteThroughSink(destination, observer);
  const transport = new FileTransport(destination, (code) => observer.failed(code));
  return new BatchingSink(transport, observer, {
    maxQueueBytes,
    batchBytes: destination.isPipe ? PIPE_BATCH_BYTES : FILE_BATCH_BYTES,
    intervalMs: 100,
    retry: { firstMs: 100, maxMs: 1000 },
    closeTimeoutMs: 2000,
  });
}
