/** The result of `proofgate conformance`: a summary for each protocol, and a line for each failure. */

import { EXIT_CODES } from '../../process/program/errors.ts';
import type { Output } from '../../process/program/output.ts';
import { type CaseResult, FAILURES, type Verdict } from '../../tools/conformance/public-run.ts';
import type { Protocol } from '../../tools/conformance/wire/conformance-case.ts';

export function showResults(
  results: readonly CaseResult[],
  protocols: readonly Protocol[],
  output: Output,
): void {
  const failures = results.filter(({ verdict }) => FAILURES.has(verdict));
  const summaries = protocols.map((protocol) =>
    summaryOf(
      protocol,
      results.filter((result) => result.protocol === protocol),
    ),
  );
  const verdict =
    failures.length === 0
      ? 'conforms: every case was denied'
      : `does not conform: ${failures.length} failures`;
  output.result([...failures.map(lineOf), ...summaries, verdict], {
    conforms: failures.length === 0,
    cases: results.length,
    failures: failures.length,
    results,
  });
  if (failures.length > 0) output.endWith(EXIT_CODES.refused);
}

const FAILURE_TEXT: { readonly [V in Verdict]?: string } = {
  allowed: 'was not denied',
  unclear: 'got an error that is not from Proofgate, perhaps from the API',
  unchallenged: 'was denied without the headers that say what the route requires',
  silent: 'got no answer in time',
};

function lineOf({ answer, expected, name, protocol, verdict }: CaseResult): string {
  const demand =
    expected === 'malformed' ? 'must be rejected as malformed' : `must be denied with ${expected}`;
  return `FAIL ${protocol} ${name.replace(/^HTTP\/2: /, '')}: ${FAILURE_TEXT[verdict]} (${answer}); ${demand}`;
}

function summaryOf(protocol: Protocol, results: readonly CaseResult[]): string {
  const count = (verdict: Verdict) => results.filter((result) => result.verdict === verdict).length;
  const failed = results.filter(({ verdict }) => FAILURES.has(verdict)).length;
  return (
    `${protocol}: ${results.length} cases, ${count('as_expected')} denied as expected, ` +
    `${count('otherwise')} for another reason, ${count('rejected')} rejected as HTTP, ${failed} failed`
  );
}
