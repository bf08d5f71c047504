/** A bounded queue of spans to export. It runs one export at a time and counts outcomes. */
import type { ReadableSpan, SpanExporter, SpanProcessor } from '@opentelemetry/sdk-trace-base';

type SpanOutcome = 'exported' | 'failed' | 'dropped';

export interface SpanQueueOptions {
  readonly exporter: SpanExporter;
  readonly onSpans: (outcome: SpanOutcome, count: number) => void;
  /** Called once when exports begin to fail. */
  readonly onFailure: (code: string) => void;
}

const MAX_WAITING = 4096;
const MAX_BATCH = 512;
const EXPORT_EVERY_MS = 1_000;

export class SpanQueue implements SpanProcessor {
  readonly #options: SpanQueueOptions;
  readonly #timer: NodeJS.Timeout;
  #waiting: ReadableSpan[] = [];
  #exporting: Promise<void> | undefined;
  #isFailing = false;
  #isClosed = false;

  constructor(options: SpanQueueOptions) {
    this.#options = options;
    this.#timer = setInterval(() => void this.#exportBatch(), EXPORT_EVERY_MS).unref();
  }

  onStart(): void {}

  onEnd(span: ReadableSpan): void {
    if (this.#isClosed || this.#waiting.length >= MAX_WAITING) {
      this.#options.onSpans('dropped', 1);
      return;
    }
    this.#waiting.push(span);
    if (this.#waiting.length >= MAX_BATCH) void this.#exportBatch();
  }

  async forceFlush(): Promise<void> {
    await this.#exporting;
    // Stops after a failure: an unreachable collector must not delay shutdown.
    while (this.#waiting.length > 0 && !this.#isFailing) await this.#exportBatch();
  }

  async shutdown(): Promise<void> {
    if (this.#isClosed) return;
    this.#isClosed = true;
    clearInterval(this.#timer);
    await this.forceFlush();
    if (this.#waiting.length > 0) this.#options.onSpans('dropped', this.#waiting.splice(0).length);
    await this.#options.exporter.shutdown().catch(() => undefined);
  }

  #exportBatch(): Promise<void> {
    if (this.#exporting !== undefined) return this.#exporting;
    const batch = this.#waiting.splice(0, MAX_BATCH);
    if (batch.length === 0) return Promise.resolve();
    this.#exporting = new Promise<void>((resolve) => {
      this.#options.exporter.export(batch, ({ code, error }) => {
        this.#exporting = undefined;
        this.#recordResult(batch.length, code === SUCCESS, error);
        resolve();
      });
    });
    return this.#exporting;
  }

  #recordResult(count: number, isSuccess: boolean, error: Error | undefined): void {
    this.#options.onSpans(isSuccess ? 'exported' : 'failed', count);
    if (!isSuccess && !this.#isFailing) this.#options.onFailure(codeOf(error));
    this.#isFailing = !isSuccess;
  }
}

/** `ExportResultCode.SUCCESS` of @opentelemetry/core. */
const SUCCESS = 0;

/** The error's code or HTTP status; its message could contain text of the collector. */
function codeOf(error: Error | undefined): string {
  const code = error !== undefined && 'code' in error ? error.code : undefined;
  return typeof code === 'string' || typeof code === 'number' ? String(code) : 'export_failed';
}
