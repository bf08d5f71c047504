/**
 * The request as it was received. A protected server captures it before any code of the application runs, and removes
 * credentials from every view of the headers that handlers have. Afterwards only this object has the credentials.
 */
import type { IncomingMessage, ServerResponse } from 'node:http';
import { headerLines } from '../../process/http-proxy/raw-headers.ts';
import { hasIgnoredUpgrade } from '../../process/node-internals/ignored-upgrades.ts';
import { normalizeAuthority, type Origin } from '../../protocol/request-target.ts';
import { AUTHORIZATION_HEADER, PROOF_FIELDS } from '../../protocol/wire-names.ts';
import type { AllowedDecision, ObservedDecision } from '../../verifier/decision/decide.ts';
import { isWithheldFromUpstream, keepsAuthorization, keptProofLines } from '../answers/upstream-headers.ts';
import type { HeaderChange } from './admission-gate.ts';
import { dropTrailers, removeHeaders, replaceHeader, setHeader } from './header-views.ts';

export interface CapturedRequest {
  readonly method: string;
  /** Path and query as in the request line. */
  readonly target: string;
  /** Header lines as received, in Node's flat form. */
  readonly rawHeaders: readonly string[];
  /** Names of headers that may hold a credential for the site, of which handlers see nothing before the decision. */
  readonly credentials: readonly string[];
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

/** @param credentialsIn returns the lower-case names of headers that may hold a proof, passport or token for the site */
export function captureRequest(
  request: IncomingMessage,
  origin: Origin,
  { expectsContinue, response }: Emitted,
  credentialsIn: (rawHeaders: readonly string[]) => readonly string[],
): CapturedRequest {
  const { method = '', rawHeaders, url: target = '' } = request;
  const names = lowerCaseNames(rawHeaders);
  const isOfferIgnored = hasIgnoredUpgrade(request);
  const credentials = credentialsIn(rawHeaders);
  const captured = {
    method,
    target,
    rawHeaders,
    credentials,
    announcesBody: announcesBody(names, rawHeaders),
    hasUpgrade: names.includes('upgrade') && !isOfferIgnored,
    expectsContinue,
    isAnswered: () => response?.headersSent === true,
  };
  removeHeaders(
    request,
    (name) => credentials.includes(name) || isWithheldFromHandlers(name, captured, origin),
  );
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

/**
 * Shows handlers what an upstream would receive of `Authorization` and of the fields of proofs: not the consumed proof, but
 * signatures of others, and fields that hold no proof after all.
 */
export function showCredentials(
  request: IncomingMessage,
  captured: CapturedRequest,
  decision: AllowedDecision | ObservedDecision,
): readonly HeaderChange[] {
  const { credentials, rawHeaders } = captured;
  const kept = keptProofLines(headerLines(rawHeaders), decision);
  const changes = PROOF_FIELDS.flatMap((name): HeaderChange[] => {
    const received = valuesOf(rawHeaders, name);
    const values = kept.filter(([each]) => isNamed(each, name)).map(([, value]) => value);
    const isShown = !credentials.includes(name) && values.join() === received.join();
    return isShown ? [] : [{ name, values }];
  });
  const authorization = valuesOf(rawHeaders, AUTHORIZATION_HEADER);
  const isWithheld = credentials.includes(AUTHORIZATION_HEADER);
  if (authorization.length > 0 && isWithheld !== isAuthorizationRemoved(decision)) {
    changes.push({ name: AUTHORIZATION_HEADER, values: isWithheld ? authorization : [] });
  }
  for (const { name, values } of changes) replaceHeader(request, name, values);
  return changes;
}

function isAuthorizationRemoved(decision: AllowedDecision | ObservedDecision): boolean {
  return decision.kind === 'allowed' ? !keepsAuthorization(decision.route) : decision.removesAuthorization;
}

/** Some applications and frameworks take the host from this header when they trust a proxy. */
const FORWARDED_HOST_HEADER = 'x-forwarded-host';

function isWithheldFromHandlers(
  name: string,
  captured: Pick<CapturedRequest, 'rawHeaders'>,
  origin: Origin,
): boolean {
  if (name === FORWARDED_HOST_HEADER)
    return !valuesOf(captured.rawHeaders, name).every((value) => isHostOf(origin, value));
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
