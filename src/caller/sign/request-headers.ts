/** Parses the headers of a request and selects those that the transcript signs. */

import { ClientError } from '../../protocol/client-error.ts';
import { isSignableHeaderName } from '../../protocol/identifiers.ts';
import { trimOptionalWhiteSpace } from '../../protocol/optional-white-space.ts';
import type { RouteProfile } from '../../protocol/signing-profile.ts';
import type { SignedHeader } from '../../protocol/transcript.ts';
import {
  AUTHORIZATION_HEADER,
  hasPassportScheme,
  type PassportHeader,
  VENDOR_PREFIX,
} from '../../protocol/wire-names.ts';

/** Name as given; value without leading and trailing white space. */
export interface RequestHeader {
  readonly name: string;
  readonly value: string;
}

const NAME = /^[!#$%&'*+\-.^_`|~0-9A-Za-z]{1,128}$/;
const VALUE = /^[\t\x20-\x7e]*$/;
/** Values that a transcript can contain. */
const SIGNABLE_VALUE = /^[\x21-\x7e](?:[\x20-\x7e]*[\x21-\x7e])?$/;
/** The client itself sets these, or they change the message framing (RFC 9112 sections 6 and 7). */
const RESERVED: ReadonlySet<string> = new Set([
  'connection',
  'content-length',
  'expect',
  'host',
  'keep-alive',
  'proxy-connection',
  'te',
  'trailer',
  'transfer-encoding',
  'upgrade',
]);

/**
 * Reads `Name: value`.
 * @throws ClientError `header_invalid`, `header_reserved`
 */
export function parseHeaderLine(line: string): RequestHeader {
  const colon = line.indexOf(':');
  const name = line.slice(0, Math.max(colon, 0));
  const value = trimOptionalWhiteSpace(line.slice(colon + 1));
  if (!NAME.test(name) || !VALUE.test(value)) {
    throw new ClientError('header_invalid', 'a header must be given as "Name: value", in ASCII, on one line');
  }
  const lowerName = name.toLowerCase();
  if (RESERVED.has(lowerName) || lowerName.startsWith(VENDOR_PREFIX)) {
    throw new ClientError('header_reserved', `the header ${lowerName} is set by the client itself`);
  }
  return { name, value };
}

/**
 * Rejects the application's `Authorization` unless the profile puts the passport elsewhere.
 * @throws ClientError `header_reserved`
 */
export function checkAuthorization(given: readonly RequestHeader[], passportHeader: PassportHeader): void {
  const values = given.filter(({ name }) => name.toLowerCase() === AUTHORIZATION_HEADER);
  if (passportHeader === AUTHORIZATION_HEADER && values.length > 0) {
    const text =
      'the passport of this profile travels in authorization; a route with passport_header allows both';
    throw new ClientError('header_reserved', text);
  }
  if (values.some(({ value }) => hasPassportScheme(value))) {
    throw new ClientError('header_reserved', 'the passport of this profile travels in x-proofgate-passport');
  }
}

/**
 * The headers to sign: the route's and the caller's, sorted by name.
 * @param extraNames further header names to sign, case-insensitive
 * @throws ClientError `header_invalid`, `header_missing`, `header_repeated`
 */
export function selectSignedHeaders(
  given: readonly RequestHeader[],
  { passportHeader, signedHeaders }: Pick<RouteProfile, 'passportHeader' | 'signedHeaders'>,
  extraNames: readonly string[],
): readonly SignedHeader[] {
  const names = new Set([...signedHeaders, ...extraNames.map((name) => name.toLowerCase())]);
  return [...names].sort().map((name) => signedHeader(given, name, passportHeader));
}

function signedHeader(
  given: readonly RequestHeader[],
  name: string,
  passportHeader: PassportHeader,
): SignedHeader {
  if (!isSignableHeaderName(name, passportHeader)) {
    throw new ClientError('header_invalid', `${JSON.stringify(name)} is not a header that can be signed`);
  }
  const [header, ...more] = given.filter((candidate) => candidate.name.toLowerCase() === name);
  if (header === undefined)
    throw new ClientError('header_missing', `the header ${name} must be signed and is not given`);
  if (more.length > 0)
    throw new ClientError('header_repeated', `the header ${name} must be signed and is given twice`);
  if (!SIGNABLE_VALUE.test(header.value)) {
    throw new ClientError(
      'header_invalid',
      `the header ${name} must be signed: its value must be visible ASCII, without spaces at its ends`,
    );
  }
  return { name, value: header.value };
}
