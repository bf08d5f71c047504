/** Reads the token of an operator command: from `--token-file`, or from the session of `ctl login` at this Control. */
import { mkdir, rm } from 'node:fs/promises';
import { dirname, isAbsolute, join } from 'node:path';
import type { ControlUrl } from '../../caller/enroll/control-url.ts';
import { readInputBytes } from '../../process/files/input-files.ts';
import { replaceFile } from '../../process/files/output-files.ts';
import { CliError, systemErrorCode, usageError } from '../../process/program/errors.ts';
import type { Environment } from '../../process/program/output.ts';
import { isSessionToken } from './client/operator-sign-in.ts';

export interface CtlCredentials {
  /** A secret. */
  readonly token: string;
  /** What to do when Control rejects the token. */
  readonly advice: string;
}

interface CredentialFiles {
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
    const advice = `Control does not know the token in ${tokenFile}, or it has expired: give another, or ${howToSignIn(url)}`;
    return { token: await readTokenFile(tokenFile), advice };
  }
  const token = await requireSession(sessionPath(files, url, env), url);
  return { token, advice: `the session has expired: ${howToSignIn(url)}` };
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
  if (!TOKEN.test(token)) throw usageError('token_file_invalid', `${path} contains no token`);
  return token;
}

const MAX_SESSION_BYTES = 4096;

/**
 * The session file of `ctl login`: one for each Control, which contains only the token and only its owner can read.
 * Source: docs/operate/ctl.md "Signing in"; XDG Base Directory Specification.
 * @throws CliError `session_file_required` when the environment names no directory of the user
 */
export function sessionPath(
  { sessionFile }: { readonly sessionFile: string | undefined },
  url: ControlUrl,
  env: Environment,
): string {
  return sessionFile ?? join(configDirectory(env), 'proofgate', `session-${nameOf(url)}.token`);
}

/** The XDG specification requires ignoring relative paths. */
function configDirectory({ XDG_CONFIG_HOME: configHome, HOME: home }: Environment): string {
  if (configHome !== undefined && isAbsolute(configHome)) return configHome;
  if (home !== undefined && isAbsolute(home)) return join(home, '.config');
  throw usageError(
    'session_file_required',
    'neither XDG_CONFIG_HOME nor HOME says where sessions are kept: give --session-file or --token-file',
  );
}

/** Another port, path or scheme is another Control, which must not get this one's token. */
function nameOf({ text }: ControlUrl): string {
  return encodeURIComponent(text.replace(/^https:\/\//, ''));
}

/**
 * Undefined when the file does not exist.
 * @throws CliError `session_file_invalid`, or an error of the file
 */
async function readSession(path: string): Promise<string | undefined> {
  let bytes: Buffer;
  try {
    bytes = await readInputBytes(path, { maxBytes: MAX_SESSION_BYTES, secret: true });
  } catch (error) {
    if (error instanceof CliError && error.code === 'file_not_found') return undefined;
    throw error;
  }
  const token = bytes.toString('utf8').trim();
  if (!isSessionToken(token)) throw usageError('session_file_invalid', `${path} contains no session`);
  return token;
}

/**
 * Checks the path before the sign-in, because a session that cannot be stored is lost. Never replaces a file of another kind.
 * Creates missing directories with mode 0700.
 * @throws CliError `session_file_invalid`, `file_not_written`, or an error of the file
 */
export async function prepareSessionFile(path: string): Promise<void> {
  try {
    await mkdir(dirname(path), { recursive: true, mode: 0o700 });
  } catch (error) {
    throw notWritten(dirname(path), error);
  }
  await readSession(path);
}

/** Writes the file atomically with mode 0600. @throws CliError as `replaceFile` */
export async function writeSession(path: string, token: string): Promise<void> {
  await replaceFile({ path, content: `${token}\n`, mode: 0o600 });
}

/** @throws CliError `file_not_written` */
export async function removeSession(path: string): Promise<void> {
  try {
    await rm(path, { force: true });
  } catch (error) {
    throw notWritten(path, error);
  }
}

function notWritten(path: string, error: unknown): CliError {
  return usageError('file_not_written', `${path} cannot be written (${systemErrorCode(error) ?? 'unknown'})`);
}
