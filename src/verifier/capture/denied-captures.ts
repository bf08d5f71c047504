/**
 * Writes denied requests to files, after their responses and one at a time. The queue is short, so a flood of denials is
 * sampled: it costs neither memory nor the time of decisions.
 */
import { setTimeout as pause, setImmediate as yieldToEventLoop } from 'node:timers/promises';
import { failureCode } from '../audit/sink.ts';
import type { CaptureDirectory } from './capture-directory.ts';
import { type CaptureOptions, captureDocument, type DeniedRequest } from './capture-document.ts';
import type { CaptureOutcome } from './capture-metrics.ts';

const MAX_QUEUED = 32;
const MAX_QUEUED_BYTES = 8 * 1024 * 1024;
/**
 * Explaining a request takes about 3 ms, or 8 ms with a body of 4 MiB, so captures take at most a tenth of the
 * process's time.
 */
const PAUSE_MS = 100;

export interface CaptureObserver {
  count(outcome: CaptureOutcome): void;
  /** Called after each attempt. @param code of the system, in lower case; undefined when the file was written */
  attempted(code: string | undefined): void;
}

export class DeniedCaptures {
  readonly #directory: CaptureDirectory;
  readonly #options: CaptureOptions;
  readonly #observer: CaptureObserver;
  readonly #queue: DeniedRequest[] = [];
  #queuedBytes = 0;
  #work: Promise<void> | undefined;
  readonly #closing = new AbortController();

  constructor(directory: CaptureDirectory, options: CaptureOptions, observer: CaptureObserver) {
    this.#directory = directory;
    this.#options = options;
    this.#observer = observer;
  }

  /** Never throws, and does no work in the caller's turn. */
  add(denied: DeniedRequest): void {
    const bytes = bodyBytes(denied);
    const isFull = this.#queue.length >= MAX_QUEUED || this.#queuedBytes + bytes > MAX_QUEUED_BYTES;
    if (this.#queue.length > 0 && isFull) {
      this.#observer.count('dropped');
      return;
    }
    this.#queue.push(denied);
    this.#queuedBytes += bytes;
    this.#work ??= this.#writeAll();
  }

  /** Writes the queued requests. */
  async close(): Promise<void> {
    this.#closing.abort();
    await this.#work;
  }

  async #writeAll(): Promise<void> {
    while (this.#queue.length > 0) {
      await yieldToEventLoop();
      const denied = this.#queue.shift();
      if (denied === undefined) break;
      this.#queuedBytes -= bodyBytes(denied);
      await this.#write(denied);
      const { signal } = this.#closing;
      await pause(PAUSE_MS, undefined, { signal, ref: false }).catch(() => undefined);
    }
    this.#work = undefined;
  }

  async #write(denied: DeniedRequest): Promise<void> {
    try {
      await this.#directory.write(denied.event.decision_id, captureDocument(denied, this.#options));
      this.#observer.count('written');
      this.#observer.attempted(undefined);
    } catch (error) {
      this.#observer.count('failed');
      this.#observer.attempted(failureCode(error));
    }
  }
}

function bodyBytes({ facts }: DeniedRequest): number {
  return facts.body.kind === 'exact' ? facts.body.bytes.byteLength : 0;
}
