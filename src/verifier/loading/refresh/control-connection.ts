/**
 * HTTP client of Control for a target: polls, acknowledgements, files. Every response is bounded in size and validated.
 * Redirects are not followed. The token is read again for each request, so that it can be rotated, and is sent only in
 * its header.
 * Source: `distribution-contract.ts`.
 */
import { Agent, type Dispatcher, errors, request } from 'undici';
import {
  ACK_PATH,
  ACK_SIGNATURE_HEADER,
  ENFORCED_HEADER,
  INSTANCE_HEADER,
  MAX_STEPS,
  MEMBERS_HEADER,
  OPTIONAL_MEMBERS,
  POLL_PATH,
} from '../../../bundle/format/bundle-limits.ts';
import type { ChainPosition } from '../../../bundle/format/chain.ts';
import { type DecisionSummary, SUMMARIES_PATH } from '../../../bundle/format/decision-summary.ts';
import type {
  Acknowledgement,
  DistributedFile,
  PollAnswer,
  PollQuery,
} from '../../../bundle/format/distribution-contract.ts';
import { type KeyUse, LAST_USED_PATH, type LastUsed } from '../../../bundle/format/key-use.ts';
import { publishedSchema, type ShapeCheck, shapeCheck } from '../../../bundle/format/shape.ts';
import {
  UNKNOWN_KEYS_PATH,
  type UnknownKey,
  type UnknownKeysReport,
} from '../../../bundle/format/unknown-keys.ts';
import { parseRetryAfterMs } from '../../../protocol/retry-after.ts';
import { formatTime } from '../../../protocol/rfc3339.ts';
import { isJsonObject } from '../../../protocol/strict-json.ts';
import { ControlFailure } from './control-failure.ts';
import type { Instance } from './instance.ts';

export interface ControlConnectionOptions {
  /** Origin, without a path. */
  readonly url: URL;
  /** The target's bearer token. @throws ControlFailure `control_token_unusable` */
  readonly readToken: () => Promise<string>;
  /** What this verifier enforces although the bundle says observe, for each request; undefined when there is nothing. */
  readonly readEnforced?: (() => Promise<string | undefined>) | undefined;
  /** Which instance this verifier is. */
  readonly instance?: Pick<Instance, 'text' | 'sign'> | undefined;
  /** PEM; default: the system's trust store. */
  readonly certificateAuthorities?: string | undefined;
  /** Milliseconds. */
  readonly connectTimeoutMs?: number;
  /** Maximum time without data, milliseconds, in addition to the wait that a poll requests. */
  readonly answerTimeoutMs?: number;
}

/** Maximum size of the response to a poll: some thousand usual steps, or a few of the largest. */
const MAX_ANSWER_BYTES = 64 * 1024 * 1024;
/** Twice the maximum number of steps, each an object of three members, plus the files of a bundle, with a margin. */
const MAX_ANSWER_PARTS = 16 * MAX_STEPS;
const DEFAULT_CONNECT_TIMEOUT_MS = 5000;
const DEFAULT_ANSWER_TIMEOUT_MS = 15_000;
const FILES_PATH = '/v1/targets/self/bundles/';

export type PollResult =
  | { readonly kind: 'unchanged' }
  | { readonly kind: 'answer'; readonly answer: PollAnswer; readonly etag: string | undefined };

const pollAnswer: ShapeCheck<PollAnswer> = shapeCheck(publishedSchema('target-bundle'));

export class ControlConnection {
  readonly #options: ControlConnectionOptions;
  readonly #agent: Agent;

