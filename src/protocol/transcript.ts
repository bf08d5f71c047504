/**
 * Formats and parses `transcript-v1`, the text that a proof signs: one `name=value` for each line.
 * Source: docs/design/protocol.md "Transcript".
 */
import { decodeBase64url, isBase64urlOf32Bytes } from './base64url.ts';
import {
  isIdentifier,
  isJti,
  isKeyId,
  isMethod,
  isSignableHeaderName,
  parsePositiveInteger,
} from './identifiers.ts';
import { MAX_TRANSCRIPT_BYTES } from './limits.ts';
import type { TranscriptLineName } from './reasons.ts';
import { isScheme } from './request-target.ts';
import type { PassportHeader } from './wire-names.ts';

const TRANSCRIPT_VERSION = 'transcript-v1';
/** Means "not bound" in `content-sha256` and `headers`. */
export const NOT_BOUND = '-';

/** A header line: name in lower case, value without optional white space at its ends. */
export interface SignedHeader {
  readonly name: string;
  readonly value: string;
}

/** The values that a proof binds. Times in seconds since the epoch, hashes in base64url. */
export interface Transcript {
  readonly authSite: string;
  readonly keyId: string;
  readonly passportSha256: string;
  readonly issuer: string;
  readonly subject: string;
  readonly audience: string;
  readonly routeId: string;
  readonly method: string;
  readonly scheme: string;
  readonly authority: string;
  /** Raw path and query. */
  readonly target: string;
  readonly jti: string;
  readonly issuedAtSeconds: number;
  readonly expiresAtSeconds: number;
  /** base64url SHA-256 of the body bytes, or `-`. */
  readonly contentSha256: string;
  /** Sorted by the bytes of their names, without duplicates. */
  readonly headers: readonly SignedHeader[];
}

/** Formats the text to sign. It does not validate the values; {@link parseTranscript} rejects invalid ones. */
export function formatTranscript(t: Transcript): string {
  const names = t.headers.length === 0 ? NOT_BOUND : t.headers.map(({ name }) => name).join(',');
  let text =
    `${TRANSCRIPT_VERSION}\nauth-site=${t.authSite}\nkey-id=${t.keyId}\npassport-sha256=${t.passportSha256}\n` +
    `issuer=${t.issuer}\nsubject=${t.subject}\naudience=${t.audience}\nroute-id=${t.routeId}\n` +
    `method=${t.method}\nscheme=${t.scheme}\nauthority=${t.authority}\ntarget=${t.target}\n` +
    `jti=${t.jti}\nissued-at=${t.issuedAtSeconds}\nexpires-at=${t.expiresAtSeconds}\n` +
    `content-sha256=${t.contentSha256}\nheaders=${names}\n`;
  for (const { name, value } of t.headers) text += `header.${name}=${value}\n`;
  return text;
}

const VERSION_LINE = `${TRANSCRIPT_VERSION}\n`;
const ALLOWED_BYTES = /^[\n\x20-\x7e]+$/;
const EQUALS = 0x3d;
const SPACE = 0x20;

/** Parses the bytes of a transcript; undefined when they depart from the format. */
export function parseTranscript(bytes: Uint8Array, passportHeader: PassportHeader): Transcript | undefined {
  if (bytes.byteLength > MAX_TRANSCRIPT_BYTES) return undefined;
  const text = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString('latin1');
  if (!ALLOWED_BYTES.test(text) || !text.startsWith(VERSION_LINE)) return undefined;
  const lines = new LineReader(text, VERSION_LINE.length);
  const transcript = readLines(lines, passportHeader);
  return transcript !== undefined && lines.isAtEnd && isWellFormed(transcript) ? transcript : undefined;
}

/** Reads lines in a given order, without splitting the text. After a line that is not as it should be, it never reaches the end. */
class LineReader {
  readonly #text: string;
  #at: number;

  constructor(text: string, at: number) {
    this.#text = text;
    this.#at = at;
  }

  get isAtEnd(): boolean {
    return this.#at === this.#text.length;
  }

