/**
 * The request as it was received. A protected server captures it before any code of the application runs, and removes
 * credentials from every view of the headers that handlers have. Afterwards only this object has the credentials.
 */
import type { IncomingMessage, ServerResponse } from 'node:http';
import { hasIgnoredUpgrade } from '../../process/node-internals/ignored-upgrades.ts';
import { normalizeAuthority, type Origin } from '../../protocol/request-target.ts';
import { AUTHORIZATION_HEADER, hasPassportScheme } from '../../protocol/wire-names.ts';
import { isWithheldFromUpstream } from '../answers/upstream-headers.ts';
import { addHeader, dropTrailers, removeHeaders, setHeader } from './header-views.ts';

export interface CapturedRequest {
  readonly method: string;
  /** Path and query as in the request line. */
  readonly target: string;
  /** Header lines as received, in Node's flat form. */
  readonly rawHeaders: readonly string[];
  /** Whether `Content-Length` or `Transfer-Encoding` announces a body (RFC 9112 section 6). */
  readonly announcesBody: boolean;
  /** Whether the client asks for another protocol, so that bytes may follow that belong to no body. */
  readonly hasUpgrade: boolean;
  /** Whether the client waits for `100 Continue` before it sends the body. */
  readonly expectsContinue: boolean;
  /** Whether other code has begun to answer the request, such as a response time-out. */
  readonly isAnswered: () => boolean;
}

/** The event with which the server emitted a request. */
export interface Emitted {
  readonly expectsContinue: boolean;
  /** Undefined for an upgrade, which has none. */
  readonly response: ServerResponse | undefined;
}

export function captureRequest(
  request: IncomingMessage,
  origin: Origin,
  { expectsContinue, response }: Emitted,
): CapturedRequest {
  const { method = '', rawHeaders, url: target = '' } = request;
  const names = lowerCaseNames(rawHeaders);
  const isOfferIgnored = hasIgnoredUpgrade(request);
  const captured = {
    method,
    target,
    rawHeaders,
    announcesBody: announcesBody(names, rawHeaders),
    hasUpgrade: names.includes('upgrade') && !isOfferIgnored,
    expectsContinue,
    isAnswered: () => response?.headersSent === true,
  };
  removeHeaders(request, (name) => isWithheldFromHandlers(name, rawHeaders, origin));
  if (isOfferIgnored) {
    // Removed, so that a handler that forwards its headers does not offer the upgrade to another server.
    removeHeaders(request, (name) => OF_AN_OFFER.has(name));
    if (response !== undefined) response.shouldKeepAlive = false;
  }
  normalizeHost(request, names, rawHeaders, origin);
  if (names.includes('transfer-encoding')) dropTrailers(request);
  return captured;
}

const OF_AN_OFFER: ReadonlySet<string> = new Set(['upgrade', 'http2-settings']);

/** Restores the passport for handlers of a route with `forward_authorization`. */
export function restoreAuthorization(request: IncomingMessage, { rawHeaders }: CapturedRequest): string {
  const [value = ''] = valuesOf(rawHeaders, AUTHORIZATION_HEADER);
  addHeader(request, 'Authorization', value);
  return value;
}

/** Some applications and frameworks take the host from this header when they trust a proxy. */
const FORWARDED_HOST_HEADER = 'x-forwarded-host';

function isWithheldFromHandlers(name: string, rawHeaders: readonly string[], origin: Origin): boolean {
  if (name === AUTHORIZATION_HEADER) return valuesOf(rawHeaders, name).some(hasPassportScheme);
  if (name === FORWARDED_HOST_HEADER)
    return !valuesOf(rawHeaders, name).every((value) => isHostOf(origin, value));
  return isWithheldFromUpstream(name);
}

function valuesOf(rawHeaders: readonly string[], lowerName: string): readonly string[] {
  return rawHeaders.filter((_, index) => index % 2 === 1 && isNamed(rawHeaders[index - 1] ?? '', lowerName));
}

function isNamed(name: string, lowerName: string): boolean {
  return name.length === lowerName.length && name.toLowerCase() === lowerName;
}

/** Handlers see the verified form of the host: lower case, without the scheme's default port. Any other host is denied. */
function normalizeHost(
  request: IncomingMessage,
  names: readonly string[],
  rawHeaders: readonly string[],
  origin: Origin,
): void {
  const host = rawHeaders[names.indexOf('host') * 2 + 1];
  if (host !== undefined && host !== origin.authority && isHostOf(origin, host))
    setHeader(request, 'Host', origin.authority);
}

/** Whether a `Host` value means the origin. */
export function isHostOf({ authority, scheme }: Origin, host: string): boolean {
  return normalizeAuthority(scheme, host) === authority;
}

function lowerCaseNames(rawHeaders: readonly string[]): readonly string[] {
  return rawHeaders.flatMap((name, index) => (index % 2 === 0 ? [name.toLowerCase()] : []));
}

function announcesBody(names: readonly string[], rawHeaders: readonly string[]): boolean {
  if (names.includes('transfer-encoding')) return true;
  return names.some(
    (name, index) => name === 'content-length' && !/^0+$/.test(rawHeaders[index * 2 + 1] ?? ''),
  );
}
