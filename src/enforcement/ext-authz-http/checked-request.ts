/**
 * Reads the original request from an authorization request by the proxy's profile. An inexact request is denied: a
 * method or target that is missing, repeated or of unknown origin becomes an empty string, which matches no route.
 */
import { createHash, timingSafeEqual } from 'node:crypto';
import { requestHeadersOf } from '../../process/http-proxy/raw-headers.ts';
import type { HeaderLookup, RequestHeaders } from '../../protocol/credentials.ts';
import type { Origin } from '../../protocol/request-target.ts';
import { PASSPORT_HEADER } from '../../protocol/wire-names.ts';
import type { BodyState, RequestFacts } from '../../verifier/decision/facts/request-facts.ts';
import { mayBeJoined } from '../../verifier/envoy-request/envoy-headers.ts';
import { isReservedName } from '../answers/upstream-headers.ts';
import {
  type BodyMarks,
  CHECK_PATHS,
  type CheckPath,
  type HttpBodyMode,
  type HttpProfile,
} from './profiles.ts';

export interface CheckReader {
  readonly profile: HttpProfile;
  readonly bodyMode: HttpBodyMode;
  /** The only origin that is served, because no header contains the scheme or authority. */
  readonly origin: Origin;
  /** The secret of nginx's header; undefined in other profiles. */
  readonly secret: string | undefined;
}

/** An authorization request as received. */
export interface ReceivedCheck {
  readonly method: string;
  readonly target: string;
  /** Names and values in turn, one character for each byte. */
  readonly rawHeaders: readonly string[];
  /** Undefined when it was not read, or was too large to keep. */
  readonly body: Buffer | undefined;
}

/** Why the original request is unknown: the proxy is not configured for the profile, or the peer is not the proxy. */
export type SourceFault = 'secret' | 'source' | 'path';

export interface CheckedRequest {
  readonly facts: RequestFacts;
  readonly fault: SourceFault | undefined;
  /** A header that must not reach the API and that this proxy cannot remove; undefined when there is none. */
  readonly reservedName: string | undefined;
}

export function readCheck(reader: CheckReader, check: ReceivedCheck): CheckedRequest {
  const { origin, profile } = reader;
  const headers = headersOf(profile, check.rawHeaders);
  const original = originalRequest(reader, check, headers);
  const facts = {
    method: original.method,
    scheme: origin.scheme,
    authority: origin.authority,
    target: original.target,
    headers,
    body: bodyOf(reader, check, headers),
    removesProofs: profile.removesHeaders || checkPath(profile, check)?.replacesProofs === true,
  };
  return {
    facts,
    fault: original.fault,
    reservedName: reservedNameOf(profile, headers),
  };
}

function headersOf({ joinsHeaders }: HttpProfile, rawHeaders: readonly string[]): RequestHeaders {
  const headers = requestHeadersOf(rawHeaders);
  if (!joinsHeaders) return headers;
  return {
    ...headers,
    lookup(name) {
      const found = headers.lookup(name);
      const isJoined = found.kind === 'single' && found.value.includes(',') && mayBeJoined(name);
      return isJoined ? AMBIGUOUS : found;
    },
  };
}

const AMBIGUOUS: HeaderLookup = { kind: 'ambiguous' };

interface OriginalRequest {
  readonly method: string;
  readonly target: string;
  readonly fault: SourceFault | undefined;
}

function originalRequest(
  reader: CheckReader,
  check: ReceivedCheck,
  headers: RequestHeaders,
): OriginalRequest {
  const { bodyMarks, source } = reader.profile;
  if (bodyMarks !== undefined && announcedLength(bodyMarks, headers) === undefined) {
    return unknownRequest('source');
  }
  if (source.kind === 'request_line') return fromRequestLine(source.pathPrefix, check);
  if (checkPath(reader.profile, check) === undefined) return unknownRequest('path');
  if (source.kind === 'secret_header') return fromSecretHeader(headers.lookup(source.name), reader.secret);
  const method = headers.lookup(source.method);
  const target = headers.lookup(source.target);
  if (method.kind !== 'single' || target.kind !== 'single') return unknownRequest('source');
  return { method: method.value, target: target.value, fault: undefined };
}