  /** The value of the next line. Empty when the line has another name, no value, or a space at either end of it. */
  next(name: string): string {
    const text = this.#text;
    const start = this.#at + name.length + 1;
    const end = text.indexOf('\n', start);
    const isNamed = text.startsWith(name, this.#at) && text.charCodeAt(start - 1) === EQUALS;
    const hasSpace = text.charCodeAt(start) === SPACE || text.charCodeAt(end - 1) === SPACE;
    if (!isNamed || hasSpace || end <= start) {
      this.#at = Number.POSITIVE_INFINITY;
      return '';
    }
    this.#at = end + 1;
    return text.slice(start, end);
  }
}

function readLines(lines: LineReader, passportHeader: PassportHeader): Transcript | undefined {
  const authSite = lines.next('auth-site');
  const keyId = lines.next('key-id');
  const passportSha256 = lines.next('passport-sha256');
  const issuer = lines.next('issuer');
  const subject = lines.next('subject');
  const audience = lines.next('audience');
  const routeId = lines.next('route-id');
  const method = lines.next('method');
  const scheme = lines.next('scheme');
  const authority = lines.next('authority');
  const target = lines.next('target');
  const jti = lines.next('jti');
  const issuedAtSeconds = parsePositiveInteger(lines.next('issued-at'));
  const expiresAtSeconds = parsePositiveInteger(lines.next('expires-at'));
  const contentSha256 = lines.next('content-sha256');
  const headers = readHeaderLines(lines, passportHeader);
  if (issuedAtSeconds === undefined || expiresAtSeconds === undefined || headers === undefined) {
    return undefined;
  }
  return {
    authSite,
    keyId,
    passportSha256,
    issuer,
    subject,
    audience,
    routeId,
    method,
    scheme,
    authority,
    target,
    jti,
    issuedAtSeconds,
    expiresAtSeconds,
    contentSha256,
    headers,
  };
}

function isWellFormed(t: Transcript): boolean {
  return (
    isIdentifier(t.authSite) &&
    isKeyId(t.keyId) &&
    isBase64urlOf32Bytes(t.passportSha256) &&
    isIdentifier(t.issuer) &&
    isIdentifier(t.subject) &&
    isIdentifier(t.audience) &&
    isIdentifier(t.routeId) &&
    isMethod(t.method) &&
    isScheme(t.scheme) &&
    t.target.startsWith('/') &&
    isJti(t.jti) &&
    (t.contentSha256 === NOT_BOUND || isBase64urlOf32Bytes(t.contentSha256))
  );
}

function readHeaderLines(
  lines: LineReader,
  passportHeader: PassportHeader,
): readonly SignedHeader[] | undefined {
  const list = lines.next('headers');
  if (list === NOT_BOUND) return NO_HEADERS;
  const headers: SignedHeader[] = [];
  let previous = '';
  for (const name of list.split(',')) {
    if (name <= previous || !isSignableHeaderName(name, passportHeader)) return undefined;
    headers.push({ name, value: lines.next(`header.${name}`) });
    previous = name;
  }
  return headers;
}

const NO_HEADERS: readonly SignedHeader[] = [];

/** A transcript rebuilt from the request; undefined marks a value that the request does not show exactly. */
export interface RebuiltTranscript extends Omit<Transcript, 'contentSha256' | 'headers'> {
  readonly contentSha256: string | undefined;
  readonly headers: readonly { readonly name: string; readonly value: string | undefined }[];
}

/**
 * The name of the first line in which the request differs from the signed transcript; undefined when none does. `jti`
 * and the times never differ, because the verifier takes them from the signed transcript.
 */
export function firstDifference(
  sent: Transcript,
  rebuilt: RebuiltTranscript,
): TranscriptLineName | 'body_unavailable' | undefined {
  for (const [name, value] of COMPARED_LINES) {
    if (value(sent) !== value(rebuilt)) {
      return name === 'content-sha256' && rebuilt.contentSha256 === undefined ? 'body_unavailable' : name;
    }
  }
  const differing = sent.headers.find(({ value }, i) => rebuilt.headers[i]?.value !== value);
  return differing === undefined ? undefined : `header.${differing.name}`;
}

/** A line's name and its value; the value is undefined when the request does not show it exactly. */
export type TranscriptLine = readonly [
  name: string,
  read: (t: Transcript | RebuiltTranscript) => string | undefined,
];

type ComparedLine = readonly [TranscriptLineName, TranscriptLine[1]];
const COMPARED_BEFORE_TIMES: readonly ComparedLine[] = [
  ['auth-site', (t) => t.authSite],
  ['key-id', (t) => t.keyId],
  ['passport-sha256', (t) => t.passportSha256],
  ['issuer', (t) => t.issuer],
  ['subject', (t) => t.subject],
  ['audience', (t) => t.audience],
  ['route-id', (t) => t.routeId],
  ['method', (t) => t.method],
  ['scheme', (t) => t.scheme],
  ['authority', (t) => t.authority],
  ['target', (t) => t.target],
];
const COMPARED_AFTER_TIMES: readonly ComparedLine[] = [
  ['content-sha256', (t) => t.contentSha256],
  ['headers', (t) => (t.headers.length === 0 ? NOT_BOUND : t.headers.map(({ name }) => name).join(','))],
];
const COMPARED_LINES = [...COMPARED_BEFORE_TIMES, ...COMPARED_AFTER_TIMES];

/** The lines between the version and the signed headers, in order. */
export const FIXED_LINES: readonly TranscriptLine[] = [
  ...COMPARED_BEFORE_TIMES,
  ['jti', (t) => t.jti],
  ['issued-at', (t) => String(t.issuedAtSeconds)],
  ['expires-at', (t) => String(t.expiresAtSeconds)],
  ...COMPARED_AFTER_TIMES,
];

/** Decodes the header's base64url; undefined when it is not canonical or too long. */
export function decodeTranscript(header: string): Buffer | undefined {
  return header.length > MAX_TRANSCRIPT_BYTES ? undefined : decodeBase64url(header);
}
