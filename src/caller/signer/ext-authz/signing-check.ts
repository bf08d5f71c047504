/**
 * Signs for an egress Envoy: an allowed answer adds the proof to the request, and with transcript-v1 and dpop a passport.
 * Source: docs/operate/signer.md "Behind an egress Envoy".
 */

import type { CheckRequest } from '../../../process/ext-authz/request-messages.ts';
import { type CheckResponse, overwriteAll } from '../../../process/ext-authz/response-messages.ts';
import type { RequestHeaders } from '../../../protocol/credentials.ts';
import { normalizeAuthority } from '../../../protocol/request-target.ts';
import type { RouteProfile } from '../../../protocol/signing-profile.ts';
import {
  AUTHORIZATION_HEADER,
  CONTENT_DIGEST_HEADER,
  DPOP_HEADER,
  HTTP_SIGNATURE_HEADER,
  HTTP_SIGNATURE_INPUT_HEADER,
  hasPassportScheme,
  isVendorSpelling,
} from '../../../protocol/wire-names.ts';
import { factsOfCheckRequest } from '../../../verifier/envoy-request/check-request.ts';
import type { RequestSigner, SignedRequest } from '../../sign/request-signer.ts';
import { HEADERS_TOO_LARGE, headersTooLarge } from '../header-size.ts';
import { BROWSER_REQUEST, isOfBrowser, problemOfRefusal, type Refusal } from '../signing-refusals.ts';

export interface SigningCheckOptions {
  readonly signer: Pick<RequestSigner, 'coversBody' | 'profileFor' | 'sign'>;
  /** How to handle a request without a profile. After an error of the key or the signer, it is always refused. */
  readonly unsigned: 'deny' | 'pass';
  readonly onSigned: (signed: SignedRequest) => void;
  readonly onRefused: (code: Refusal['code']) => void;
  /** Called for each request that is forwarded unsigned. */
  readonly onPassed: (method: string) => void;
}

type Facts = ReturnType<typeof factsOfCheckRequest>;
type Outcome =
  | { readonly kind: 'signed'; readonly signed: SignedRequest }
  | { readonly kind: 'passed' }
  | { readonly kind: 'refused'; readonly refusal: Refusal };

export function checkResponseOf(request: CheckRequest, options: SigningCheckOptions): CheckResponse {
  const facts = factsOfCheckRequest(request, 'buffered');
  const outcome = outcomeOf(facts, options);
  if (outcome.kind === 'refused') {
    options.onRefused(outcome.refusal.code);
    return refusedResponse(outcome.refusal);
  }
  if (outcome.kind === 'passed') {
    options.onPassed(facts.method);
    return passedResponse(facts.headers, []);
  }
  options.onSigned(outcome.signed);
  const added = outcome.signed.headers
    .reveal()
    .map(({ name, value }) => [name.toLowerCase(), value] as const);
  return passedResponse(facts.headers, added, RESENDING_HEADERS);
}

/** With these headers the application could make Envoy send one proof twice (Envoy's documentation of its router). */
const RESENDING_HEADERS = ['x-envoy-retry-on', 'x-envoy-retry-grpc-on', 'x-envoy-hedge-on-per-try-timeout'];

function outcomeOf(facts: Facts, { signer, unsigned }: SigningCheckOptions): Outcome {
  if (isOfBrowser(facts.headers.names())) return refused(BROWSER_REQUEST);
  const found = findProfile(facts, signer);
  if (found.kind === 'failed') {
    if (found.code !== 'profile_not_found' || unsigned === 'deny') return refused(found);
    // Without a target it is unknown what Envoy will send, and a profile may fit that request.
    return facts.target === '' ? refused(NOT_CANONICAL) : { kind: 'passed' };
  }
  // If the URL parser split the text differently, the signature would cover another request than Envoy sends.
  const { authority, scheme, target } = found.url;
  if (target !== facts.target || authority !== normalizeAuthority(scheme, facts.authority)) {
    return refused(NOT_CANONICAL);
  }
  if (isPassport(facts.headers) && !isOnlyPassport(facts.headers)) return refused(OTHER_CREDENTIALS);
  const { profile } = found;
  if (signer.coversBody(profile) && facts.body.kind === 'unknown') return refused(BODY_UNAVAILABLE);
  const signed = signer.sign({
    method: facts.method,
    url: `${found.url.origin}${target}`,
    headers: headersToSign(facts.headers, profile),
    body: facts.body.kind === 'exact' ? facts.body.bytes : undefined,
  });
  if (signed.kind === 'failed') return refused(signed);
  const added = signed.headers.reveal().map(({ name, value }) => [name, value] as const);
  const isTooLarge = headersTooLarge([...sentLines(facts), ...added]);
  return isTooLarge ? refused(HEADERS_TOO_LARGE) : { kind: 'signed', signed };
}

