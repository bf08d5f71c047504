/** Reports an error to the handler of an undici dispatch. */

/** Undici 7 calls `onResponseError`, version 6 `onError`. */
export function failDispatch(handler: object, error: unknown): void {
  if ('onResponseError' in handler && typeof handler.onResponseError === 'function') {
    handler.onResponseError(null, error);
  } else if ('onError' in handler && typeof handler.onError === 'function') {
    handler.onError(error);
  }
}
