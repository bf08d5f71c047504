/**
 * Header lines of an allowed request for the upstream or application: the caller's, without credentials and without names that only
 * the verifier may set, then the context headers. Source: docs/design/protocol.md "What upstream receives".
 */

import { type HeaderLine, headerLines } from '../../process/http-proxy/raw-headers.ts';
import type { AllowedDecision, ObservedDecision } from '../../verifier/decision/decide.ts';
import { identityHeadersOf } from '../../verifier/decision/identity-headers.ts';
import {
  decisionHeadersOf,
  namesToRemoveFromObserved,
  observedHeadersOf,
  otherNamesToRemove,
  proofChanges,
  usualNamesToRemove,
} from '../answers/upstream-headers.ts';

/** Pseudo-header fields of HTTP/2 are left out. */
export function headersForUpstream(
  rawHeaders: readonly string[],
  decision: AllowedDecision | ObservedDecision,
): readonly HeaderLine[] {
  const lines = headerLines(rawHeaders).filter(([name]) => !name.startsWith(':'));
  const { context, removed } = changesOf(
    decision,
    lines.map(([name]) => name),
  );
  const gone = new Set([...context.map(([name]) => name), ...removed].map((name) => name.toLowerCase()));
  return [...lines.filter(([name]) => !gone.has(name.toLowerCase())), ...context];
}

function changesOf(decision: AllowedDecision | ObservedDecision, inbound: readonly string[]) {
  if (decision.kind === 'observed') {
    return { context: observedHeadersOf(decision), removed: namesToRemoveFromObserved(inbound, decision) };
  }
  const proof = proofChanges(decision);
  return {
    context: [...identityHeadersOf(decision), ...decisionHeadersOf(decision), ...proof.set],
    removed: [
      ...usualNamesToRemove(decision.route),
      ...proof.removed,
      ...otherNamesToRemove(inbound, decision),
    ],
  };
}