/** The application's lines that Envoy forwards, with `Host` in place of the pseudo-headers of the request line. */
function sentLines({ authority, headers }: Facts): readonly (readonly [name: string, value: string])[] {
  const kept = headers.lines().filter(([name]) => !name.startsWith(':') && !isOwnCredential(headers, name));
  return [['host', authority], ...kept];
}

/** These are always included: the application's own are never replaced, and the digest of a body is signed with its type. */
const HEADERS_OF_PROOFS = [
  AUTHORIZATION_HEADER,
  HTTP_SIGNATURE_HEADER,
  HTTP_SIGNATURE_INPUT_HEADER,
  CONTENT_DIGEST_HEADER,
  DPOP_HEADER,
  'content-type',
];

function headersToSign(headers: RequestHeaders, { signedHeaders }: RouteProfile) {
  const names = new Set([...signedHeaders, ...HEADERS_OF_PROOFS]);
  if (isPassport(headers)) names.delete(AUTHORIZATION_HEADER);
  return [...names].flatMap((name) => linesOf(headers, name));
}

/** The application speaks plain HTTP to Envoy, which originates TLS: only the profile tells the upstream's scheme. */
function findProfile(
  { authority, method, target }: Facts,
  signer: SigningCheckOptions['signer'],
): ReturnType<RequestSigner['profileFor']> {
  const found = signer.profileFor({ method, url: `https://${authority}${target}` });
  if (found.kind === 'found' || found.code !== 'origin_not_allowed') return found;
  const plain = signer.profileFor({ method, url: `http://${authority}${target}` });
  if (plain.kind !== 'found') return found;
  // A host with `:80` belongs to the plain HTTP origin, although the upstream may use TLS.
  const isOfTls =
    signer.profileFor({ method, url: `https://${plain.url.authority}${target}` }).kind === 'found';
  return isOfTls ? found : plain;
}

/** A header that may have been joined from several lines counts as repeated. */
function linesOf(headers: RequestHeaders, name: string) {
  const found = headers.lookup(name);
  if (found.kind === 'absent') return [];
  return found.kind === 'single'
    ? [{ name, value: found.value }]
    : [
        { name, value: '' },
        { name, value: '' },
      ];
}

/** Whether the application already has credentials of another signer. */
function isPassport(headers: RequestHeaders): boolean {
  return headers.values(AUTHORIZATION_HEADER).some(hasPassportScheme);
}

function isOwnCredential(headers: RequestHeaders, name: string): boolean {
  const lower = name.toLowerCase();
  return isVendorSpelling(lower) || (lower === AUTHORIZATION_HEADER && isPassport(headers));
}

/** Envoy joins several lines with commas. */
function isOnlyPassport(headers: RequestHeaders): boolean {
  return headers.values(AUTHORIZATION_HEADER).every((value) => value.split(',').every(hasPassportScheme));
}

const OTHER_CREDENTIALS: Refusal = {
  code: 'header_reserved',
  message: 'the header authorization has a passport and other credentials: send only one of them',
};
const NOT_CANONICAL: Refusal = {
  code: 'target_not_canonical',
  message: 'host or path is not in canonical form',
};
const BODY_UNAVAILABLE: Refusal = {
  code: 'body_unavailable',
  message:
    'Envoy did not send the whole body: with_request_body needs pack_as_bytes, and max_request_bytes must be large enough',
};
function refused(refusal: Refusal): Outcome {
  return { kind: 'refused', refusal };
}

/** google.rpc.Code */
const OK = 0;
const PERMISSION_DENIED = 7;

export function refusedResponse(refusal: Refusal): CheckResponse {
  const { body, headers, status } = problemOfRefusal(refusal);
  return {
    status: { code: PERMISSION_DENIED },
    denied_response: { status: { code: status }, headers: overwriteAll(headers), body },
  };
}

/** Removes the application's credentials, except names that are set, because Envoy would remove those as well. */
function passedResponse(
  headers: RequestHeaders,
  added: readonly (readonly [name: string, value: string])[],
  alsoRemoved: readonly string[] = [],
): CheckResponse {
  const isSet = (name: string) => added.some(([set]) => set === name);
  const remove = headers
    .names()
    .filter((name) => !isSet(name.toLowerCase()) && isOwnCredential(headers, name));
  return {
    status: { code: OK },
    ok_response: {
      headers: overwriteAll(added),
      headers_to_remove: [...new Set([...alsoRemoved, ...remove])],
    },
  };
}
