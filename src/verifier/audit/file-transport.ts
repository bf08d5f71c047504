/** Writes batches to standard output, a file or a FIFO. No line is torn, not even across errors and rotation. */
import { write } from 'node:fs';
import { promisify } from 'node:util';
import type { AuditTransport, Delivery } from './batching.ts';
import type { Destination } from './destination.ts';
import type { LineBatch } from './line-queue.ts';
import { failureCode } from './sink.ts';

const writeBytes = promisify(write);

/** How often to check whether the path still names the open file. */
const LOOK_INTERVAL_MS = 1000;
/** Wait before retrying a full pipe. */
const BUSY_WAIT_MS = 5;
/** A pipe that stays full for this long has no working reader. */
const STALLED_AFTER_MS = 1000;
const LF = 0x0a;

export class FileTransport implements AuditTransport {
  readonly #destination: Destination;
  readonly #onFollowFailed: (code: string) => void;
  /** The batch in progress, and how many of its bytes are written. */
  #batch: LineBatch | undefined;
  #offset = 0;
  #isWriting = false;
  #progressMs = performance.now();
  #lookedMs = performance.now();
  #isReopenWanted = false;

  /** @param onFollowFailed called when the file could not be reopened */
  constructor(destination: Destination, onFollowFailed: (code: string) => void) {
    this.#destination = destination;
    this.#onFollowFailed = onFollowFailed;
  }

  reopen(): void {
    this.#isReopenWanted = true;
    if (!this.#isWriting && this.#isBetweenLines) this.#follow();
  }

  async close(): Promise<void> {
    this.#destination.close();
  }

  async deliver(batch: LineBatch): Promise<Delivery> {
    if (this.#batch !== batch) this.#begin(batch);
    // Never reopen within a line: its rest belongs to the same file.
    if (this.#isBetweenLines) this.#follow();
    const { descriptor } = this.#destination;
    if (descriptor === undefined) return { kind: 'failed', code: 'enxio' };
    this.#isWriting = true;
    try {
      await this.#write(descriptor, batch.bytes);
      this.#batch = undefined;
      return { kind: 'delivered' };
    } catch (error) {
      return this.#notWritten(batch, failureCode(error));
    } finally {
      this.#isWriting = false;
    }
  }

  get #isBetweenLines(): boolean {
    return this.#batch === undefined || this.#offset === 0 || this.#batch.bytes[this.#offset - 1] === LF;
  }

  #begin(batch: LineBatch): void {
    this.#batch = batch;
    this.#offset = 0;
    this.#progressMs = performance.now();
  }

  async #write(descriptor: number, bytes: Buffer): Promise<void> {
    if (this.#destination.isTorn) await writeBytes(descriptor, Buffer.of(LF));
    this.#destination.isTorn = false;
    while (this.#offset < bytes.byteLength) {
      const { bytesWritten } = await writeBytes(descriptor, bytes, this.#offset);
      this.#offset += bytesWritten;
      this.#progressMs = performance.now();
    }
  }

  #follow(): void {
    const isDue = performance.now() - this.#lookedMs >= LOOK_INTERVAL_MS;
    if (!this.#isReopenWanted && !isDue && this.#destination.descriptor !== undefined) return;
    const failure = this.#destination.follow(this.#isReopenWanted);
    this.#lookedMs = performance.now();
    this.#isReopenWanted = false;
    // Without any descriptor the batch itself fails.
    if (failure !== undefined && this.#destination.descriptor !== undefined) this.#onFollowFailed(failure);
  }

  #notWritten({ bytes }: LineBatch, code: string): Delivery {
    if (code === 'eagain') {
      const isStalled = performance.now() - this.#progressMs >= STALLED_AFTER_MS;
      return isStalled ? { kind: 'failed', code } : { kind: 'busy', waitMs: BUSY_WAIT_MS };
    }
    // The next attempt may go to another file, or after another process' writes, so the line is written again as a
    // whole.
    const lineStart = this.#offset === 0 ? 0 : bytes.lastIndexOf(LF, this.#offset - 1) + 1;
    this.#destination.isTorn ||= lineStart < this.#offset;
    this.#offset = lineStart;
    return { kind: 'failed', code };
  }
}
