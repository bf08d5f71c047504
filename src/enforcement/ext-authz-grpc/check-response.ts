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
import {
  type CheckResponse,
  type HeaderValueOption,
  type OkHttpResponse,
  OVERWRITE_IF_EXISTS_OR_ADD,
} from './messages.ts';

/** google.rpc.Code */
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
export function allowedIdentityPart(decision: AllowedDecision): OkHttpResponse {
  return {
    headers: overwriteAll(identityHeadersOf(decision)),
    headers_to_remove: usualNamesToRemove(decision.route.forwardAuthorization),
  };
}

/** The part that belongs to this one request. */
export function allowedRequestPart(decision: AllowedDecision, inbound: RequestHeaders): OkHttpResponse {
  return {
    headers: overwriteAll(decisionHeadersOf(decision)),
    headers_to_remove: otherNamesToRemove(inbound.names(), decision),
  };
}

/** Encodes a decision; see {@link createResponseEncoder}. */
export type ResponseEncoder = (decision: Decision, inbound: RequestHeaders) => Buffer;

/** Identity parts kept, each a few hundred bytes. */
const MAX_KEPT_PARTS = 10_000;

/** The library's encoders of the two messages. */
export interface ResponseSerializers {
  readonly checkResponse: (response: CheckResponse) => Buffer;
  readonly okHttpResponse: (response: OkHttpResponse) => Buffer;
}

/**
 * An encoder that keeps the encoded identity parts. The two parts of an allowed answer are encoded apart and
 * put one after the other within one `ok_response`: their fields are repeated ones, whose elements follow one
 * another in any place of a message (Protocol Buffers encoding, "Repeated Elements").
 */
export function createResponseEncoder(serializers: ResponseSerializers): ResponseEncoder {
  const identityParts = new Map<string, Buffer>();

  function identityPart(decision: AllowedDecision): Buffer {
    const { passportSha256, route, snapshot } = decision;
    const id = `${snapshot.head}\n${passportSha256}\n${route.routeId}`;
    let part = identityParts.get(id);
    if (part === undefined) {
      part = serializers.okHttpResponse(allowedIdentityPart(decision));
      if (identityParts.size >= MAX_KEPT_PARTS) identityParts.clear();
      identityParts.set(id, part);
    }
    return part;
  }

  return (decision, inbound) =>
    decision.kind === 'denied'
      ? serializers.checkResponse(deniedResponse(decision))
      : encodeAllowed(
          identityPart(decision),
          serializers.okHttpResponse(allowedRequestPart(decision, inbound)),
        );
}

/** CheckResponse: field 1, `status`, with `code` 0 written out; then field 3, `ok_response`, up to its length. */
const ALLOWED_PREFIX = Buffer.of(0x0a, 2, 0x08, 0, 0x1a);

function encodeAllowed(identityPart: Buffer, requestPart: Buffer): Buffer {
  const length = varint(identityPart.byteLength + requestPart.byteLength);
  return Buffer.concat([ALLOWED_PREFIX, length, identityPart, requestPart]);
}

/** Protocol Buffers encoding, "Base 128 Varints". */
function varint(value: number): Buffer {
  const bytes: number[] = [];
  let rest = value;
  for (; rest > 0x7f; rest >>>= 7) bytes.push((rest & 0x7f) | 0x80);
  return Buffer.of(...bytes, rest);
}

function overwriteAll(headers: ContextHeaders): readonly HeaderValueOption[] {
  return headers.map(overwrite);
}

/** Both fields, explicitly: older Envoys read only the first, newer ones the second. */
function overwrite([key, value]: readonly [string, string]): HeaderValueOption {
  return { header: { key, value }, append: { value: false }, append_action: OVERWRITE_IF_EXISTS_OR_ADD };
}
