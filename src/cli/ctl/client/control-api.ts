/**
 * Client of Control's operator API: JSON over HTTPS, pagination, ETags, problem documents as errors. Without an answer it
 * retries only reads, and creations with an Idempotency-Key. After 429, which executes nothing, it waits as Control says.
 */
import { randomUUID } from 'node:crypto';
import { setTimeout as pause } from 'node:timers/promises';
import { Agent } from 'undici';
import type { ControlUrl } from '../../../caller/enroll/control-url.ts';
import { checkedCaPem } from '../../../process/files/ca-certificates.ts';
import { parseRetryAfterMs } from '../../../protocol/retry-after.ts';
import {
  isJsonObject,
  type JsonObject,
  jsonObjects,
  parseStrictJson,
} from '../../../protocol/strict-json.ts';
import { OperatorError, type OperatorFault } from './operator-error.ts';

export interface ControlApiOptions {
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

export interface Resource {
  readonly body: JsonObject;
  /** Undefined when the resource has no ETag. */
  readonly etag: string | undefined;
}

type Method = 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE';

interface Exchange {
  readonly method: Method;
  readonly path: string;
  readonly body?: object | undefined;
  readonly headers?: { readonly [name: string]: string };
  /** Instead of that of all exchanges. */
  readonly timeoutMs?: number | undefined;
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

export class ControlApi {
  readonly #options: ControlApiOptions;
  readonly #agent: Agent;

