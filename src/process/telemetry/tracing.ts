/**
 * Exports decisions as OpenTelemetry spans to a collector, by OTLP over HTTP. Loaded only if a collector is configured.
 * It never delays and never fails a request: spans that do not fit the queue are dropped and counted.
 * Source: docs/operate/enforcement.md "Traces".
 */
import {
  type Context,
  ROOT_CONTEXT,
  type Span,
  SpanKind,
  TraceFlags,
  type Tracer,
  trace,
} from '@opentelemetry/api';
import { OTLPTraceExporter } from '@opentelemetry/exporter-trace-otlp-http';
import { resourceFromAttributes } from '@opentelemetry/resources';
import {
  AlwaysOnSampler,
  BasicTracerProvider,
  type ReadableSpan,
  type SpanExporter,
  type SpanProcessor,
} from '@opentelemetry/sdk-trace-base';
import { Counter, type Registry } from 'prom-client';
import type { DecisionTrace, DecisionTracer, TracedDecision, TracedStep } from './decision-trace.ts';
import { parseTraceparent } from './decision-trace.ts';

export interface OtlpTracerOptions {
  /** Base URL of the collector; `/v1/traces` is appended if it is missing. */
  readonly endpoint: URL;
  readonly registry: Registry;
  readonly authSite: string;
  readonly version: string;
  /** Called once when exports begin to fail, with an error code or an HTTP status. */
  readonly onFailure: (code: string) => void;
}

const TRACES_PATH = '/v1/traces';
/** Timeout of one export, retries included, milliseconds; also of the last one. */
const EXPORT_TIMEOUT_MS = 3_000;

export function createOtlpTracer(options: OtlpTracerOptions): DecisionTracer {
  const spans = new Counter({
    name: 'proofgate_trace_spans_total',
    help: 'Spans by what became of them.',
    labelNames: ['outcome'],
    registers: [options.registry],
  });
  const queue = new SpanQueue({
    exporter: new OTLPTraceExporter({
      url: tracesUrl(options.endpoint),
      timeoutMillis: EXPORT_TIMEOUT_MS,
      httpAgentOptions: { keepAlive: true, maxSockets: 1 },
    }),
    onSpans: (outcome, count) => spans.inc({ outcome }, count),
    onFailure: options.onFailure,
  });
  const provider = new BasicTracerProvider({
    resource: resourceFromAttributes({
      'service.name': 'proofgate',
      'service.version': options.version,
      'proofgate.auth_site': options.authSite,
    }),
    // Unsampled decisions have no span, so everything that gets here is sampled.
    sampler: new AlwaysOnSampler(),
    spanProcessors: [queue],
  });
  const tracer = provider.getTracer('proofgate', options.version);
  return {
    begin: (...parents) => quietly(() => beginTrace(tracer, parents)),
    close: () => queue.shutdown(),
  };
}

function tracesUrl(endpoint: URL): string {
  const base = endpoint.href.replace(/\/+$/, '');
  return base.endsWith(TRACES_PATH) ? base : `${base}${TRACES_PATH}`;
}

function beginTrace(tracer: Tracer, parents: readonly (string | undefined)[]): DecisionTrace | undefined {
  for (const parent of parents) {
    const parsed = parseTraceparent(parent);
    if (parsed === undefined) continue;
    if (!parsed.isSampled) return undefined;
    const { spanId, traceId } = parsed;
    const remote = { traceId, spanId, traceFlags: TraceFlags.SAMPLED, isRemote: true };
    return new OtlpTrace(tracer, trace.setSpanContext(ROOT_CONTEXT, remote));
  }
  return undefined;
}

class OtlpTrace implements DecisionTrace {
  readonly #tracer: Tracer;
  readonly #check: Span;
  readonly #context: Context;
  /** Offset from `performance.now()` to the time since the epoch, milliseconds. */
  readonly #epochMs = Date.now() - performance.now();

  constructor(tracer: Tracer, parent: Context) {
    this.#tracer = tracer;
    this.#check = tracer.startSpan('proofgate.check', { kind: SpanKind.SERVER }, parent);
    this.#context = trace.setSpan(parent, this.#check);
  }

  stepTook(step: TracedStep, startedMs: number, endedMs: number): void {
    quietly(() => {
      const startTime = this.#epochMs + startedMs;
      const span = this.#tracer.startSpan(`proofgate.${step}`, { startTime }, this.#context);
      span.end(this.#epochMs + endedMs);
    });
  }

  decided(decision: TracedDecision): void {
    quietly(() => {
      this.#check.setAttributes(attributesOf(decision)).end();
    });
  }
}

function attributesOf({ bundleRevision, decisionId, detail, outcome, reason, routeId }: TracedDecision) {
  return {
    'proofgate.decision_id': decisionId,
    'proofgate.outcome': outcome,
    ...(reason !== undefined && { 'proofgate.reason': reason }),
    ...(detail !== undefined && { 'proofgate.detail': detail }),
    ...(routeId !== undefined && { 'proofgate.route_id': routeId }),
    ...(bundleRevision !== undefined && { 'proofgate.bundle_revision': bundleRevision }),
  };
}

/** A failure of tracing loses the trace and has no other effect. */
function quietly<T>(work: () => T): T | undefined {
  try {
    return work();
  } catch {
    return undefined;
  }
}

interface SpanQueueOptions {
  readonly exporter: SpanExporter;
  readonly onSpans: (outcome: 'exported' | 'failed' | 'dropped', count: number) => void;
  /** Called once when exports begin to fail. */
  readonly onFailure: (code: string) => void;
}

const MAX_WAITING = 4096;
const MAX_BATCH = 512;
const EXPORT_EVERY_MS = 1_000;

/** A bounded queue of spans to export. It runs one export at a time and counts outcomes. */
class SpanQueue implements SpanProcessor {
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
