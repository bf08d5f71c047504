/** Maps a Decision to a CheckResponse. */

import { randomUUID } from 'node:crypto';
import { LRUCache } from 'lru-cache';
import {
  type CheckResponse,
  overwriteAll,
  type ResponseSerializers,
} from '../../process/ext-authz/response-messages.ts';
import type { RequestHeaders } from '../../protocol/credentials.ts';
import type {
  AllowedDecision,
  Decision,
  DeniedDecision,
  ObservedDecision,
} from '../../verifier/decision/decide.ts';
import { identityHeadersOf } from '../../verifier/decision/identity-headers.ts';
import { problemOfDenial } from '../answers/denial-problem.ts';
import {
  decisionHeadersOf,
  namesToRemoveFromObserved,
  observedHeadersOf,
  otherNamesToRemove,
  proofChanges,
  usualNamesToRemove,
} from '../answers/upstream-headers.ts';

/** google.rpc.Code */
const CODE_OF_STATUS: { readonly [status: number]: number } = { 401: 16, 403: 7, 503: 14 };
const OK = 0;
const UNKNOWN = 2;

/** Response to a denied request. */
export function deniedResponse(decision: DeniedDecision): CheckResponse {
  const { body, headers, status } = problemOfDenial(decision);
  return {
    status: { code: CODE_OF_STATUS[status] ?? UNKNOWN },
    denied_response: { status: { code: status }, headers: overwriteAll(headers), body },
  };
}

/**
 * Response to an allowed request.
 * @param namesToRemove in addition to the credentials, see `otherNamesToRemove`
 */
export function allowedResponse(decision: AllowedDecision, namesToRemove: readonly string[]): CheckResponse {
  const proof = proofChanges(decision);
  const headers = [...identityHeadersOf(decision), ...decisionHeadersOf(decision), ...proof.set];
  return {
    // Explicit for the reader: a response without a status allows too.
    status: { code: OK },
    ok_response: {
      headers: overwriteAll(headers),
      headers_to_remove: [...usualNamesToRemove(decision.route), ...proof.removed, ...namesToRemove],
    },
  };
}

/** Response to a denied request that passes without identity. */
export function observedResponse(decision: ObservedDecision, inbound: readonly string[]): CheckResponse {
  return {
    status: { code: OK },
    ok_response: {
      headers: overwriteAll(observedHeadersOf(decision)),
      headers_to_remove: namesToRemoveFromObserved(inbound, decision),
    },
  };
}

/**
 * Encodes a Decision as the bytes of a CheckResponse. Responses that differ only in the decision's ID are encoded once:
 * those to one passport on one route, and denials for the same reason.
 */

type ResponseEncoder = (decision: Decision, inbound: RequestHeaders) => Buffer;

/** Maximum size of the cached responses, each a few hundred bytes, or some thousands where identifiers are long. */
const MAX_KEPT_BYTES = 8 * 1024 * 1024;
const KEPT_ALLOWANCE_BYTES = 256;

/** An encoded response without the decision's ID. */
interface KeptAnswer {
  readonly bytes: Buffer;
  readonly decisionIdAt: readonly number[];
}

export function createResponseEncoder({ checkResponse }: ResponseSerializers): ResponseEncoder {
  const kept = new LRUCache<string, KeptAnswer>({
    maxSize: MAX_KEPT_BYTES,
    sizeCalculation: ({ bytes }, name) => bytes.byteLength + name.length + KEPT_ALLOWANCE_BYTES,
  });
  // Placeholder of the ID's length. It is random, so no other part of a response can equal it.
  const place = randomUUID();

  function keep(name: string, bytes: Buffer): KeptAnswer {
    const answer = { bytes, decisionIdAt: placesOf(place, bytes) };
    kept.set(name, answer);
    return answer;
  }

  function encodeAllowed(decision: AllowedDecision, inbound: RequestHeaders): Buffer {
    const { caller, decisionId, otherSignatures, passportSha256, proofFormat, route, snapshot } = decision;
    const namesToRemove = otherNamesToRemove(inbound.names(), decision);
    const isUsual = namesToRemove.length === 0 && otherSignatures === undefined;
    if (!isUsual || decisionId.length !== place.length) {
      return checkResponse(allowedResponse(decision, namesToRemove));
    }
    // No passport's hash has a space.
    const credential = passportSha256 ?? `key ${caller.keyId}`;
    const name = `${snapshot.head}\n${credential}\n${route.routeId}\n${proofFormat}`;
    const answer =
      kept.get(name) ?? keep(name, checkResponse(allowedResponse({ ...decision, decisionId: place }, [])));
    return withId(answer, decisionId);
  }

  function encodeDenied(decision: DeniedDecision): Buffer {
    const { acceptSignature = '', challenge = '', decisionId, denial, dpopNonce, routeId } = decision;
    if (dpopNonce !== undefined || decisionId.length !== place.length)
      return checkResponse(deniedResponse(decision));
    const name = `${denial.reason}\n${denial.detail ?? ''}\n${routeId ?? ''}\n${acceptSignature}\n${challenge}`;
    const answer =
      kept.get(name) ?? keep(name, checkResponse(deniedResponse({ ...decision, decisionId: place })));
    return withId(answer, decisionId);
  }

  return (decision, inbound) => {
    switch (decision.kind) {
      case 'denied':
        return encodeDenied(decision);
      case 'observed':
        return checkResponse(observedResponse(decision, inbound.names()));
      case 'allowed':
        return encodeAllowed(decision, inbound);
    }
  };
}

function placesOf(text: string, bytes: Buffer): readonly number[] {
  const places: number[] = [];
  for (let at = bytes.indexOf(text); at >= 0; at = bytes.indexOf(text, at + 1)) places.push(at);
  return places;
}

function withId({ bytes, decisionIdAt }: KeptAnswer, decisionId: string): Buffer {
  const answer = Buffer.from(bytes);
  for (const at of decisionIdAt) answer.write(decisionId, at, 'latin1');
  return answer;
}
