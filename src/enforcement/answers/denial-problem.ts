/**
 * Builds the response to a denied request, the same at every enforcement point: RFC 9457 problem details and headers.
 * Source: docs/design/protocol.md, under the decision table.
 */
import { randomUUID } from 'node:crypto';
import type { ProblemResponse } from '../../process/http-proxy/problem.ts';
import { type Denial, deny, type Reason } from '../../protocol/reasons.ts';
import {
  ACCEPT_SIGNATURE_HEADER,
  CONTEXT_HEADERS,
  DPOP_NONCE_HEADER,
  PASSPORT_SCHEME,
  REASON_HEADER,
} from '../../protocol/wire-names.ts';
import type { DeniedDecision } from '../../verifier/decision/decide.ts';

const TITLES: { readonly [R in Reason]: string } = {
  bundle_policy_missing: 'No policy bundle is loaded',
  bundle_route_missing: 'No route for this method, origin and path',
  source_issuer_mismatch: 'Issuer not allowed for this route',
  source_trust_domain_mismatch: 'Trust domain not allowed for this route',
  source_subject_mismatch: 'Subject not allowed for this route',
  insufficient_key_binding: 'A stronger key binding is required',
  bundle_freshness_unknown: 'Freshness class of this route is unknown',
  stale_bundle_fail_closed: 'The policy bundle is too old for this route',
  missing_provenance: 'Required provenance is missing',
  provenance_mismatch: 'Provenance not allowed for this route',
  missing_context: 'Required context is missing',
  context_mismatch: 'Context not allowed for this route',
  invalid_request_proof: 'Passport or proof is missing or not valid',
  request_binding_mismatch: 'The request differs from what was signed',
  jti_replay: 'This proof was presented before',
  replay_store_unavailable: 'The replay store cannot vouch for this proof',
  verifier_unavailable: 'The verifier cannot decide now',
};

/** The denial when the enforcement point itself fails and no verifier has decided. */
export function internalDenial(detail: 'internal' | 'unprotected' = 'internal'): DeniedDecision {
  const denial = deny('verifier_unavailable', detail);
  return { kind: 'denied', decisionId: randomUUID(), denial, routeId: undefined };
}

/** `Retry-After` of a 503, seconds. */
const RETRY_AFTER_SECONDS = '1';

export function problemOfDenial({
  acceptSignature,
  challenge,
  decisionId,
  denial,
  dpopNonce,
  routeId,
}: DeniedDecision): ProblemResponse {
  const { detail, reason, status } = denial;
  const body = JSON.stringify({
    type: `urn:proofgate:denial:${reason}`,
    title: TITLES[reason],
    status,
    reason,
    detail,
    route_id: routeId,
    decision_id: decisionId,
  });
  const headers = headersOf(denial, decisionId, challenge);
  if (acceptSignature !== undefined) headers.push([ACCEPT_SIGNATURE_HEADER, acceptSignature]);
  if (dpopNonce !== undefined) headers.push([DPOP_NONCE_HEADER, dpopNonce]);
  return { status, headers, body };
}

function headersOf(
  { reason, status }: Denial,
  decisionId: string,
  challenge: string = PASSPORT_SCHEME,
): [string, string][] {
  const headers: [string, string][] = [
    ['content-type', 'application/problem+json'],
    ['cache-control', 'no-store'],
    [REASON_HEADER, reason],
    [CONTEXT_HEADERS.decisionId, decisionId],
  ];
  if (status === 401) headers.push(['www-authenticate', challenge]);
  // The route denies until its bundle is corrected, so a retry does not help.
  if (status === 503 && reason !== 'bundle_freshness_unknown')
    headers.push(['retry-after', RETRY_AFTER_SECONDS]);
  return headers;
}
