/** Signs the requests of an undici dispatcher. Its types are structural, because undici is not a dependency. */
import { stringify } from 'node:querystring';
import type { RequestHeader } from '../sign/request-headers.ts';
import type { ClockCheck } from './clock-check.ts';
import { failDispatch } from './dispatch-handler.ts';
import { type FollowPolicy, refuseOtherOrigin } from './follow-policy.ts';
import { headerLinesOf, isHeadersLike, isOfSigner } from './header-lines.ts';
import type { ReadAnswer, SignPrepared } from './prepared-request.ts';
import { bytesOf, isAbsent, nonceForGoneBody } from './signable-body.ts';
import { SignerError } from './signer-error.ts';

/** The members of undici's `Dispatcher.DispatchOptions` that the interceptor reads. */
interface DispatchOptions {
  readonly origin?: string | URL | undefined;
  readonly path: string;
  readonly method: string;
  readonly query?: unknown;
  readonly headers?: unknown;
  readonly body?: unknown;
}

type Dispatch<O, H> = (options: O, handler: H) => boolean;

/** An interceptor for `dispatcher.compose` of undici 6 and 7. */
export type Interceptor = <O extends DispatchOptions, H extends object>(
  dispatch: Dispatch<O, H>,
) => Dispatch<O, H>;

export interface InterceptorParts {
  readonly sign: SignPrepared;
  readonly readAnswer: ReadAnswer;
  readonly clock: ClockCheck;
  readonly follow: FollowPolicy;
}

export function signingInterceptor(parts: InterceptorParts): Interceptor {
  return (dispatch) => (options, handler) => {
    const attempt = (again: (() => void) | undefined) => {
      void signOptions(options, handler, parts).then(
        ({ isSentOnce, ...changes }) => {
          try {
            const watched = watchAnswer(handler, parts, { url: urlOf(options), again, isSentOnce });
            dispatch(Object.assign({}, options, changes), watched);
          } catch (error) {
            failDispatch(handler, error);
          }
        },
        (error: unknown) => failDispatch(handler, error),
      );
    };
    attempt(() => attempt(undefined));
    return true;
  };
}

const urlOf = (options: DispatchOptions) =>
  `${new URL(options.origin ?? '').origin}${pathWithQuery(options)}`;

async function signOptions(options: DispatchOptions, handler: object, { follow, sign }: InterceptorParts) {
  refuseRedirect(options, handler, follow);
  const { body, method } = options;
  const path = pathWithQuery(options);
  const given = linesOf(options.headers).filter(({ name, value }) => !isOfSigner(name, value));
  const headers = withTypeOf(body, given);
  const bytes = isAbsent(body) ? undefined : await bytesOf(body);
  const signed = await sign({
    method,
    url: urlOf(options),
    headers,
    body: isAbsent(body) ? undefined : (bytes ?? 'stream'),
  });
  const names = new Set(Object.keys(signed).map((name) => name.toLowerCase()));
  const own = headers.filter(({ name }) => !names.has(name.toLowerCase()));
  const lines = [...own.map(({ name, value }) => [name, value]), ...Object.entries(signed)];
  return {
    path,
    query: undefined,
    headers: lines.flat(),
    isSentOnce: !isAbsent(body) && bytes === undefined,
  };
}

/** Undici sends the type of a `Blob`, which a signature may have to cover. */
function withTypeOf(body: unknown, headers: readonly RequestHeader[]): readonly RequestHeader[] {
  const isTyped = headers.some(({ name }) => name.toLowerCase() === 'content-type');
  if (isTyped || !(body instanceof Blob) || body.type === '') return headers;
  return [...headers, { name: 'content-type', value: body.type }];
}

function linesOf(headers: unknown) {
  if (isAbsent(headers)) return [];
  if (isHeadersLike(headers)) return headerLinesOf(headers);
  throw new SignerError('header_invalid', 'the headers are of no form that undici takes');
}

/** Joins path and query in the same way as undici. */
function pathWithQuery({ path, query }: DispatchOptions): string {
  if (typeof query !== 'object' || query === null) return path;
  const text = stringify({ ...query });
  return text === '' ? path : `${path}?${text}`;
}

/** Undici's redirect handler dispatches with itself as the handler, and keeps the URLs of earlier requests. */
function refuseRedirect({ origin }: DispatchOptions, handler: object, follow: FollowPolicy): void {
  const history: unknown = 'history' in handler ? handler.history : undefined;
  const previousUrl: unknown = Array.isArray(history) ? history.at(-1) : undefined;
  if (previousUrl instanceof URL) refuseOtherOrigin(previousUrl.origin, new URL(origin ?? '').origin, follow);
}

