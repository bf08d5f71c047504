/** Runs the cases over one protocol, after a request that must be allowed, because otherwise denials prove nothing. */

import { CliError } from '../../process/program/errors.ts';
import type { Output } from '../../process/program/output.ts';
import {
  type CaseResult,
  casesFor,
  type Deployment,
  runCase,
  sendAllowed,
} from '../../tools/conformance/public-run.ts';
import type { Protocol } from '../../tools/conformance/wire/conformance-case.ts';

/** @throws CliError `unreachable`, `target_not_allowed` */
export async function runProtocol(
  protocol: Protocol,
  deployment: Deployment,
  output: Output,
): Promise<readonly CaseResult[]> {
  const { answer, isAllowed, noAnswer, replay } = await sendAllowed(protocol, deployment);
  if (noAnswer !== undefined) {
    const hint = noAnswer.includes('certificate') ? '; --ca-file names the CAs to trust' : '';
    throw new CliError('unreachable', 'unreachable', `${protocol}: ${noAnswer}${hint}`);
  }
  if (!isAllowed) {
    const text = `the signed request must be allowed, and answered below 400; over ${protocol} the answer is ${answer}`;
    throw new CliError('refused', 'target_not_allowed', text);
  }
  const cases = casesFor(protocol, deployment);
  const results = [replay];
  for (const one of cases) {
    output.progress(`${protocol}: ${results.length} of ${cases.length + 1} cases`);
    results.push(await runCase(protocol, one, deployment));
  }
  return results;
}
