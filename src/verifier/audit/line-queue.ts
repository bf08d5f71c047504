/**
 * Events that wait to be handed over, as batches of whole JSON lines. Bounded by bytes: beyond that new events are
 * left out, and the next one that finds room follows a line that says how many.
 */
import type { DecisionEvent } from '../../telemetry/decision-event.ts';
import { AuditGap } from './gap.ts';

export interface LineBatch {
  /** Whole lines. */
  readonly bytes: Buffer;
  readonly events: number;
  /** Of how many lost events a line in it tells. */
  readonly lostTold: number;
}

export interface LineQueueOptions {
  readonly maxBytes: number;
  /** A batch holds at most this much, or one line. */
  readonly batchBytes: number;
}

export class LineQueue {
  readonly #options: LineQueueOptions;
  readonly #gap = new AuditGap();
  readonly #sealed: LineBatch[] = [];
  #sealedBytes = 0;
  #text = '';
  #events = 0;
  #lostTold = 0;

  constructor(options: LineQueueOptions) {
    this.#options = options;
  }

  /** The open batch counts by characters, which for all but a few events are as many. */
  get queuedBytes(): number {
    return this.#sealedBytes + this.#text.length;
  }

  /** Whether a batch is there that will not grow any more. */
  get hasFullBatch(): boolean {
    return this.#sealed.length > 0;
  }

  /** @returns false: it was left out */
  add(event: DecisionEvent): boolean {
    const line = `${JSON.stringify(event)}\n`;
    if (this.queuedBytes + line.length > this.#options.maxBytes) {
      this.#gap.lose(1);
      return false;
    }
    if (this.#gap.lost > 0) this.#tellGap();
    this.#append(line);
    return true;
  }

  /** The batch whose turn it is; the same until it is removed or split. */
  first(): LineBatch | undefined {
    if (this.#sealed.length === 0 && this.#gap.lost > 0) this.#tellGap();
    if (this.#sealed.length === 0) this.#seal();
    return this.#sealed[0];
  }

  removeFirst(): void {
    this.#sealedBytes -= this.#sealed.shift()?.bytes.byteLength ?? 0;
  }

  /** Leaves the first batch out. */
  loseFirst(): void {
    const [batch] = this.#sealed;
    if (batch !== undefined) this.#gap.lose(batch.events + batch.lostTold);
    this.removeFirst();
  }

  /** Makes two of the first batch. @returns false: it is one line, and stays */
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

  #replaceFirst({ bytes, events, lostTold }: LineBatch, at: number): void {
    const [head, tail] = [bytes.subarray(0, at), bytes.subarray(at)];
    // A gap's line is the first of its batch: it goes with the head.
    const gapLines = lostTold > 0 ? 1 : 0;
    const headEvents = countLines(head) - gapLines;
    this.#sealed.splice(
      0,
      1,
      { bytes: head, events: headEvents, lostTold },
      { bytes: tail, events: events - headEvents, lostTold: 0 },
    );
  }

  /** Begins a batch of its own, so that a batch holds one such line at most, and as its first. */
  #tellGap(): void {
    this.#seal();
    this.#text = this.#gap.line();
    this.#lostTold = this.#gap.lost;
    this.#gap.told();
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
    this.#sealed.push({ bytes, events: this.#events, lostTold: this.#lostTold });
    this.#sealedBytes += bytes.byteLength;
    this.#text = '';
    this.#events = 0;
    this.#lostTold = 0;
  }
}

function countLines(bytes: Buffer): number {
  let lines = 0;
  for (let at = bytes.indexOf('\n'); at >= 0; at = bytes.indexOf('\n', at + 1)) lines += 1;
  return lines;
}
