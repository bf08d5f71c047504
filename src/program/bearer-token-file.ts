/** A file that holds one bearer token. */
import { CliError, usageError } from './errors.ts';
import { readInputBytes } from './input-files.ts';

const MAX_BYTES = 8192;
const TOKEN = /^[!-~]{1,4096}$/;

/**
 * One line, white space around it ignored. Meant to be read for each use: rotation replaces the file. A mounted secret may be
 * readable by a group, so its mode is not judged.
 * @throws CliError that names the file and says nothing of what it holds
 */
export async function readBearerTokenFile(path: string): Promise<string> {
  const bytes = await readInputBytes(path, { maxBytes: MAX_BYTES, secret: false });
  const token = bytes.toString('utf8').trim();
  if (TOKEN.test(token)) return token;
  throw usageError('token_file_invalid', `${path} does not hold one token`);
}

/** The same where the token may not be there now and then. */
export async function readBearerTokenFileIfUsable(path: string): Promise<string | undefined> {
  try {
    return await readBearerTokenFile(path);
  } catch (error) {
    if (error instanceof CliError) return undefined;
    throw error;
  }
}
