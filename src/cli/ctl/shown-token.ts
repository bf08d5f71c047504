/** Hands over a token that Control shows once: in a file for its owner alone, or on stdout. */
import { CliError } from '../../program/errors.ts';
import type { Output } from '../../program/output.ts';
import { replaceFile, requireReplaceable } from '../../program/output-files.ts';
import { optional, text } from '../../program/settings.ts';
import type { JsonObject } from '../../protocol/strict-json.ts';
import type { CtlResult } from './ctl-connection.ts';

export const TOKEN_OUT = {
  out: optional(
    text('--out <file>', 'where the token is written, mode 0600; replaces the file; without it, to stdout'),
  ),
};

/**
 * @param issue asks Control for the token
 * @throws CliError `token_lost`, and those of files
 */
export async function shownToken(
  issue: () => Promise<JsonObject>,
  {
    idMember,
    out,
    output,
  }: { readonly idMember: string; readonly out: string | undefined; readonly output: Output },
): Promise<CtlResult> {
  // A file that cannot be written must fail before there is a token.
  if (out !== undefined) await requireReplaceable(out);
  const body = await issue();
  const { token, ...shown } = body;
  const id = String(body[idMember]);
  if (typeof token !== 'string') {
    throw new CliError('refused', 'token_lost', `the answer with the token of ${id} was lost: rotate it`);
  }
  if (out !== undefined) {
    await replaceFile({ path: out, content: `${token}\n`, mode: 0o600 });
    return { lines: [`token of ${id} is in ${out}`], object: shown };
  }
  output.note('shown_once', `${id} has this token, which is not shown again:`);
  return { lines: [token], object: body };
}
