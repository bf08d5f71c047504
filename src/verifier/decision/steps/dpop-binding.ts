/**
 * Step 5 for a DPoP proof: signed by the passport's holder key, for this passport, method and URL. What such a proof cannot
 * bind, a request may have only where the route says so.
 * Source: RFC 9449 section 4.3, docs/design/protocol.md "DPoP".
 */
import type { Route } from '../../../bundle/compile/snapshot.ts';
import { tokenOf } from '../../../protocol/accepted-credentials.ts';
import type { DpopCredentials } from '../../../protocol/credentials.ts';
import type { DpopProof } from '../../../protocol/dpop-proof.ts';
import { sameJwk } from '../../../protocol/public-key.ts';
import { type Denial, deny } from '../../../protocol/reasons.ts';
import { pathOf } from '../../../protocol/request-target.ts';
import { verifySignature } from '../../../protocol/verify-signature.ts';
import { type Evaluation, required } from '../facts/evaluation.ts';
import { isEmptyBody, type RequestFacts } from '../facts/request-facts.ts';

/** The holder key's point was checked with the passport; the proof's own copy of the key is only compared. */
export function checkDpopSignature(
  { holder: found }: Evaluation,
  { jwk, signature, signingInput }: DpopProof,
): Denial | undefined {
  const holder = required(found);
  if (!sameJwk(jwk, holder.jwk)) return deny('invalid_request_proof', 'proof_key');
  return verifySignature(holder, signingInput, signature)
    ? undefined
    : deny('invalid_request_proof', 'proof_signature');
}

/** After the signature, so that only the holder of the key gets a nonce; before the times, so that a stale one is no fault of its own. */
export function checkDpopNonce(
  { evidence, inputs, snapshot }: Evaluation,
  { nonce }: DpopProof,
): Denial | undefined {
  if (!required(evidence.route).needsDpopNonce) return undefined;
  const { dpopNonces, nowSeconds } = inputs;
  const { skewSeconds } = required(snapshot);
  return nonce !== undefined && dpopNonces?.accepts(nonce, nowSeconds, skewSeconds) === true
    ? undefined
    : deny('invalid_request_proof', 'dpop_nonce');
}

export interface DpopPart {
  readonly name: 'ath' | 'method' | 'scheme' | 'authority' | 'target';
  readonly signed: string;
  /** The request's value. */
  readonly actual: string;
}

/** What the proof states of the request, in the order in which it is compared. */
export function dpopParts(
  { authority, facts }: Evaluation,
  credentials: DpopCredentials,
): readonly DpopPart[] {
  const { proof } = credentials;
  const actual = required(tokenOf(credentials)).sha256;
  return [
    { name: 'ath', signed: proof.tokenSha256, actual },
    { name: 'method', signed: proof.method, actual: facts.method },
    { name: 'scheme', signed: proof.origin.scheme, actual: facts.scheme },
    { name: 'authority', signed: proof.origin.authority, actual: required(authority) },
    { name: 'target', signed: proof.path, actual: pathOf(facts.target) },
  ];
}

export function checkDpopBinding(evaluation: Evaluation, credentials: DpopCredentials): Denial | undefined {
  const differing = dpopParts(evaluation, credentials).find(({ actual, signed }) => actual !== signed);
  if (differing !== undefined) return deny('request_binding_mismatch', differing.name);
  return checkUnbound(evaluation.facts, required(evaluation.evidence.route));
}

/** A load refuses routes with signed headers that do not give these up. */
function checkUnbound(facts: RequestFacts, { unbound }: Route): Denial | undefined {
  if (!unbound.has('query') && facts.target.includes('?')) return deny('request_binding_mismatch', 'query');
  if (unbound.has('body') || isEmptyBody(facts.body)) return undefined;
  return deny('request_binding_mismatch', facts.body.kind === 'unknown' ? 'body_unavailable' : 'body');
}