  constructor(options: ControlConnectionOptions) {
    this.#options = options;
    const timeoutMs = options.connectTimeoutMs ?? DEFAULT_CONNECT_TIMEOUT_MS;
    const ca = options.certificateAuthorities;
    this.#agent = new Agent({
      connect: { timeout: timeoutMs, rejectUnauthorized: true, ...(ca === undefined ? {} : { ca }) },
    });
  }

  /**
   * @param etag of the last response that was applied completely
   * @throws ControlFailure
   */
  async poll(query: PollQuery, etag: string | undefined, signal: AbortSignal): Promise<PollResult> {
    const url = new URL(POLL_PATH, this.#options.url);
    for (const [name, value] of Object.entries(query)) url.searchParams.set(name, String(value));
    const response = await this.#send(url, {
      headers: etag === undefined ? {} : { 'if-none-match': etag },
      headersTimeout: this.#answerTimeoutMs + (query.wait_seconds ?? 0) * 1000,
      signal,
    });
    if (response.statusCode === 304) {
      await response.body.dump();
      return { kind: 'unchanged' };
    }
    await refuseUnless(200, response);
    const answer: unknown = parseJson(await this.#readBody(response, MAX_ANSWER_BYTES));
    if (!pollAnswer.holds(answer)) throw invalid('its answer is not in the format');
    return { kind: 'answer', answer, etag: headerOf(response, 'etag') };
  }

  /** @throws ControlFailure */
  acknowledge(acknowledgement: Acknowledgement, signal: AbortSignal): Promise<void> {
    return this.#acknowledge({ acknowledgement, signal });
  }

  /** Says that this instance decides no more requests, so that nothing waits for it. @throws ControlFailure */
  end(position: ChainPosition, signal: AbortSignal): Promise<void> {
    return this.#acknowledge({
      acknowledgement: { ...position, outcome: 'accepted' },
      hasEnded: true,
      signal,
    });
  }

  async #acknowledge(options: Required<Pick<SendOptions, 'acknowledgement'>> & SendOptions): Promise<void> {
    const response = await this.#send(new URL(ACK_PATH, this.#options.url), {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify(options.acknowledgement),
      ...options,
    });
    const { statusCode } = response;
    if (statusCode >= 200 && statusCode < 300) await response.body.dump();
    else await refuseUnless(204, response);
  }

  /** @returns `unsupported` from a Control of an earlier version @throws ControlFailure */
  summarize(summary: DecisionSummary, signal: AbortSignal): Promise<'taken' | 'unsupported'> {
    return this.#report(SUMMARIES_PATH, summary, signal);
  }

  /** Reports last uses of keys, at most `MAX_KEY_USES`. @returns and @throws as {@link summarize} */
  reportLastUsed(uses: readonly KeyUse[], signal: AbortSignal): Promise<'taken' | 'unsupported'> {
    const keys = uses.map(({ keyId, usedAtSeconds }) => ({
      key_id: keyId,
      used_at: formatTime(usedAtSeconds),
    }));
    return this.#report(LAST_USED_PATH, { keys } satisfies LastUsed, signal);
  }

  /** Reports keys of OAuth issuers, at most `MAX_UNKNOWN_KEYS`. @returns and @throws as {@link summarize} */
  reportUnknownKeys(keys: readonly UnknownKey[], signal: AbortSignal): Promise<'taken' | 'unsupported'> {
    return this.#report(UNKNOWN_KEYS_PATH, { keys } satisfies UnknownKeysReport, signal);
  }

  async #report(path: string, body: object, signal: AbortSignal): Promise<'taken' | 'unsupported'> {
    const response = await this.#send(new URL(path, this.#options.url), {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify(body),
      signal,
    });
    const isKnown = response.statusCode !== 404;
    if (isKnown) await refuseUnless(204, response);
    await response.body.dump();
    return isKnown ? 'taken' : 'unsupported';
  }

  /** Streams the bytes of a file. @throws ControlFailure, also during the stream */
  async *download(file: DistributedFile, signal: AbortSignal): AsyncGenerator<Buffer> {
    const url = new URL(file.path, this.#options.url);
    if (url.origin !== this.#options.url.origin || !url.pathname.startsWith(FILES_PATH)) {
      throw invalid(`its path for ${file.name} leads elsewhere`);
    }
    const response = await this.#send(url, { signal });
    await refuseUnless(200, response);
    yield* bounded(response, file.bytes, `${file.name} is larger than Control said`);
  }

  async close(): Promise<void> {
    await this.#agent.destroy();
  }

  get #answerTimeoutMs(): number {
    return this.#options.answerTimeoutMs ?? DEFAULT_ANSWER_TIMEOUT_MS;
  }

  async #send(
    url: URL,
    { acknowledgement, hasEnded, ...options }: SendOptions,
  ): Promise<Dispatcher.ResponseData> {
    const { instance } = this.#options;
    const token = await this.#options.readToken();
    const enforced = await this.#options.readEnforced?.();
    const signature = acknowledgement && instance?.sign(acknowledgement, token, hasEnded);
    try {
      return await request(url, {
        dispatcher: this.#agent,
        bodyTimeout: this.#answerTimeoutMs,
        headersTimeout: this.#answerTimeoutMs,
        ...options,
        headers: {
          ...options.headers,
          authorization: `Bearer ${token}`,
          accept: 'application/json',
          [MEMBERS_HEADER]: OPTIONAL_MEMBERS.join(','),
          ...(enforced !== undefined && { [ENFORCED_HEADER]: enforced }),
          ...(instance !== undefined && { [INSTANCE_HEADER]: instance.text() }),
          ...(signature !== undefined && { [ACK_SIGNATURE_HEADER]: signature }),
        },
      });
    } catch (error) {
      throw asFailure(error);
    }
  }

  async #readBody(response: Dispatcher.ResponseData, maxBytes: number): Promise<Buffer> {
    const chunks: Buffer[] = [];
    for await (const chunk of bounded(response, maxBytes, `its answer is larger than ${maxBytes} bytes`)) {
      chunks.push(chunk);
    }
    return Buffer.concat(chunks);
  }
}

interface SendOptions {
  readonly method?: 'POST';
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: string;
  /** That the body holds, to be signed. */
  readonly acknowledgement?: Acknowledgement;
  readonly hasEnded?: boolean;
  readonly headersTimeout?: number;
  readonly signal: AbortSignal;
}

