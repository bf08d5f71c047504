/**
 * Signs a request again when `fetch` repeats it. After a 421, `fetch` sends the same headers on another connection
 * (Fetch standard, "HTTP-network-or-cache fetch"), so one proof would be sent twice.
 */
import { failDispatch } from './dispatch-handler.ts';
import type { SignedHeaders } from './prepared-request.ts';

interface Dispatcher {
  dispatch(options: object, handler: object): boolean;
}

/** Symbols under which Node.js keeps the dispatcher of `fetch`. Node.js 26 has both. */
const GLOBAL_DISPATCHERS = [Symbol.for('undici.globalDispatcher.1'), Symbol.for('undici.globalDispatcher.2')];

/** Options for `fetch` that sign each repetition; empty if this Node.js has no dispatcher to wrap. */
export function signingRepetitions(init: object | undefined, sign: () => Promise<SignedHeaders>): object {
  const given: unknown = init && 'dispatcher' in init ? init.dispatcher : undefined;
  const dispatcher =
    given ??
    GLOBAL_DISPATCHERS.map((key) => Reflect.get(globalThis, key)).find((found) => isDispatcher(found));
  if (!isDispatcher(dispatcher)) return {};
  let attempts = 0;
  const dispatch = (options: object, handler: object) => {
    attempts += 1;
    if (attempts === 1) return dispatcher.dispatch(options, handler);
    sign()
      .then((signed) => dispatcher.dispatch(withHeaders(options, signed), handler))
      .catch((error: unknown) => failDispatch(handler, error));
    return true;
  };
  return { dispatcher: { dispatch } };
}

function isDispatcher(value: unknown): value is Dispatcher {
  return (
    typeof value === 'object' && value !== null && 'dispatch' in value && typeof value.dispatch === 'function'
  );
}

/** `fetch` passes the headers as an object, with the credentials of the first attempt under the same names. */
function withHeaders(options: object, signed: SignedHeaders): object {
  const headers: unknown = 'headers' in options ? options.headers : undefined;
  return { ...options, headers: { ...(typeof headers === 'object' ? headers : {}), ...signed } };
}
