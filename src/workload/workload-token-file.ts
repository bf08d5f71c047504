/** The workload's projected token, read from where the orchestrator put it. */
import { SecretText } from '../client/enroll/secret-text.ts';
import { CliError, usageError } from '../program/errors.ts';
import { readInputBytes } from '../program/input-files.ts';

/** What Control takes. */
const MAX_TOKEN_CHARACTERS = 16_384;
const MAX_LINE_END_BYTES = 2;
/** Compact JWS (RFC 7515 section 3.1). What it says is for Control to judge. */
const COMPACT_JWS = /^[A-Za-z0-9_-]+\.[A-Za-z0-9_-]+\.[A-Za-z0-9_-]+$/;

/**
 * Through links, as projected volumes have them; the file that was opened must be a regular one. Its mode is the
 * orchestrator's: often others may read it.
 * @throws CliError `workload_token_malformed`, or as `readInputBytes`
 */
export async function readWorkloadToken(path: string): Promise<SecretText> {
  const bytes = await readInputBytes(path, {
    maxBytes: MAX_TOKEN_CHARACTERS + MAX_LINE_END_BYTES,
    secret: false,
  }).catch((error: unknown) => {
    if (!(error instanceof CliError) || error.code !== 'file_not_found') throw error;
    const text = `${path} does not exist: name the workload's projected token with --proof-file`;
    throw usageError('file_not_found', text);
  });
  const text = bytes.toString('latin1').replace(/\r?\n$/, '');
  bytes.fill(0);
  if (text.length > MAX_TOKEN_CHARACTERS || !COMPACT_JWS.test(text)) {
    throw usageError('workload_token_malformed', `${path} holds no token: it must be one compact JWS`);
  }
  return new SecretText(text);
}