async function* bounded(
  response: Dispatcher.ResponseData,
  maxBytes: number,
  text: string,
): AsyncGenerator<Buffer> {
  let received = 0;
  try {
    for await (const chunk of response.body) {
      if (!(chunk instanceof Uint8Array)) throw invalid('its answer is no stream of bytes');
      received += chunk.length;
      if (received > maxBytes) throw new ControlFailure('control_answer_too_large', text);
      yield Buffer.from(chunk.buffer, chunk.byteOffset, chunk.length);
    }
  } catch (error) {
    throw asFailure(error);
  }
}

function parseJson(bytes: Buffer): unknown {
  if (!hasAtMostParts(bytes, MAX_ANSWER_PARTS)) throw invalid('its answer has too many parts');
  try {
    return JSON.parse(bytes.toString('utf8'));
  } catch {
    throw invalid('its answer is not JSON');
  }
}

async function refuseUnless(status: number, response: Dispatcher.ResponseData): Promise<void> {
  const { statusCode } = response;
  if (statusCode === status) return;
  const retryAfterMs = parseRetryAfterMs(headerOf(response, 'retry-after'), Date.now());
  const code = await problemCode(response);
  const text = code === undefined ? `it answered ${statusCode}` : `it answered ${statusCode} ${code}`;
  if (statusCode === 401 || statusCode === 403)
    throw new ControlFailure('control_unauthorized', text, retryAfterMs);
  if (statusCode === 429) throw new ControlFailure('control_throttled', text, retryAfterMs);
  if (statusCode >= 500) throw new ControlFailure('control_unavailable', text, retryAfterMs);
  throw new ControlFailure('control_status', text, retryAfterMs);
}

const MAX_PROBLEM_BYTES = 16 * 1024;
const PROBLEM_CODE = /^[a-z][a-z0-9_]{0,63}$/;

/** Only the code of an error response is logged: its texts may echo what we sent. Undefined for another answer. */
async function problemCode(response: Dispatcher.ResponseData): Promise<string | undefined> {
  response.body.on('error', () => undefined);
  try {
    if (!headerOf(response, 'content-type')?.startsWith('application/problem+json')) return undefined;
    const chunks: Buffer[] = [];
    for await (const chunk of bounded(response, MAX_PROBLEM_BYTES, 'its problem is too large')) {
      chunks.push(chunk);
    }
    const problem = parseJson(Buffer.concat(chunks));
    const code = isJsonObject(problem) ? problem.code : undefined;
    return typeof code === 'string' && PROBLEM_CODE.test(code) ? code : undefined;
  } catch {
    return undefined;
  } finally {
    response.body.destroy();
  }
}

function headerOf({ headers }: Dispatcher.ResponseData, name: string): string | undefined {
  const value = headers[name];
  return typeof value === 'string' ? value : undefined;
}

function invalid(text: string): ControlFailure {
  return new ControlFailure('control_answer_invalid', text);
}

/** Uses only the error's class and system code, because messages of libraries may contain what was sent. */
function asFailure(error: unknown): Error {
  if (error instanceof ControlFailure) return error;
  const isTimeout =
    error instanceof errors.HeadersTimeoutError ||
    error instanceof errors.BodyTimeoutError ||
    error instanceof errors.ConnectTimeoutError;
  if (isTimeout) return new ControlFailure('control_timeout', 'it did not answer in time');
  const code = error instanceof Error && 'code' in error ? String(error.code) : 'error';
  return new ControlFailure('control_unreachable', `it cannot be reached: ${code}`);
}

const QUOTE = 0x22;
const COMMA = 0x2c;
const OPEN_BRACKET = 0x5b;
const BACKSLASH = 0x5c;
const OPEN_BRACE = 0x7b;

/**
 * Limits the structure of a response before it is parsed as JSON: counts lists, objects and their elements, and skips
 * strings. Control's responses hold some thousand strings at most. Parsing 64 MiB of nested lists would block the process for
 * seconds and fill its memory, and the response has not been authenticated yet.
 */
export function hasAtMostParts(json: Buffer, most: number): boolean {
  let count = 0;
  for (let at = 0; at < json.length; at++) {
    const byte = json[at];
    if (byte === QUOTE) at = endOfString(json, at);
    else if (byte === COMMA || byte === OPEN_BRACKET || byte === OPEN_BRACE) count += 1;
    if (count > most) return false;
  }
  return true;
}

function endOfString(json: Buffer, start: number): number {
  let end = json.indexOf(QUOTE, start + 1);
  while (end !== -1 && isEscaped(json, end)) end = json.indexOf(QUOTE, end + 1);
  return end === -1 ? json.length : end;
}

/** Whether an odd number of backslashes precedes the quote. */
function isEscaped(json: Buffer, quote: number): boolean {
  let at = quote - 1;
  while (json[at] === BACKSLASH) at -= 1;
  return (quote - at) % 2 === 0;
}
