/** Decision in, CheckResponse out. */
import { LRUCache } from 'lru-cache';
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
const CODE_OF_STATUS: { readonly [status: number]: number } = { 401: 16, 403: 7, 503: 14 };
const OK = 0;
const UNKNOWN = 2;

/** The whole answer to a denied request. */
export function deniedResponse(decision: DeniedDecision): CheckResponse {
  const { body, headers, status } = problemOfDenial(decision);
  return {
    status: { code: CODE_OF_STATUS[status] ?? UNKNOWN },
    denied_response: { status: { code: status }, headers: headers.map(overwrite), body },
  };
}

/**
 * The whole answer to an allowed one.
 * @param namesToRemove beside the credentials, see `otherNamesToRemove`
 */
export function allowedResponse(decision: AllowedDecision, namesToRemove: readonly string[]): CheckResponse {
  return {
    // Code 0, written out: an answer without a status allows too, and nobody should wonder.
    status: { code: OK },
    ok_response: {
      headers: overwriteAll([...identityHeadersOf(decision), ...decisionHeadersOf(decision)]),
      headers_to_remove: [...usualNamesToRemove(decision.route.forwardAuthorization), ...namesToRemove],
    },
  };
}

/** Encodes a decision; see {@link createResponseEncoder}. */
export type ResponseEncoder = (decision: Decision, inbound: RequestHeaders) => Buffer;

/** Of kept answers, each a few hundred bytes, or some thousands where identifiers are long. */
const MAX_KEPT_BYTES = 8 * 1024 * 1024;
const KEPT_ALLOWANCE_BYTES = 256;

/** The library's encoder. */
export interface ResponseSerializers {
  readonly checkResponse: (response: CheckResponse) => Buffer;
}

/** Stands for the decision ID in an answer that is kept; as long as one, and no other header can hold it. */
const DECISION_ID_PLACE = '\0'.repeat(36);

/** An encoded answer to one caller on one route, lacking only the ID of the decision. */
interface KeptAnswer {
  readonly bytes: Buffer;
  readonly decisionIdAt: number;
}

/**
 * An encoder that keeps what it encoded: allowed answers to a passport on a route differ in the decision's ID alone, and
 * in further names to remove, which nearly no request has.
 */
export function createResponseEncoder({ checkResponse }: ResponseSerializers): ResponseEncoder {
  const kept = new LRUCache<string, KeptAnswer>({
    maxSize: MAX_KEPT_BYTES,
    sizeCalculation: ({ bytes }, id) => bytes.byteLength + id.length + KEPT_ALLOWANCE_BYTES,
  });

  function keptAnswer(decision: AllowedDecision): KeptAnswer {
    const { passportSha256, route, snapshot } = decision;
    const id = `${snapshot.head}\n${passportSha256}\n${route.routeId}`;
    let answer = kept.get(id);
    if (answer === undefined) {
      const bytes = checkResponse(allowedResponse({ ...decision, decisionId: DECISION_ID_PLACE }, []));
      answer = { bytes, decisionIdAt: bytes.indexOf(DECISION_ID_PLACE) };
      kept.set(id, answer);
    }
    return answer;
  }

  function encodeAllowed(decision: AllowedDecision, inbound: RequestHeaders): Buffer {
    const namesToRemove = otherNamesToRemove(inbound.names(), decision);
    if (namesToRemove.length > 0 || decision.decisionId.length !== DECISION_ID_PLACE.length) {
      return checkResponse(allowedResponse(decision, namesToRemove));
    }
    const { bytes, decisionIdAt } = keptAnswer(decision);
    const answer = Buffer.from(bytes);
    answer.write(decision.decisionId, decisionIdAt, 'latin1');
    return answer;
  }

  return (decision, inbound) =>
    decision.kind === 'denied' ? checkResponse(deniedResponse(decision)) : encodeAllowed(decision, inbound);
}

function overwriteAll(headers: ContextHeaders): readonly HeaderValueOption[] {
  return headers.map(overwrite);
}

/** Both fields, explicitly: older Envoys read only the first, newer ones the second. */
function overwrite([key, value]: readonly [string, string]): HeaderValueOption {
  return { header: { key, value }, append: { value: false }, append_action: OVERWRITE_IF_EXISTS_OR_ADD };
}
