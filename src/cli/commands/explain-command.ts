/** `proofgate explain`: explains the decision on a request. Exit codes as of grep(1): 0 allowed, 1 denied, 2 error. */

import { CliError, faultName } from '../../process/program/errors.ts';
import { type CliContext, command } from '../define/define-command.ts';
import { EXPLAIN_SETTINGS, type ExplainSettings } from '../explain/explain-settings.ts';

export const explainCommand = command({
  name: 'explain',
  summary: 'Explain step by step why a request is allowed or denied',
  settings: EXPLAIN_SETTINGS,
  examples: [
    'proofgate explain --bundle /etc/proofgate/bundle --bundle-key signer.jwk.json --request capture.json',
    'proofgate explain --state-dir /var/lib/proofgate --bundle-key signer.jwk.json --request - --output json',
    'proofgate explain --decision-id 5d9279f4-3c12-4ca5-8bc3-42ef88789323 --audit-file /var/log/proofgate/audit.jsonl',
  ],
  run: ({ settings }, context) => explain(settings, context),
});

const DENIED = 1;

async function explain(settings: ExplainSettings, { output }: CliContext): Promise<void> {
  const { explainInput } = await import('../explain/explain-capture.ts');
  const { lines, members, note, outcome } = await explainInput(settings).catch(async (error: unknown) => {
    throw await cannotExplain(error);
  });
  if (note !== undefined) output.note(note, NOTES[note]);
  output.result(lines, members);
  if (outcome === 'denied') output.endWith(DENIED);
}

const NOTES = {
  signatures_not_checked: 'signatures were not checked: the result is only as trustworthy as the files',
  explained_by_verifier:
    'this is the explanation that the verifier wrote: another needs a capture with credentials, and --bundle or --state-dir',
} as const;

/**
 * Every error exits with 2, because 1 means a denial. The message of an unexpected error is omitted, because it could quote
 * the capture.
 */
async function cannotExplain(error: unknown): Promise<CliError> {
  const { fromLibraryError } = await import('../errors/library-errors.ts');
  const known = fromLibraryError(error);
  if (known.kind !== 'internal') return new CliError('usage', known.code, known.message);
  const kind = faultName(error);
  const cause = /^[A-Za-z0-9_]{1,40}$/.test(kind) ? kind : 'unknown';
  return new CliError('usage', 'internal', `a fault of Proofgate, not of the request: ${cause}`);
}
