/** Signs the requests of an undici dispatcher. Its types are structural, because undici is not a dependency. */
import { stringify } from 'node:querystring';
import type { RequestHeader } from '../sign/request-headers.ts';
import type { ClockCheck } from './clock-check.ts';
import { failDispatch } from './dispatch-handler.ts';
import { type FollowPolicy, refuseOtherOrigin } from './follow-policy.ts';
import { headerLinesOf, isHeadersLike, isOfSigner } from './header-lines.ts';
import type { SignPrepared } from './prepared-request.ts';
import { bytesOf, isAbsent } from './signable-body.ts';
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

export function signingInterceptor(sign: SignPrepared, clock: ClockCheck, follow: FollowPolicy): Interceptor {
  return (dispatch) => (options, handler) => {
    void signOptions(options, handler, sign, follow).then(
      (changes) => {
        try {
          dispatch(Object.assign({}, options, changes), watchClock(handler, clock));
        } catch (error) {
          failDispatch(handler, error);
        }
      },
      (error: unknown) => failDispatch(handler, error),
    );
    return true;
  };
}

async function signOptions(
  options: DispatchOptions,
  handler: object,
  sign: SignPrepared,
  follow: FollowPolicy,
) {
  refuseRedirect(options, handler, follow);
  const { body, method } = options;
  const path = pathWithQuery(options);
  const given = linesOf(options.headers).filter(({ name, value }) => !isOfSigner(name, value));
  const headers = withTypeOf(body, given);
  const bytes = isAbsent(body) ? undefined : await bytesOf(body);
  const signed = await sign({
    method,
    url: `${new URL(options.origin ?? '').origin}${path}`,
    headers,
    body: isAbsent(body) ? undefined : (bytes ?? 'stream'),
  });
  const names = new Set(Object.keys(signed).map((name) => name.toLowerCase()));
  const own = headers.filter(({ name }) => !names.has(name.toLowerCase()));
  const lines = [...own.map(({ name, value }) => [name, value]), ...Object.entries(signed)];
  return { path, query: undefined, headers: lines.flat() };
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

/** Wraps the handler so that the clock is compared with the `Date` of its responses. */
function watchClock<H extends object>(handler: H, clock: ClockCheck): H {
  const sentMs = Date.now();
  return new Proxy(handler, {
    get: (target, key) => {
      const value: unknown = Reflect.get(target, key, target);
      if (typeof value !== 'function') return value;
      if (key !== 'onResponseStart') return value.bind(target);
      return (...args: readonly unknown[]) => {
        const headers = args[2];
        const date =
          typeof headers === 'object' && headers !== null && 'date' in headers ? headers.date : undefined;
        if (typeof date === 'string') clock.check(date, sentMs);
        return Reflect.apply(value, target, args);
      };
    },
  });
}
