/**
 * Client of Control's operator API: JSON over HTTPS, pagination, ETags. Without an answer it retries only reads, and creations
 * with an Idempotency-Key. After 429, which executes nothing, it waits as Control says. `control-api.ts` types its calls.
 */
import { randomUUID } from 'node:crypto';
import { setTimeout as pause } from 'node:timers/promises';
import { Agent } from 'undici';
import type { ControlUrl } from '../../../caller/enroll/control-url.ts';
import { checkedCaPem } from '../../../process/files/ca-certificates.ts';
import { parseRetryAfterMs } from '../../../protocol/retry-after.ts';
import type { JsonObject } from '../../../protocol/strict-json.ts';
import { type Answer, itemsOf, problemOf, type Resource, resourceOf, unexpected } from './control-answer.ts';
import { OperatorError } from './operator-error.ts';
import { type PathInput, pathWith } from './paths.ts';

export interface ControlClientOptions {
  readonly url: ControlUrl;
  /** Certificates (PEM) to trust instead of the system's. */
  readonly caPem: string | undefined;
  /** Bearer token of an operator or of automation, a secret. Undefined for signing in, which needs none. */
  readonly token: string | undefined;
  /** Timeout of one exchange. Default 30 s. */
  readonly timeoutMs?: number;
  /** Called after each page of a list that goes on, with the number of items so far. */
  readonly onListed?: (items: number) => void;
}

/** Inputs of a call besides its path. Members that are undefined are not sent. */
export interface CallInput extends PathInput {
  readonly body?: object | undefined;
  /** ETag of the last read; undefined for a resource that does not exist yet. */
  readonly etag?: string | undefined;
  /** Timeout that replaces the one of all exchanges. */
  readonly timeoutMs?: number | undefined;
}

interface Exchange extends CallInput {
  readonly method: 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE';
  /** With names in braces, as in the OpenAPI document. */
  readonly template: string;
  readonly idempotencyKey?: string;
}

/** The steps of a declaration of 16 MiB are longer than the declaration. */
const MAX_ANSWER_BYTES = 64 * 1024 * 1024;
const DEFAULT_TIMEOUT_MS = 30_000;
const PAGE_LIMIT = 200;
/** Maximum number of items in a list: more keys than a site can have. */
const MAX_LISTED = 2_000_000;
/** Maximum number of pages in a row without items: a page with filters examines many items and may show none. */
const MAX_EMPTY_PAGES = 1000;
/** Maximum time that one request waits for rate limits, in all. */
const MAX_LIMITED_MS = 120_000;
/** Number of attempts of a request that can be retried. */
const MAX_ATTEMPTS = 3;

export class ControlClient {
  readonly #options: ControlClientOptions;
  readonly #agent: Agent;