  constructor(options: ControlApiOptions) {
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
  async get(path: string): Promise<Resource> {
    return resourceOf(await this.#repeat({ method: 'GET', path }));
  }

  /** Undefined when there is no such resource. @throws OperatorError */
  async find(path: string): Promise<Resource | undefined> {
    try {
      return await this.get(path);
    } catch (error) {
      if (error instanceof OperatorError && error.code === 'not_found') return undefined;
      throw error;
    }
  }

  /** All items of a list. @throws OperatorError */
  async list(path: string): Promise<readonly JsonObject[]> {
    const items: JsonObject[] = [];
    for await (const page of this.pages(path)) items.push(...page);
    return items;
  }

  /** A list, page by page. @throws OperatorError */
  async *pages(path: string): AsyncGenerator<readonly JsonObject[], void> {
    let cursor: string | undefined;
    let listed = 0;
    let empty = 0;
    do {
      const query = new URLSearchParams({
        limit: String(PAGE_LIMIT),
        ...(cursor === undefined ? {} : { cursor }),
      });
      const { body } = await this.get(`${path}${path.includes('?') ? '&' : '?'}${query}`);
      const page = itemsOf(body, path);
      listed += page.length;
      empty = page.length > 0 ? 0 : empty + 1;
      const next = typeof body.next_cursor === 'string' ? body.next_cursor : undefined;
      // This ends a list that never ends.
      const leadsOn = next !== cursor && empty < MAX_EMPTY_PAGES && listed <= MAX_LISTED;
      if (next !== undefined && !leadsOn) throw unexpected(path);
      if (next !== undefined) this.#options.onListed?.(listed);
      yield page;
      cursor = next;
    } while (cursor !== undefined);
  }

  /** A list that comes in one answer. @throws OperatorError */
  async page(path: string): Promise<readonly JsonObject[]> {
    return itemsOf((await this.get(path)).body, path);
  }

  /** The first page of a list: the newest items of an endless list such as the audit trail. @throws OperatorError */
  async newest(path: string): Promise<readonly JsonObject[]> {
    return this.page(`${path}${path.includes('?') ? '&' : '?'}limit=${PAGE_LIMIT}`);
  }

  /** @throws OperatorError */
  async create(path: string, body: object): Promise<Resource> {
    const headers = { 'idempotency-key': randomUUID() };
    return resourceOf(await this.#repeat({ method: 'POST', path, body, headers }));
  }

  /** Runs an action on a resource, such as `…/suspend`; most have no body and need no ETag. Not retried. @throws OperatorError */
  async act(path: string, body?: object, etag?: string): Promise<Resource> {
    return resourceOf(await this.#once({ method: 'POST', path, body, headers: ifMatch(etag) }));
  }

  /** @param etag ETag of the last read; undefined for a resource that does not exist yet @throws OperatorError */
  async put(path: string, body: object, etag: string | undefined, timeoutMs?: number): Promise<Resource> {
    return resourceOf(await this.#once({ method: 'PUT', path, body, headers: ifMatch(etag), timeoutMs }));
  }

  /** @throws OperatorError */
  async patch(path: string, body: object, etag: string | undefined): Promise<Resource> {
    return resourceOf(await this.#once({ method: 'PATCH', path, body, headers: ifMatch(etag) }));
  }

  /** @throws OperatorError */
  async remove(path: string, etag: string | undefined): Promise<Resource> {
    return resourceOf(await this.#once({ method: 'DELETE', path, headers: ifMatch(etag) }));
  }

  /** Checks that the URL redirects a browser (303), without following. @throws OperatorError otherwise */
  async expectRedirect(path: string): Promise<void> {
    const answer = await this.#exchange({ method: 'GET', path });
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

  #exchange({ method, path, body, headers, ...exchange }: Exchange): Promise<Answer> {
    const { url, token } = this.#options;
    const timeoutMs = exchange.timeoutMs ?? this.#options.timeoutMs ?? DEFAULT_TIMEOUT_MS;
    return this.#send(`${url.pathPrefix}${path}`, {
      method,
      body: body === undefined ? null : JSON.stringify(body),
      signal: AbortSignal.timeout(timeoutMs),
      headers: {
        accept: 'application/json, application/problem+json',
        ...(token === undefined ? {} : { authorization: `Bearer ${token}` }),
        ...(body === undefined ? {} : { 'content-type': 'application/json' }),
        ...headers,
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
  readonly method: Method;
  readonly body: string | null;
  readonly signal: AbortSignal;
  readonly headers: { readonly [name: string]: string };
}

interface Answer {
  readonly statusCode: number;
  readonly etag: string | undefined;
  readonly retryAfterMs: number | undefined;
  readonly text: string;
}

const MIN_WAIT_MS = 100;

/** How long to wait before the same request again; undefined when that does not help. */
function waitOf({ statusCode, retryAfterMs }: Answer): number | undefined {
  if (statusCode !== 429 || retryAfterMs === undefined) return undefined;
  return Math.max(MIN_WAIT_MS, retryAfterMs);
}

function ifMatch(etag: string | undefined): { readonly [name: string]: string } {
  return etag === undefined ? {} : { 'if-match': etag };
}

function resourceOf({ text, etag }: Answer): Resource {
  if (text === '') return { body: {}, etag };
  const body = parseBody(text);
  if (body === undefined) throw unexpected('not a JSON object');
  return { body, etag };
}

function itemsOf({ items }: JsonObject, path: string): readonly JsonObject[] {
  if (!Array.isArray(items)) throw unexpected(path);
  return jsonObjects(items);
}

function parseBody(text: string): JsonObject | undefined {
  try {
    const value = parseStrictJson(text);
    return isJsonObject(value) ? value : undefined;
  } catch {
    return undefined;
  }
}

/** Control's own text of a problem. */
function problemOf({ statusCode, text }: Answer): OperatorError {
  const problem = parseBody(text);
  const code = problem?.code;
  if (problem === undefined || typeof code !== 'string' || !/^[a-z0-9_]{1,64}$/.test(code)) {
    return new OperatorError(
      'unreachable',
      'answer_unexpected',
      `what answers at --control-url (status ${statusCode}) is no Control: check the URL`,
    );
  }
  const kind = statusCode === 503 || statusCode === 429 ? 'unreachable' : 'refused';
  const faults = faultsOf(problem);
  return new OperatorError(kind, code, oneLine(problem.detail ?? problem.title, faults), faults);
}

function faultsOf({ errors }: JsonObject): readonly OperatorFault[] {
  return jsonObjects(errors).map(({ pointer, reason }) => ({
    pointer: printable(String(pointer)),
    reason: printable(String(reason)),
  }));
}

function oneLine(text: unknown, [first]: readonly OperatorFault[]): string {
  const place = first === undefined ? '' : ` (${first.pointer}: ${first.reason})`;
  return printable(`${typeof text === 'string' ? text : 'refused'}${place}`);
}

/** Removes control characters, which could send commands to a terminal. */
function printable(line: string): string {
  return Array.from(line, (character) => (character < ' ' || character === '\x7f' ? ' ' : character))
    .join('')
    .slice(0, 1000);
}

function unexpected(what: string): OperatorError {
  return new OperatorError('unreachable', 'answer_unexpected', `unexpected answer of Control: ${what}`);
}
