/** Runs the vectors against the verification core itself. */

import { otherNamesToRemove, usualNamesToRemove } from '../../src/enforcement/answers/upstream-headers.ts';
import type { Decision } from '../../src/verifier/decision/decide.ts';
import { identityHeadersOf } from '../../src/verifier/decision/identity-headers.ts';
import { factsOfWire } from '../support/fixtures/signed-request.ts';
import { type Answered, wireRequestOf } from '../support/protocol/published-vectors.ts';
import { describeVectors } from './conformance-suite.ts';

describeVectors('in process', async (request, { verifier }) => {
  const facts = factsOfWire(wireRequestOf(request));
  return answerOf(await verifier.check(facts), facts.headers.names());
});

function answerOf(decision: Decision, inbound: readonly string[]): Answered {
  if (decision.kind === 'denied') {
    const { detail, reason, status } = decision.denial;
    // `step` is no part of an answer.
    return { outcome: 'denied', reason, ...(detail === undefined ? {} : { detail }), status } as Answered;
  }
  if (decision.kind === 'observed') throw new Error('no route is observed');
  const removed = [...usualNamesToRemove(decision.route), ...otherNamesToRemove(inbound, decision)];
  return {
    outcome: 'allowed',
    upstream_headers: Object.fromEntries(identityHeadersOf(decision)),
    removed_headers: removed.map((name) => name.toLowerCase()).sort(),
  };
}
