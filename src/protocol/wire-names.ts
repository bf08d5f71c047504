/**
 * Names of HTTP headers and schemes. Lower case: HTTP field names are case-insensitive (RFC 9110 section 5.1), and all
 * known gateways pass them in lower case.
 * Source: docs/design/protocol.md "Request headers" and "What upstream receives".
 */

/** Authentication scheme of the `Authorization` header (RFC 9110 section 11.1). */
export const PASSPORT_SCHEME = 'Passport';

/** Scheme of a token that is bound to the key of a DPoP proof (RFC 9449 section 7.1). */
export const DPOP_SCHEME = 'DPoP';

const PASSPORT_IN_LIST = schemeInList(PASSPORT_SCHEME);
const DPOP_IN_LIST = schemeInList(DPOP_SCHEME);

function schemeInList(scheme: string): RegExp {
  return new RegExp(`(?:^|,)\\s*${scheme}(?:[\\s,]|$)`, 'i');
}

/** Whether a value of `Authorization`, which may be joined from several lines, has the scheme of a passport. */
export function hasPassportScheme(authorization: string): boolean {
  return PASSPORT_IN_LIST.test(authorization);
}

/** As {@link hasPassportScheme}, for the scheme `DPoP`. */
export function hasDpopScheme(authorization: string): boolean {
  return DPOP_IN_LIST.test(authorization);
}

/**
 * Letters and digits of a name: CGI-like upstreams read `_`, `.` and other characters as `-`, and some frameworks compare letters
 * and digits only.
 */
export function lettersOf(lowerName: string): string {
  return lowerName.replace(/[^a-z0-9]+/g, '');
}

/** Whether an upstream may read the name as one of ours. docs/design/protocol.md "What upstream receives". */
export function isVendorSpelling(lowerName: string): boolean {
  return hasVendorLetters(lettersOf(lowerName));
}

/** The one rule for our prefix. @param letters see {@link lettersOf} */
export function hasVendorLetters(letters: string): boolean {
  return letters.startsWith('xproofgate');
}

export const AUTHORIZATION_HEADER = 'authorization';
/** Carries the passport, a bare JWS, on routes that leave `Authorization` to the application. */
export const PASSPORT_HEADER = 'x-proofgate-passport';
/** The only other header for a passport, in the spelling of bundles and profiles. */
export const PASSPORT_HEADER_MEMBER = 'X-Proofgate-Passport';
/** The header that carries a route's passports. */
export type PassportHeader = typeof AUTHORIZATION_HEADER | typeof PASSPORT_HEADER;

/** @param member `passport_header` of a route or profile */
export function passportHeaderOf(member: typeof PASSPORT_HEADER_MEMBER | undefined): PassportHeader {
  return member === undefined ? AUTHORIZATION_HEADER : PASSPORT_HEADER;
}

export const TRANSCRIPT_HEADER = 'x-proofgate-transcript';
export const SIGNATURE_HEADER = 'x-proofgate-signature';
/** HTTP Message Signatures (RFC 9421 sections 4 and 5.1), digests of content (RFC 9530). */
export const HTTP_SIGNATURE_HEADER = 'signature';
export const HTTP_SIGNATURE_INPUT_HEADER = 'signature-input';
export const HTTP_SIGNATURE_FIELDS: readonly string[] = [HTTP_SIGNATURE_HEADER, HTTP_SIGNATURE_INPUT_HEADER];
/** A DPoP proof (RFC 9449 section 4.1). */
export const DPOP_HEADER = 'dpop';
/** Fields of proofs that applications may use for their own purposes too. */
export const PROOF_FIELDS: readonly string[] = [...HTTP_SIGNATURE_FIELDS, DPOP_HEADER];
/** A nonce for DPoP proofs, in an answer (RFC 9449 section 9). */
export const DPOP_NONCE_HEADER = 'dpop-nonce';
export const ACCEPT_SIGNATURE_HEADER = 'accept-signature';
export const CONTENT_DIGEST_HEADER = 'content-digest';
/** A caller may name the route that it means; a signature that covers the header binds the route. */
export const ROUTE_HEADER = 'x-proofgate-route';
/** The reason code of a denial. */
export const REASON_HEADER = 'x-proofgate-reason';
/** Seconds that the clock of `proofgate signer` is ahead of the server's that denied a request; only the signer sets it. */
export const CLOCK_AHEAD_HEADER = 'x-proofgate-clock-ahead';

/** Prefix of all our headers; a client's own headers with this prefix never reach the upstream. */
export const VENDOR_PREFIX = 'x-proofgate-';

/** Context headers that an allowed request carries to the upstream. */
export const CONTEXT_HEADERS = {
  subject: 'x-proofgate-subject',
  issuer: 'x-proofgate-issuer',
  trustDomain: 'x-proofgate-trust-domain',
  keyId: 'x-proofgate-key-id',
  keyBinding: 'x-proofgate-key-binding',
  clientId: 'x-proofgate-client-id',
  routeId: 'x-proofgate-route-id',
  authSite: 'x-proofgate-auth-site',
  decisionId: 'x-proofgate-decision-id',
  bundleRevision: 'x-proofgate-bundle-revision',
} as const;

/** The format of an allowed request's proof, on routes that say which they accept. */
export const PROOF_HEADER = 'x-proofgate-proof';

/** On a request that was denied and passed without identity, because its route is observed. */
export const OBSERVED_HEADER = 'x-proofgate-observed';

/** Headers that make some upstreams serve another request than the one that was checked. */
export const REQUEST_REWRITING_HEADERS: readonly string[] = [
  'x-original-url',
  'x-rewrite-url',
  'x-http-method-override',
  'x-http-method',
  'x-method-override',
];
