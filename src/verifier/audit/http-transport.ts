/**
 * Carries batches to a collector over HTTP: a POST of JSON lines each. A batch whose answer was lost is sent again,
 * so a collector may see an event twice; `decision_id` tells. Redirects are not followed, answers are not read.
 */
import { promisify } from 'node:util';
import { gzip } from 'node:zlib';
import { Agent, type Dispatcher, errors, request } from 'undici';
import { parseRetryAfterMs } from '../../protocol/retry-after.ts';
import type { AuditTransport, Delivery } from './batching.ts';
import type { LineBatch } from './line-queue.ts';
import { failureCode } from './sink.ts';

export interface HttpTransportOptions {
  readonly url: URL;
  /** Asked before each batch. Undefined: it could not be read; the batch waits. */
  readonly readToken: (() => Promise<string | undefined>) | undefined;
  /** PEM; default: what the system trusts. */
  readonly certificateAuthorities: string | undefined;
  readonly gzip: boolean;
  /** Milliseconds: to connect, and to answer. */
  readonly timeoutMs?: number;
}

const TIMEOUT_MS = 10_000;
/** Of an answer, which nobody reads. */
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

  /** Certificates are read at the start, the token each time. */
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
      // Given up by whoever closes the sink.
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
  // Its status says all; an answer that breaks off changes nothing.
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
 * These say that the batch itself is wrong (RFC 9110 section 15.5), and it would stand in the way of all others. All else can be
 * mended, where it is or on the way: a token, an address, a collector that is down.
 */
const REFUSALS: ReadonlySet<number> = new Set([400, 415, 422]);

function networkCode(error: unknown): string {
  if (error instanceof errors.ConnectTimeoutError) return 'connect_timeout';
  if (error instanceof errors.HeadersTimeoutError || error instanceof errors.BodyTimeoutError)
    return 'timeout';
  return failureCode(error);
}
