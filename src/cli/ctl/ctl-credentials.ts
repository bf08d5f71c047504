/** Reads the token of an operator command: from `--token-file`, or from the session of `ctl login` at this Control. */
import type { ControlUrl } from '../../client/enroll/control-url.ts';
import { usageError } from '../../program/errors.ts';
import { readInputBytes } from '../../program/input-files.ts';
import type { Environment } from '../../program/output.ts';
import { readSession, sessionPath } from './session-file.ts';

export interface CtlCredentials {
  /** A secret. */
  readonly token: string;
  /** What to do when Control rejects the token. */
  readonly advice: string;
}

export interface CredentialFiles {
  readonly tokenFile: string | undefined;
  readonly sessionFile: string | undefined;
}

const MAX_TOKEN_BYTES = 4096;
const TOKEN = /^[\x21-\x7e]{1,512}$/;

/** @throws CliError `not_signed_in`, `token_file_invalid`, `session_file_invalid`, or an error of the file */
export async function readCredentials(
  files: CredentialFiles,
  url: ControlUrl,
  env: Environment,
): Promise<CtlCredentials> {
  const { tokenFile } = files;
  if (tokenFile !== undefined) {
    const advice = `Control does not know the token in ${tokenFile}, or it is over: give another, or ${howToSignIn(url)}`;
    return { token: await readTokenFile(tokenFile), advice };
  }
  const token = await requireSession(sessionPath(files, url, env), url);
  return { token, advice: `the session is over: ${howToSignIn(url)}` };
}

/** @throws CliError `not_signed_in`, `session_file_invalid`, or an error of the file */
export async function requireSession(path: string, url: ControlUrl): Promise<string> {
  const token = await readSession(path);
  if (token === undefined) {
    throw usageError(
      'not_signed_in',
      `there is no session with ${url.text} in ${path}: ${howToSignIn(url)}, or give --token-file`,
    );
  }
  return token;
}

function howToSignIn({ text }: ControlUrl): string {
  return `run proofgate ctl login --control-url ${text}`;
}

async function readTokenFile(path: string): Promise<string> {
  const bytes = await readInputBytes(path, { maxBytes: MAX_TOKEN_BYTES, secret: true });
  const token = bytes.toString('utf8').trim();
  if (!TOKEN.test(token)) throw usageError('token_file_invalid', `${path} does not hold a token`);
  return token;
}
