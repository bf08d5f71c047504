/**
 * Step 5 for an HTTP message signature: the signature base is built from the request as received, so a
 * changed request has an invalid signature. What the signature must cover, and the body's digest, come last.
 * Source: docs/design/protocol.md "HTTP Message Signatures".
 */
import type { Route } from '../../../bundle/compile/snapshot.ts';
import type { SignatureCredentials } from '../../../protocol/accepted-credentials.ts';
import { isBodyBearing } from '../../../protocol/body-binding.ts';
import { digestMatches } from '../../../protocol/content-digest.ts';
import {
  allowsAlgorithm,
  type CoveredValues,
  coveredValues,
  firstUncovered,
  formatSignatureBase,
  type HttpSignature,
  SITE_PROFILE,
} from '../../../protocol/http-signature.ts';
import { type Denial, deny } from '../../../protocol/reasons.ts';
import { verifySignature } from '../../../protocol/verify-signature.ts';
import { CONTENT_DIGEST_HEADER, ROUTE_HEADER } from '../../../protocol/wire-names.ts';
import { type Evaluation, required } from '../facts/evaluation.ts';
import { isEmptyBody, type RequestFacts } from '../facts/request-facts.ts';

/** The covered components with the request's values. */
export function valuesOfSignature(
  { authority, facts }: Evaluation,
  { components }: HttpSignature,
): CoveredValues {
  return coveredValues(components, { ...headOf(facts), authority: required(authority) });
}

/** Does not read the body, which is lazy. */
function headOf({ headers, method, scheme, target }: RequestFacts) {
  return { headers, method, scheme, target };
}

export function checkHttpSignature(
  evaluation: Evaluation,
  { passport, signature }: SignatureCredentials,
): Denial | undefined {
  // `/x` and `/x?` have the same `@query` (RFC 9421 section 2.2.7).
  if (/^[^?]*\?$/.test(evaluation.facts.target)) return deny('request_binding_mismatch', 'target');
  const values = valuesOfSignature(evaluation, signature);
  if (values.kind === 'unknown') return deny('request_binding_mismatch', `header.${values.name}`);
  const holder = required(evaluation.holder);
  // Without a passport, `keyid` is the name by which the key was found.
  const isNamed = passport === undefined || signature.keyId === holder.thumbprint;
  const base = Buffer.from(formatSignatureBase(values.lines, signature.params), 'latin1');
  return isNamed &&
    allowsAlgorithm(signature, holder.algorithm) &&
    verifySignature(holder, base, signature.signature)
    ? undefined
    : deny('invalid_request_proof', 'proof_signature');
}

/** Whether the signature covers what the route needs, and the body has the covered digest. */
export function checkCoverage(
  { evidence, facts }: Evaluation,
  { passport, signature }: SignatureCredentials,
): Denial | undefined {
  const route = required(evidence.route);
  const { components } = signature;
  const ofPassport = passport === undefined ? [] : [route.passportHeader];
  const missing = firstUncovered(components, SITE_PROFILE, [...ofPassport, ...neededHeaders(route)]);
  if (missing !== undefined) return deny('request_binding_mismatch', `component.${missing}`);
  if (components.includes(ROUTE_HEADER)) {
    const named = facts.headers.lookup(ROUTE_HEADER);
    if (named.kind !== 'single' || named.value !== route.routeId) {
      return deny('request_binding_mismatch', 'route-id');
    }
  }
  return signature.contentDigest === undefined
    ? checkUndigested(facts, route)
    : checkDigested(facts, route, signature, signature.contentDigest);
}

/** Headers that each signature for the route covers, whatever the request's body. */
function neededHeaders(route: Pick<Route, 'body' | 'method' | 'signedHeaders'>): readonly string[] {
  const hasBody = route.body === 'bound' && isBodyBearing(route.method);
  return hasBody ? [...route.signedHeaders, CONTENT_DIGEST_HEADER] : route.signedHeaders;
}

/** As {@link neededHeaders}, with the type of the content where the request has one. */
export function neededComponents(
  route: Route,
  { headers }: Pick<RequestFacts, 'headers'>,
): readonly string[] {
  const needed = neededHeaders(route);
  const isTyped = needed.includes(CONTENT_DIGEST_HEADER) && headers.lookup(CONTENT_TYPE).kind !== 'absent';
  return isTyped && !needed.includes(CONTENT_TYPE) ? [...needed, CONTENT_TYPE] : needed;
}

const CONTENT_TYPE = 'content-type';

/** Without a digest the body must be empty, or unbound. */
function checkUndigested({ body }: RequestFacts, route: Route): Denial | undefined {
  if (route.body === 'unbound' || isEmptyBody(body)) return undefined;
  return body.kind === 'unknown'
    ? deny('request_binding_mismatch', 'body_unavailable')
    : deny('request_binding_mismatch', `component.${CONTENT_DIGEST_HEADER}`);
}

function checkDigested(
  { body, headers }: RequestFacts,
  route: Route,
  { components }: HttpSignature,
  digest: NonNullable<HttpSignature['contentDigest']>,
): Denial | undefined {
  // No step compares it.
  if (route.body === 'unbound') return deny('request_binding_mismatch', 'content-digest');
  if (headers.lookup(CONTENT_TYPE).kind !== 'absent' && !components.includes(CONTENT_TYPE)) {
    return deny('request_binding_mismatch', `component.${CONTENT_TYPE}`);
  }
  switch (body.kind) {
    case 'exact':
      return digestMatches(digest, body.bytes)
        ? undefined
        : deny('request_binding_mismatch', 'content-digest');
    case 'none':
      return digestMatches(digest, NO_BODY) ? undefined : deny('request_binding_mismatch', 'content-digest');
    case 'hashed':
      if (digest.sha512 !== undefined) return deny('request_binding_mismatch', 'body_unavailable');
      return digest.sha256 === body.sha256 ? undefined : deny('request_binding_mismatch', 'content-digest');
    case 'unknown':
      return deny('request_binding_mismatch', 'body_unavailable');
  }
}

const NO_BODY = new Uint8Array(0);
