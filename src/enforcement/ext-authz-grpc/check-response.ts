/** Maps a Decision to a CheckResponse. */
import type { AllowedDecision, DeniedDecision } from '../../verifier/decision/decision.ts';
import { problemOfDenial } from '../denial-problem.ts';
import {
  type ContextHeaders,
  decisionHeadersOf,
  identityHeadersOf,
  usualNamesToRemove,
} from '../upstream-headers.ts';
import { type CheckResponse, type HeaderValueOption, OVERWRITE_IF_EXISTS_OR_ADD } from './messages.ts';

/** google.rpc.Code */
const CODE_OF_STATUS: { readonly [status: number]: number } = { 401: 16, 403: 7, 503: 14 };
const OK = 0;
const UNKNOWN = 2;

/** Response to a denied request. */
export function deniedResponse(decision: DeniedDecision): CheckResponse {
  const { body, headers, status } = problemOfDenial(decision);
  return {
    status: { code: CODE_OF_STATUS[status] ?? UNKNOWN },
    denied_response: { status: { code: status }, headers: headers.map(overwrite), body },
  };
}

/**
 * Response to an allowed request.
 * @param namesToRemove in addition to the credentials, see `otherNamesToRemove`
 */
export function allowedResponse(decision: AllowedDecision, namesToRemove: readonly string[]): CheckResponse {
  return {
    // Explicit for the reader: a response without a status allows too.
    status: { code: OK },
    ok_response: {
      headers: overwriteAll([...identityHeadersOf(decision), ...decisionHeadersOf(decision)]),
      headers_to_remove: [...usualNamesToRemove(decision.route.forwardAuthorization), ...namesToRemove],
    },
  };
}

function overwriteAll(headers: ContextHeaders): readonly HeaderValueOption[] {
  return headers.map(overwrite);
}

/** Sets both fields: older Envoys read only the first, newer ones the second. */
function overwrite([key, value]: readonly [string, string]): HeaderValueOption {
  return { header: { key, value }, append: { value: false }, append_action: OVERWRITE_IF_EXISTS_OR_ADD };
}
