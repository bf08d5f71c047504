/** Reads the workload's projected token. */
import { SecretText } from '../client/enroll/secret-text.ts';
import { CliError, usageError } from '../program/errors.ts';
import { readInputBytes } from '../program/input-files.ts';

/** Maximum length that Control accepts. */
const MAX_TOKEN_CHARACTERS = 16_384;
const MAX_LINE_END_BYTES = 2;
/** Compact JWS (RFC 7515 section 3.1). Control verifies its content. */
const COMPACT_JWS = /^[A-Za-z0-9_-]+\.[A-Za-z0-9_-]+\.[A-Za-z0-9_-]+$/;

/**
 * Follows symbolic links, which projected volumes use; the opened file must be regular. The mode is not checked, because
 * the orchestrator sets it and often allows others to read.
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