interface Attempt {
  readonly url: string;
  /** Signs and sends the request once more; undefined for one that has been sent twice. */
  readonly again: (() => void) | undefined;
  readonly isSentOnce: boolean;
}

/**
 * How much of an answer that asks for a nonce is read, so that its connection can serve further requests. Beyond that it is aborted:
 * undici bounds only the time between two pieces of a body.
 */
const MAX_DECLINED_BYTES = 65_536;
const MAX_DECLINED_MS = 1_000;

/** Their names in undici 7 and 6. */
const CONNECTS: ReadonlySet<unknown> = new Set(['onRequestStart', 'onConnect']);
const STARTS: ReadonlySet<unknown> = new Set(['onResponseStart', 'onHeaders']);
const PIECES: ReadonlySet<unknown> = new Set(['onResponseData', 'onData']);
const ENDS: ReadonlySet<unknown> = new Set(['onResponseEnd', 'onComplete']);
const ERRORS: ReadonlySet<unknown> = new Set(['onResponseError', 'onError']);

/** Wraps the handler so that the clock and a DPoP nonce of the answer are read. One that asks for a nonce does not reach the handler. */
function watchAnswer<H extends object>(
  handler: H,
  { clock, readAnswer }: InterceptorParts,
  { again, isSentOnce, url }: Attempt,
): H {
  const sentMs = Date.now();
  let state: 'relayed' | 'declined' | 'failed' = 'relayed';
  let abort: (() => void) | undefined;
  let isAborted = false;
  let declinedBytes = 0;
  let timer: NodeJS.Timeout | undefined;
  const endAnswer = () => {
    isAborted = abort !== undefined;
    abort?.();
  };
  function declines(args: readonly unknown[]): boolean {
    const { headers, status } = answerOf(args);
    const date = headers.find(({ name }) => name.toLowerCase() === 'date')?.value;
    if (date !== undefined) clock.check(date, sentMs);
    if (status < 200 || !readAnswer(url, status, headers) || again === undefined) return false;
    state = isSentOnce ? 'failed' : 'declined';
    if (isSentOnce) failDispatch(handler, nonceForGoneBody());
    timer = setTimeout(endAnswer, MAX_DECLINED_MS);
    return true;
  }
  /** Returns whether the handler must get the event of an answer that it did not get. */
  function isOfDeclined(key: unknown, args: readonly unknown[]): boolean {
    if (PIECES.has(key)) {
      declinedBytes += lengthOf(args);
      if (declinedBytes > MAX_DECLINED_BYTES && !isAborted) endAnswer();
    }
    const isError = ERRORS.has(key);
    if (!isError && !ENDS.has(key)) return false;
    clearTimeout(timer);
    if (state === 'failed') return false;
    // The caller may have aborted the request, or the connection failed.
    if (isError && !isAborted) return true;
    again?.();
    return false;
  }
  return new Proxy(handler, {
    get: (target, key) => {
      const value: unknown = Reflect.get(target, key, target);
      if (typeof value !== 'function') return value;
      return (...args: readonly unknown[]) => {
        if (CONNECTS.has(key)) abort = abortOf(args);
        if (STARTS.has(key) && declines(args)) return true;
        const isRelayed = state === 'relayed' || isOfDeclined(key, args);
        return isRelayed ? Reflect.apply(value, target, args) : true;
      };
    },
  });
}

/** Undici 7 gives a controller, version 6 a function. */
function abortOf([first]: readonly unknown[]): (() => void) | undefined {
  const error = new Error('the answer that asks for a DPoP nonce has a long body');
  if (typeof first === 'function') return () => first(error);
  if (typeof first !== 'object' || first === null || !('abort' in first)) return undefined;
  const { abort } = first;
  return typeof abort === 'function' ? () => Reflect.apply(abort, first, [error]) : undefined;
}

function lengthOf(args: readonly unknown[]): number {
  const piece = args.find((arg) => arg instanceof Uint8Array);
  return piece?.length ?? 0;
}

/** Undici 7 gives the headers as an object after controller and status, version 6 as buffers after the status. */
function answerOf([first, second, third]: readonly unknown[]) {
  const isOfVersion6 = typeof first === 'number';
  const [status, given] = isOfVersion6 ? [first, second] : [second, third];
  const raw = isOfVersion6 && Array.isArray(given) ? given.map(String) : given;
  return { status: Number(status), headers: isHeadersLike(raw) ? headerLinesOf(raw) : [] };
}
