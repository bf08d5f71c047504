/**
 * Queues audit events as batches of whole JSON lines, bounded by bytes. When the queue is full it drops new events; the
 * next event that fits follows a line that reports how many.
 */
import type { AuditEvent } from '../../process/telemetry/audit-event.ts';
import { AUDIT_GAP_EVENT_NAME, type AuditGapEvent } from '../../process/telemetry/decision-event.ts';
import { lineOf } from './sink.ts';

export interface LineBatch {
  /** Whole lines. */
  readonly bytes: Buffer;
  readonly events: number;
  /** Number of lost events that a line in the batch reports. */
  readonly reportedLost: number;
}

interface LineQueueOptions {
  readonly maxBytes: number;
  /** Maximum size of a batch; a single larger line still makes a batch. */
  readonly batchBytes: number;
}

export class LineQueue {
  readonly #options: LineQueueOptions;
  readonly #gap = new AuditGap();
  readonly #sealed: LineBatch[] = [];
  #sealedBytes = 0;
  #text = '';
  #events = 0;
  #reportedLost = 0;

  constructor(options: LineQueueOptions) {
    this.#options = options;
  }

  /** Counts the open batch in characters, which for nearly all events equals bytes. */
  get queuedBytes(): number {
    return this.#sealedBytes + this.#text.length;
  }

  /** Whether a complete batch is queued, one that will not grow any more. */
  get hasFullBatch(): boolean {
    return this.#sealed.length > 0;
  }

  /** @returns false when the event was dropped */
  add(event: AuditEvent | string): boolean {
    const line = lineOf(event);
    if (this.queuedBytes + line.length > this.#options.maxBytes) {
      this.#gap.lose(1);
      return false;
    }
    if (this.#gap.lost > 0) this.#tellGap();
    this.#append(line);
    return true;
  }

  /** The next batch to deliver; the same one until it is removed or split. */
  first(): LineBatch | undefined {
    if (this.#sealed.length === 0 && this.#gap.lost > 0) this.#tellGap();
    if (this.#sealed.length === 0) this.#seal();
    return this.#sealed[0];
  }

  removeFirst(): void {
    this.#sealedBytes -= this.#sealed.shift()?.bytes.byteLength ?? 0;
  }

  /** Drops the first batch and counts its events as lost. */
  loseFirst(): void {
    const [batch] = this.#sealed;
    if (batch !== undefined) this.#gap.lose(batch.events + batch.reportedLost);
    this.removeFirst();
  }

  /** Splits the first batch in two. @returns false when it is a single line, which stays */
  splitFirst(): boolean {
    const [batch] = this.#sealed;
    const end = batch?.bytes.indexOf('\n', Math.floor(batch.bytes.byteLength / 2) - 1) ?? -1;
    if (batch === undefined || end < 0 || end === batch.bytes.byteLength - 1) return this.#splitBefore(batch);
    this.#replaceFirst(batch, end + 1);
    return true;
  }

  #splitBefore(batch: LineBatch | undefined): boolean {
    const end = batch?.bytes.lastIndexOf('\n', batch.bytes.byteLength - 2) ?? -1;
    if (batch === undefined || end < 0) return false;
    this.#replaceFirst(batch, end + 1);
    return true;
  }

  #replaceFirst({ bytes, events, reportedLost }: LineBatch, at: number): void {
    const [head, tail] = [bytes.subarray(0, at), bytes.subarray(at)];
    // A gap line is the first of its batch, so it stays with the head.
    const gapLines = reportedLost > 0 ? 1 : 0;
    const headEvents = countLines(head) - gapLines;
    this.#sealed.splice(
      0,
      1,
      { bytes: head, events: headEvents, reportedLost },
      { bytes: tail, events: events - headEvents, reportedLost: 0 },
    );
  }

  /** Starts a new batch with the gap line, so that a batch holds at most one such line, as its first. */
  #tellGap(): void {
    this.#seal();
    this.#text = this.#gap.line();
    this.#reportedLost = this.#gap.lost;
    this.#gap.markReported();
  }

  #append(line: string): void {
    if (this.#text.length + line.length > this.#options.batchBytes) this.#seal();
    this.#text += line;
    this.#events += 1;
    if (this.#text.length >= this.#options.batchBytes) this.#seal();
  }

  #seal(): void {
    if (this.#text === '') return;
    const bytes = Buffer.from(this.#text);
    this.#sealed.push({ bytes, events: this.#events, reportedLost: this.#reportedLost });
    this.#sealedBytes += bytes.byteLength;
    this.#text = '';
    this.#events = 0;
    this.#reportedLost = 0;
  }
}

function countLines(bytes: Buffer): number {
  let lines = 0;
  for (let at = bytes.indexOf('\n'); at >= 0; at = bytes.indexOf('\n', at + 1)) lines += 1;
  return lines;
}

/** Counts lost events until a line in the audit trail reports them. */
export class AuditGap {
  #lost = 0;
  #sinceMs = 0;

  get lost(): number {
    return this.#lost;
  }

  lose(events: number): void {
    if (this.#lost === 0) this.#sinceMs = Date.now();
    this.#lost += events;
  }

  /** The line to write before the next event; empty when no event is missing. */
  line(): string {
    if (this.#lost === 0) return '';
    const event: AuditGapEvent = {
      event: AUDIT_GAP_EVENT_NAME,
      time: new Date().toISOString(),
      since: new Date(this.#sinceMs).toISOString(),
      lost: this.#lost,
    };
    return `${JSON.stringify(event)}\n`;
  }

  /** The line has been written. */
  markReported(): void {
    this.#lost = 0;
  }
}
