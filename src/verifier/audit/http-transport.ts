/**
 * Sends each batch to a collector as an HTTP POST of JSON lines. A batch whose response was lost is sent again, so a
 * collector may see an event twice; `decision_id` identifies duplicates. Redirects are not followed, response bodies
 * are ignored.
 */
import { promisify } from 'node:util';
import { gzip } from 'node:zlib';
import { Agent, type Dispatcher, errors, request } from 'undici';
import { parseRetryAfterMs } from '../../protocol/retry-after.ts';
import { type AuditTransport, BatchingSink, type Delivery } from './batching.ts';
import type { LineBatch } from './line-queue.ts';
import { type AuditObserver, failureCode, type OperatedAuditSink } from './sink.ts';

export interface HttpTransportOptions {
  readonly url: URL;
  /** Called before each batch. Undefined means that the token could not be read, so the batch waits. */
  readonly readToken: (() => Promise<string | undefined>) | undefined;
  /** PEM; default: the system's trust store. */
  readonly certificateAuthorities: string | undefined;
  readonly gzip: boolean;
  /** Timeout for the connection and for the response, milliseconds. */
  readonly timeoutMs?: number;
}

const TIMEOUT_MS = 10_000;
/** Maximum size of a response body that is discarded without closing the connection. */
const MAX_ANSWER_BYTES = 64 * 1024;
const compress = promisify(gzip);

export class HttpTransport implements AuditTransport {
  readonly #options: HttpTransportOptions;
  readonly #agent: Agent;

  constructor(options: HttpTransportOptions) {
    this.#options = options;
    const { certificateAuthorities: ca, timeoutMs = TIMEOUT_MS } = options;
    this.#agent = new Agent({
      connect: { timeout: timeoutMs, rejectUnauthorized: true, ...(ca === undefined ? {} : { ca }) },
      headersTimeout: timeoutMs,
      bodyTimeout: timeoutMs,
      connections: 1,
    });
  }

  /** Certificates are read at the start, the token for each batch. */
  reopen(): void {}

  async close(): Promise<void> {
    await this.#agent.destroy();
  }

  async deliver(batch: LineBatch, signal: AbortSignal): Promise<Delivery> {
    try {
      const token = await this.#options.readToken?.();
      if (this.#options.readToken !== undefined && token === undefined) {
        return { kind: 'failed', code: 'token_unusable' };
      }
      const body = this.#options.gzip ? await compress(batch.bytes) : batch.bytes;
      const response = await request(this.#options.url, {
        dispatcher: this.#agent,
        method: 'POST',
        headers: this.#headers(token),
        body,
        signal,
      });
      return await settle(response);
    } catch (error) {
      // `aborted` when the sink closes.
      return { kind: 'failed', code: signal.aborted ? 'aborted' : networkCode(error) };
    }
  }

  #headers(token: string | undefined): Record<string, string> {
    return {
      'content-type': 'application/x-ndjson',
      ...(this.#options.gzip ? { 'content-encoding': 'gzip' } : {}),
      ...(token === undefined ? {} : { authorization: `Bearer ${token}` }),
    };
  }
}

async function settle({ body, headers, statusCode }: Dispatcher.ResponseData): Promise<Delivery> {
  // Only the status matters, so an interrupted body is no error.
  await body.dump({ limit: MAX_ANSWER_BYTES }).catch(() => undefined);
  const code = `http_${statusCode}`;
  if (statusCode >= 200 && statusCode < 300) return { kind: 'delivered' };
  if (statusCode === 413) return { kind: 'too_large', code };
  if (REFUSALS.has(statusCode)) return { kind: 'refused', code };
  const retryAfter = headers['retry-after'];
  const retryAfterMs = parseRetryAfterMs(retryAfter, Date.now());
  return { kind: 'failed', code, retryAfterMs };
}

/**
 * These statuses say that the batch itself is invalid (RFC 9110 section 15.5), so retrying it would block all later
 * ones. Other failures can be fixed without dropping the batch: a token, an address, a collector that is down.
 */
const REFUSALS: ReadonlySet<number> = new Set([400, 415, 422]);

function networkCode(error: unknown): string {
  if (error instanceof errors.ConnectTimeoutError) return 'connect_timeout';
  if (error instanceof errors.HeadersTimeoutError || error instanceof errors.BodyTimeoutError)
    return 'timeout';
  return failureCode(error);
}

/**
 * Sends audit events to a collector over HTTP. Always best effort, so that a decision does not wait for a network round
 * trip.
 */

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
