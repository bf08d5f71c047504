/** Hands over a token that Control shows once: in a file for its owner alone, or on stdout. */

import { replaceFile, requireReplaceable } from '../../process/files/output-files.ts';
import { CliError } from '../../process/program/errors.ts';
import type { Output } from '../../process/program/output.ts';
import { optional, text } from '../../process/settings/settings.ts';
import type { Schemas } from './client/control-api.ts';
import type { CtlResult } from './ctl-connection.ts';

export const TOKEN_OUT = {
  out: optional(
    text('--out <file>', 'where the token is written, mode 0600; replaces the file; without it, to stdout'),
  ),
};

type Issued = Schemas['AccessTokenWithSecret'] | Schemas['TargetWithToken'];

/**
 * @param issue asks Control for the token
 * @param kind as in `proofgate ctl rotate-<kind>`
 * @throws CliError `token_lost`, those of files before the token is issued, and those of `issue`
 */
export async function issueToken(
  issue: () => Promise<Issued>,
  kind: 'access-token' | 'target-token',
  out: string | undefined,
  output: Output,
): Promise<CtlResult> {
  // A file that cannot be written must fail before there is a token.
  if (out !== undefined) await requireReplaceable(out);
  const body = await issue();
  const { token, ...shown } = body;
  const id = 'target_id' in body ? body.target_id : body.access_token_id;
  const lost = (why: string) => {
    const text = `a token of ${id} was issued, and is lost: ${why}; issue another: proofgate ctl rotate-${kind} ${id} --out FILE`;
    return new CliError('refused', 'token_lost', text);
  };
  if (token === undefined) throw lost('it was in an answer that did not arrive');
  if (out !== undefined) {
    await replaceFile({ path: out, content: `${token}\n`, mode: 0o600 }).catch((error: unknown) => {
      throw error instanceof CliError ? lost(error.message) : error;
    });
    return { lines: [`token of ${id} is in ${out}`], object: shown };
  }
  output.note('shown_once', `${id} has this token, which is not shown again:`);
  return { lines: [token], object: body };
}
