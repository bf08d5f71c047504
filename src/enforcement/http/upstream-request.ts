/**
 * Header lines of an allowed request for the upstream or application: the caller's, without credentials and without names that only
 * the verifier may set, then the context headers. Source: docs/design/protocol.md "What upstream receives".
 */

import { type HeaderLine, headerLines } from '../../process/http-proxy/raw-headers.ts';
import type { AllowedDecision } from '../../verifier/decision/decide.ts';
import { identityHeadersOf } from '../../verifier/decision/identity-headers.ts';
import { decisionHeadersOf, otherNamesToRemove, usualNamesToRemove } from '../answers/upstream-headers.ts';

/** Pseudo-header fields of HTTP/2 are left out. */
export function headersForUpstream(
  rawHeaders: readonly string[],
  decision: AllowedDecision,
): readonly HeaderLine[] {
  const context = [...identityHeadersOf(decision), ...decisionHeadersOf(decision)];
  const lines = headerLines(rawHeaders).filter(([name]) => !name.startsWith(':'));
  const removed = new Set(
    [
      ...context.map(([name]) => name),
      ...usualNamesToRemove(decision.route),
      ...otherNamesToRemove(
        lines.map(([name]) => name),
        decision,
      ),
    ].map((name) => name.toLowerCase()),
  );
  return [...lines.filter(([name]) => !removed.has(name.toLowerCase())), ...context];
}
