/** Reads a file that contains one bearer token. */
import { CliError, usageError } from './errors.ts';
import { readInputBytes } from './input-files.ts';

const MAX_BYTES = 8192;
const TOKEN = /^[!-~]{1,4096}$/;

/**
 * Expects one token; surrounding white space is ignored. Callers read it for each use, because rotation replaces the file.
 * The file mode is not checked, because a mounted secret may be readable by a group.
 * @throws CliError that names the file and does not contain the token
 */
export async function readBearerTokenFile(path: string): Promise<string> {
  const bytes = await readInputBytes(path, { maxBytes: MAX_BYTES, secret: false });
  const token = bytes.toString('utf8').trim();
  if (TOKEN.test(token)) return token;
  throw usageError('token_file_invalid', `${path} does not hold one token`);
}

/** As {@link readBearerTokenFile}, but undefined when the file is missing or invalid, as during a rotation. */
export async function readBearerTokenFileIfUsable(path: string): Promise<string | undefined> {
  try {
    return await readBearerTokenFile(path);
  } catch (error) {
    if (error instanceof CliError) return undefined;
    throw error;
  }
}