  constructor(options: ControlClientOptions) {
    this.#options = options;
    this.#agent = new Agent({
      connections: 4,
      maxResponseSize: MAX_ANSWER_BYTES,
      connect: {
        rejectUnauthorized: true,
        ...(options.caPem === undefined ? {} : { ca: checkedCaPem(options.caPem) }),
      },
    });
  }

  close(): Promise<void> {
    return this.#agent.destroy();
  }

  /** @throws OperatorError */
  async get(template: string, input?: CallInput): Promise<Resource> {
    return resourceOf(await this.#repeat({ method: 'GET', template, ...input }));
  }

  /** All items of a list. @throws OperatorError */
  async list(template: string, input?: CallInput): Promise<readonly JsonObject[]> {
    const items: JsonObject[] = [];
    for await (const page of this.pages(template, input)) items.push(...page);
    return items;
  }

  /** A list, page by page. @throws OperatorError */
  async *pages(template: string, input?: CallInput): AsyncGenerator<readonly JsonObject[], void> {
    const path = pathWith(template, input);
    let cursor: string | undefined;
    let listed = 0;
    let empty = 0;
    do {
      const { body } = await this.get(path, { query: { limit: PAGE_LIMIT, cursor } });
      const page = itemsOf(body, path);
      listed += page.length;
      empty = page.length > 0 ? 0 : empty + 1;
      const next = typeof body.next_cursor === 'string' ? body.next_cursor : undefined;
      // The limit stops at a server whose list never ends.
      const leadsOn = next !== cursor && empty < MAX_EMPTY_PAGES && listed <= MAX_LISTED;
      if (next !== undefined && !leadsOn) throw unexpected(path);
      if (next !== undefined) this.#options.onListed?.(listed);
      yield page;
      cursor = next;
    } while (cursor !== undefined);
  }

  /** A list that comes in one answer. @throws OperatorError */
  async page(template: string, input?: CallInput): Promise<readonly JsonObject[]> {
    const path = pathWith(template, input);
    return itemsOf((await this.get(path)).body, path);
  }

  /** The first page of a list: the newest items of an endless list such as the audit trail. @throws OperatorError */
  newest(template: string, input?: CallInput): Promise<readonly JsonObject[]> {
    return this.page(template, { ...input, query: { ...input?.query, limit: PAGE_LIMIT } });
  }

  /** @throws OperatorError */
  async create(template: string, input?: CallInput): Promise<Resource> {
    const idempotencyKey = randomUUID();
    return resourceOf(await this.#repeat({ method: 'POST', template, ...input, idempotencyKey }));
  }

  /** Runs an action on a resource, such as `…/suspend`; most have no body and need no ETag. Not retried. @throws OperatorError */
  async act(template: string, input?: CallInput): Promise<Resource> {
    return resourceOf(await this.#once({ method: 'POST', template, ...input }));
  }

  /** @throws OperatorError */
  async put(template: string, input?: CallInput): Promise<Resource> {
    return resourceOf(await this.#once({ method: 'PUT', template, ...input }));
  }

  /** @throws OperatorError */
  async patch(template: string, input?: CallInput): Promise<Resource> {
    return resourceOf(await this.#once({ method: 'PATCH', template, ...input }));
  }

  /** @throws OperatorError */
  async remove(template: string, input?: CallInput): Promise<Resource> {
    return resourceOf(await this.#once({ method: 'DELETE', template, ...input }));
  }

  /** Checks that the URL redirects a browser (303), without following. @throws OperatorError otherwise */
  async expectRedirect(template: string): Promise<void> {
    const answer = await this.#exchange({ method: 'GET', template });
    if (answer.statusCode !== 303) throw problemOf(answer);
  }

  async #repeat(exchange: Exchange): Promise<Answer> {
    for (let attempt = 1; ; attempt++) {
      try {
        return await this.#once(exchange);
      } catch (error) {
        const mayRepeat = error instanceof OperatorError && error.kind === 'unreachable';
        if (!mayRepeat || attempt >= MAX_ATTEMPTS) throw error;
      }
    }
  }

  /** @throws OperatorError for anything but a success */
  async #once(exchange: Exchange): Promise<Answer> {
    for (let waitedMs = 0; ; ) {
      const answer = await this.#exchange(exchange);
      if (answer.statusCode >= 200 && answer.statusCode < 300) return answer;
      const waitMs = waitOf(answer);
      if (waitMs === undefined || waitedMs + waitMs > MAX_LIMITED_MS) throw problemOf(answer);
      waitedMs += waitMs;
      await pause(waitMs);
    }
  }

  #exchange({ method, template, body, etag, idempotencyKey, ...input }: Exchange): Promise<Answer> {
    const { url, token } = this.#options;
    const timeoutMs = input.timeoutMs ?? this.#options.timeoutMs ?? DEFAULT_TIMEOUT_MS;
    return this.#send(`${url.pathPrefix}${pathWith(template, input)}`, {
      method,
      body: body === undefined ? null : JSON.stringify(body),
      signal: AbortSignal.timeout(timeoutMs),
      headers: {
        accept: 'application/json, application/problem+json',
        ...(token === undefined ? {} : { authorization: `Bearer ${token}` }),
        ...(body === undefined ? {} : { 'content-type': 'application/json' }),
        ...(idempotencyKey === undefined ? {} : { 'idempotency-key': idempotencyKey }),
        ...(etag === undefined ? {} : { 'if-match': etag }),
      },
    });
  }

  async #send(path: string, request: SentRequest): Promise<Answer> {
    try {
      const { statusCode, headers, body } = await this.#agent.request({
        origin: this.#options.url.origin,
        path,
        ...request,
      });
      const { etag, 'retry-after': retryAfter } = headers;
      return {
        statusCode,
        etag: typeof etag === 'string' ? etag : undefined,
        retryAfterMs: parseRetryAfterMs(retryAfter, Date.now()),
        text: await body.text(),
      };
    } catch (error) {
      const code = error instanceof Error && 'code' in error ? String(error.code) : 'no answer';
      throw new OperatorError('unreachable', 'control_unreachable', this.#notReached(code));
    }
  }

  #notReached(code: string): string {
    const what = `Control does not answer at ${this.#options.url.text} (${code})`;
    if (/WRONG_VERSION/.test(code))
      return `${what}: it speaks plain HTTP there, or is behind something that does`;
    if (/CERT|SIGN|UNABLE/.test(code)) {
      return `${what}: its certificate is not trusted; --control-ca-file names whom to trust`;
    }
    return `${what}: is --control-url right, and Control running?`;
  }
}

interface SentRequest {
  readonly method: Exchange['method'];
  readonly body: string | null;
  readonly signal: AbortSignal;
  readonly headers: { readonly [name: string]: string };
}

const MIN_WAIT_MS = 100;

/** How long to wait before the same request again; undefined when that does not help. */
function waitOf({ statusCode, retryAfterMs }: Answer): number | undefined {
  if (statusCode !== 429 || retryAfterMs === undefined) return undefined;
  return Math.max(MIN_WAIT_MS, retryAfterMs);
}