function fromRequestLine(prefix: string, { method, target }: ReceivedCheck): OriginalRequest {
  if (!target.startsWith(`${prefix}/`)) return unknownRequest('path');
  return { method, target: target.slice(prefix.length), fault: undefined };
}

/** `SECRET METHOD TARGET`. Whatever follows the second space is the target, so a further space makes it not canonical. */
const SECRET_METHOD_TARGET = /^([^ ]+) ([^ ]+) (.+)$/s;

function fromSecretHeader(header: HeaderLookup, secret: string | undefined): OriginalRequest {
  if (header.kind !== 'single') return unknownRequest('source');
  const [, given = '', method = '', target = ''] = SECRET_METHOD_TARGET.exec(header.value) ?? [];
  if (secret === undefined || !isSameSecret(given, secret)) return unknownRequest('secret');
  return { method, target, fault: undefined };
}

/** Compares digests, which have one length. */
function isSameSecret(given: string, secret: string): boolean {
  const digest = (text: string) => createHash('sha256').update(text, 'latin1').digest();
  return timingSafeEqual(digest(given), digest(secret));
}

function unknownRequest(fault: SourceFault): OriginalRequest {
  return { method: '', target: '', fault };
}

/** Undefined for an unknown path, and where the path is that of the client. Proxies may append the original query. */
function checkPath({ source }: HttpProfile, { target }: ReceivedCheck): CheckPath | undefined {
  if (source.kind === 'request_line') return undefined;
  const [path = ''] = target.split('?', 1);
  return CHECK_PATHS.get(path);
}

/** Names that nginx accepts as valid by default. */
const USUAL_NAME = /^[a-z0-9-]+$/;

function reservedNameOf(
  { ownHeaders, refusesUnusualNames }: HttpProfile,
  headers: RequestHeaders,
): string | undefined {
  return headers.names().find((name) => {
    const lower = name.toLowerCase();
    if (refusesUnusualNames && !USUAL_NAME.test(lower)) return true;
    // Every proxy removes the passport's header, as those of the proof.
    return isReservedName(lower) && lower !== PASSPORT_HEADER && !ownHeaders.includes(lower);
  });
}

function bodyOf(reader: CheckReader, check: ReceivedCheck, headers: RequestHeaders): BodyState {
  const { bodyMode, profile } = reader;
  if (bodyMode === 'unknown' || checkPath(profile, check)?.isStreamed === true) return UNKNOWN_BODY;
  // After an upgrade, bytes follow that no proxy counts as a body.
  if (headers.lookup('upgrade').kind !== 'absent') return UNKNOWN_BODY;
  if (bodyMode === 'removed') return NO_BODY;
  if (check.body === undefined) return UNKNOWN_BODY;
  if (!isWhole(profile, headers, check.body)) return UNKNOWN_BODY;
  return check.body.byteLength === 0 ? NO_BODY : { kind: 'exact', bytes: check.body };
}

/** Envoy marks each body that it sends. Without a mark there is no body, or Envoy did not buffer it. */
function isWhole({ bodyMarks }: HttpProfile, headers: RequestHeaders, body: Buffer): boolean {
  if (bodyMarks === undefined) return true;
  const partial = headers.lookup(bodyMarks.partial);
  if (partial.kind === 'single') return partial.value === 'false';
  if (partial.kind === 'ambiguous' || body.byteLength > 0) return false;
  return /^0*$/.test(announcedLength(bodyMarks, headers) ?? '?');
}

/**
 * The client's Content-Length; empty if it is missing. Undefined when it is not a number: Envoy 1.36 forwards `+5` of
 * an HTTP/2 client unchanged, and an HTTP/1.1 API that reads another number would take the body for a request (RFC 9112
 * section 11.2).
 */
function announcedLength(marks: BodyMarks, headers: RequestHeaders): string | undefined {
  const announced = headers.lookup(marks.announced);
  if (announced.kind !== 'single') return undefined;
  return /^length=([0-9]*)$/.exec(announced.value)?.[1];
}

const NO_BODY: BodyState = { kind: 'none' };
const UNKNOWN_BODY: BodyState = { kind: 'unknown' };
