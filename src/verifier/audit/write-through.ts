/**
 * `--audit required`: writes each event before the response is sent, so that every response has its record. An event
 * that cannot be written at once is not recorded. Written means handed to the operating system. One write for each
 * event costs about 2 µs of CPU more than batches (3.8 and 2.0 µs, measured). One write for many requests would save
 * that only with tens in flight, and a single request would wait for another thread (20 µs and more).
 */
import type { AuditEvent } from '../../process/telemetry/audit-event.ts';
import { type Destination, writeNow } from './destination.ts';
import { AuditGap } from './line-queue.ts';
import { type AuditObserver, lineOf, type OperatedAuditSink } from './sink.ts';

/** How often to check the file and, while writing fails, to retry, even without requests. */
const LOOK_INTERVAL_MS = 1000;

export class WriteThroughSink implements OperatedAuditSink {
  readonly #destination: Destination;
  readonly #observer: AuditObserver;
  readonly #gap = new AuditGap();
  readonly #timer: NodeJS.Timeout;
  #isClosed = false;
  #hasFailedToFollow = false;

  /** This sink has no queue. */
  readonly queuedBytes = 0;

  constructor(destination: Destination, observer: AuditObserver, lookIntervalMs = LOOK_INTERVAL_MS) {
    this.#destination = destination;
    this.#observer = observer;
    this.#timer = setInterval(() => this.#look(false), lookIntervalMs).unref();
    if (destination.descriptor === undefined) this.#look(false);
  }

  record(event: AuditEvent | string): boolean {
    if (!this.#isClosed && this.#write(lineOf(event))) {
      this.#observer.written(1);
      return true;
    }
    this.#gap.lose(1);
    this.#observer.dropped(1);
    return false;
  }

  reopen(): void {
    if (!this.#isClosed) this.#look(true);
  }

  async close(): Promise<void> {
    if (this.#isClosed) return;
    clearInterval(this.#timer);
    this.#tellGap();
    this.#isClosed = true;
    this.#destination.close();
  }

  #look(force: boolean): void {
    const failure = this.#destination.follow(force);
    if (failure !== undefined) this.#observer.failed(failure);
    // Without a lost event there is nothing to write. After one, this must try, because a verifier that is not ready
    // gets no requests.
    else if (this.#hasFailedToFollow && this.#gap.lost === 0) this.#observer.written(0);
    this.#hasFailedToFollow = failure !== undefined;
    this.#tellGap();
  }

  /** After a lost event, writing is presumed to fail. This tries again. */
  #tellGap(): void {
    if (this.#gap.lost > 0 && this.#write('')) this.#observer.written(0);
  }

  /** @param line empty to write only the gap line */
  #write(line: string): boolean {
    const destination = this.#destination;
    // Ends a partially written line first, so that it does not spoil the next one.
    const before = `${destination.isTorn ? '\n' : ''}${this.#gap.line()}`;
    const bytes = Buffer.from(before + line);
    const { failure, written } = writeNow(destination, bytes);
    if (written > 0) {
      destination.isTorn = bytes[written - 1] !== 0x0a;
      if (written >= Buffer.byteLength(before)) this.#gap.markReported();
    }
    if (failure !== undefined) this.#observer.failed(failure);
    return failure === undefined;
  }
}
