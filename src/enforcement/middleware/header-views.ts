/**
 * Changes the headers of an IncomingMessage in every view that Node offers: `rawHeaders`, `headers`, `headersDistinct` and the
 * three of the trailers. Frameworks build their own headers from these.
 */
import type { IncomingMessage } from 'node:http';

/** @param isRemoved whether to remove a header, by its name in lower case */
export function removeHeaders(request: IncomingMessage, isRemoved: (name: string) => boolean): void {
  const kept: string[] = [];
  const { headers, rawHeaders } = request;
  for (let at = 0; at < rawHeaders.length; at += 2) {
    const [name = '', value = ''] = rawHeaders.slice(at, at + 2);
    const lower = name.toLowerCase();
    if (isRemoved(lower)) delete headers[lower];
    else kept.push(name, value);
  }
  showHeaders(request, kept);
}

/** Replaces the first line of that name by one with the value. */
export function setHeader(request: IncomingMessage, name: string, value: string): void {
  const lower = name.toLowerCase();
  const lines = [...request.rawHeaders];
  const at = lines.findIndex((each, index) => index % 2 === 0 && each.toLowerCase() === lower);
  lines.splice(at, 2, name, value);
  request.headers[lower] = value;
  showHeaders(request, lines);
}

/** Replaces all lines of that name by one for each value, at the end. */
export function replaceHeader(request: IncomingMessage, name: string, values: readonly string[]): void {
  const lower = name.toLowerCase();
  removeHeaders(request, (each) => each === lower);
  if (values.length === 0) return;
  request.headers[lower] = values.join(', ');
  showHeaders(request, [...request.rawHeaders, ...values.flatMap((value) => [name, value])]);
}

/** `headers` exists already. `headersDistinct` would contain removed lines, so it gets its own getter. */
function showHeaders(request: IncomingMessage, rawHeaders: string[]): void {
  request.rawHeaders = rawHeaders;
  let distinct: NodeJS.Dict<string[]> | undefined;
  Object.defineProperty(request, 'headersDistinct', {
    configurable: true,
    get: () => {
      distinct ??= distinctHeaders(rawHeaders);
      return distinct;
    },
  });
}

function distinctHeaders(rawHeaders: readonly string[]): NodeJS.Dict<string[]> {
  // Without a prototype, a header may have any name, such as `__proto__`.
  const distinct: NodeJS.Dict<string[]> = Object.create(null);
  for (let at = 0; at < rawHeaders.length; at += 2) {
    const [name = '', value = ''] = rawHeaders.slice(at, at + 2);
    const lower = name.toLowerCase();
    distinct[lower] = [...(distinct[lower] ?? []), value];
  }
  return distinct;
}

/** Trailers are bound by no proof, so handlers never see any. Node assigns `rawTrailers` when the body ends. */
export function dropTrailers(request: IncomingMessage): void {
  Object.defineProperties(request, {
    rawTrailers: { get: (): string[] => [], set: () => undefined },
    trailers: { value: {} },
    trailersDistinct: { value: {} },
  });
}
