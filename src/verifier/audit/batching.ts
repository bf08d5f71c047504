/**
 * Best-effort audit sink: a bounded queue hands events to a transport in batches, off the request path. Events that do
 * not fit are counted, and the audit trail shows where they are missing.
 */

import { Backoff } from '../../process/program/backoff.ts';
import type { AuditEvent } from '../../process/telemetry/audit-event.ts';
import { type LineBatch, LineQueue } from './line-queue.ts';
import type { AuditObserver, OperatedAuditSink } from './sink.ts';

export type Delivery =
  | { readonly kind: 'delivered' }
  /** The destination is busy, such as a full pipe; this is not a failure. Retry after `waitMs`. */
  | { readonly kind: 'busy'; readonly waitMs: number }
  | { readonly kind: 'failed'; readonly code: string; readonly retryAfterMs?: number | undefined }
  /** Never retry this batch. */
  | { readonly kind: 'refused'; readonly code: string }
  | { readonly kind: 'too_large'; readonly code: string };

export interface AuditTransport {
  /** Never rejects. The sink retries a batch until it is delivered or refused. */
  deliver(batch: LineBatch, signal: AbortSignal): Promise<Delivery>;
  /** Reopens the destination before the next batch. */
  reopen(): void;
  close(): Promise<void>;
}

export interface BatchingOptions {
  readonly maxQueueBytes: number;
  readonly batchBytes: number;
  /** Maximum time that an event waits for a batch to fill. */
  readonly intervalMs: number;
  readonly retry: { readonly firstMs: number; readonly maxMs: number };
  /** Maximum duration of `close`. */
  readonly closeTimeoutMs: number;
}

export class BatchingSink implements OperatedAuditSink {
  readonly #transport: AuditTransport;
  readonly #options: BatchingOptions;
  readonly #observer: AuditObserver;
  readonly #queue: LineQueue;
  readonly #backoff: Backoff;
  readonly #abort = new AbortController();
  readonly #interval: NodeJS.Timeout;
  #notBeforeMs = 0;
  #delivering: Promise<void> | undefined;
  #closing: Promise<void> | undefined;

  constructor(transport: AuditTransport, observer: AuditObserver, options: BatchingOptions) {
    this.#transport = transport;
    this.#observer = observer;
    this.#options = options;
    this.#queue = new LineQueue({ maxBytes: options.maxQueueBytes, batchBytes: options.batchBytes });
    this.#backoff = new Backoff(options.retry);
    this.#interval = setInterval(() => this.#deliverPending(), options.intervalMs).unref();
  }

  get queuedBytes(): number {
    return this.#queue.queuedBytes;
  }

  record(event: AuditEvent | string): boolean {
    if (this.#closing !== undefined || !this.#queue.add(event)) {
      this.#observer.dropped(1);
      return false;
    }
    if (this.#queue.hasFullBatch) this.#deliverPending();
    return true;
  }

  reopen(): void {
    this.#transport.reopen();
  }

  close(): Promise<void> {
    this.#closing ??= this.#close();
    return this.#closing;
  }

  async #close(): Promise<void> {
    clearInterval(this.#interval);
    const timer = setTimeout(() => this.#abort.abort(), this.#options.closeTimeoutMs);
    while (!this.#abort.signal.aborted && this.#queue.first() !== undefined) {
      await pause(this.#notBeforeMs - performance.now(), this.#abort.signal);
      this.#deliverPending();
      await this.#delivering;
    }
    clearTimeout(timer);
    for (let batch = this.#queue.first(); batch !== undefined; batch = this.#queue.first()) {
      this.#observer.dropped(batch.events);
      this.#queue.removeFirst();
    }
    await this.#transport.close();
  }

  /** Delivers one batch after the other until the transport fails. */
  #deliverPending(): void {
    if (this.#delivering !== undefined || performance.now() < this.#notBeforeMs) return;
    if (this.#abort.signal.aborted || this.#queue.queuedBytes === 0) return;
    this.#delivering = this.#deliverAll().finally(() => {
      this.#delivering = undefined;
    });
  }

  async #deliverAll(): Promise<void> {
    for (let batch = this.#queue.first(); batch !== undefined; batch = this.#nextFull()) {
      const delivery = await this.#transport.deliver(batch, this.#abort.signal);
      const waitMs = this.#settle(batch, delivery);
      if (waitMs === undefined) continue;
      this.#notBeforeMs = performance.now() + waitMs;
      // The interval may be much longer. Timers use whole milliseconds and may fire a fraction of one early.
      if (this.#closing === undefined)
        setTimeout(() => this.#deliverPending(), Math.ceil(waitMs) + 1).unref();
      return;
    }
  }

  /** A batch that is not full waits for more events. */
  #nextFull(): LineBatch | undefined {
    return this.#queue.hasFullBatch ? this.#queue.first() : undefined;
  }

  /** @returns milliseconds to wait before the next attempt; undefined to continue at once */
  #settle(batch: LineBatch, delivery: Delivery): number | undefined {
    if (delivery.kind === 'busy') return delivery.waitMs;
    if (delivery.kind === 'delivered') {
      this.#queue.removeFirst();
      this.#backoff.reset();
      this.#observer.written(batch.events);
      return undefined;
    }
    this.#observer.failed(delivery.code);
    if (delivery.kind === 'failed') return this.#backoff.failed(delivery.retryAfterMs);
    if (delivery.kind === 'too_large' && this.#queue.splitFirst()) return undefined;
    this.#queue.loseFirst();
    this.#observer.dropped(batch.events);
    return undefined;
  }
}

/** Always waits for at least one timer, so that a loop of pauses cannot starve the one that aborts it. */
function pause(ms: number, signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    if (signal.aborted) return resolve();
    const done = () => {
      clearTimeout(timer);
      signal.removeEventListener('abort', done);
      resolve();
    };
    const timer = setTimeout(done, Math.max(ms, 0));
    signal.addEventListener('abort', done);
  });
}
