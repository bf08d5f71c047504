/** Decision in, CheckResponse out. */
import type { RequestHeaders } from '../../protocol/credentials.ts';
import type { AllowedDecision, Decision, DeniedDecision } from '../../verifier/decision.ts';
import { problemOfDenial } from '../denial-problem.ts';
import {
  type ContextHeaders,
  decisionHeadersOf,
  identityHeadersOf,
  otherNamesToRemove,
  usualNamesToRemove,
} from '../upstream-headers.ts';
import { type CheckResponse, type HeaderValueOption, OVERWRITE_IF_EXISTS_OR_ADD } from './messages.ts';

/** google.rpc.Code */
const OK = 0;
const CODE_OF_STATUS: { readonly [status: number]: number } = { 401: 16, 403: 7, 503: 14 };
const UNKNOWN = 2;

/** The whole answer to a denied request. */
export function deniedResponse(decision: DeniedDecision): CheckResponse {
  const { body, headers, status } = problemOfDenial(decision);
  return {
    status: { code: CODE_OF_STATUS[status] ?? UNKNOWN },
    denied_response: { status: { code: status }, headers: headers.map(overwrite), body },
  };
}

/** The part of an allowed request's answer that is the same for every request of a caller to a route. */
export function allowedIdentityPart(decision: AllowedDecision): CheckResponse {
  return {
    status: { code: OK },
    ok_response: {
      headers: overwriteAll(identityHeadersOf(decision)),
      headers_to_remove: usualNamesToRemove(decision.route.forwardAuthorization),
    },
  };
}

/** The part that belongs to this one request. */
export function allowedRequestPart(decision: AllowedDecision, inbound: RequestHeaders): CheckResponse {
  return {
    ok_response: {
      headers: overwriteAll(decisionHeadersOf(decision)),
      headers_to_remove: otherNamesToRemove(inbound.names(), decision),
    },
  };
}

/** Encodes a decision; see {@link createResponseEncoder}. */
export type ResponseEncoder = (decision: Decision, inbound: RequestHeaders) => Buffer;

/** Identity parts kept, each a few hundred bytes. */
const MAX_KEPT_PARTS = 10_000;

/**
 * An encoder that keeps the encoded identity parts. The two parts of an allowed answer are encoded apart and
 * put one after the other, which in protobuf is the encoding of both merged
 * (Protocol Buffers encoding, "Last One Wins": repeated fields concatenate, embedded messages merge).
 * @param serialize the library's encoder for CheckResponse
 */
export function createResponseEncoder(serialize: (response: CheckResponse) => Buffer): ResponseEncoder {
  const identityParts = new Map<string, Buffer>();

  function identityPart(decision: AllowedDecision): Buffer {
    const { passportSha256, route, snapshot } = decision;
    const id = `${snapshot.head}\n${passportSha256}\n${route.routeId}`;
    let part = identityParts.get(id);
    if (part === undefined) {
      part = serialize(allowedIdentityPart(decision));
      if (identityParts.size >= MAX_KEPT_PARTS) identityParts.clear();
      identityParts.set(id, part);
    }
    return part;
  }

  return (decision, inbound) =>
    decision.kind === 'denied'
      ? serialize(deniedResponse(decision))
      : Buffer.concat([identityPart(decision), serialize(allowedRequestPart(decision, inbound))]);
}

function overwriteAll(headers: ContextHeaders): readonly HeaderValueOption[] {
  return headers.map(overwrite);
}

/** Both fields, explicitly: older Envoys read only the first, newer ones the second. */
function overwrite([key, value]: readonly [string, string]): HeaderValueOption {
  return { header: { key, value }, append: { value: false }, append_action: OVERWRITE_IF_EXISTS_OR_ADD };
}
