/**
 * Secret files: those that Control generates once with mode 0600 and publishes atomically, and those that are mounted.
 */
import { stat, unlink } from 'node:fs/promises';
import { CliError, systemErrorCode, usageError } from '../program/errors.ts';
import { publishDurably } from './durable-files.ts';
import { readInputBytes } from './input-files.ts';

const MAX_SECRET_BYTES = 64 * 1024;

/** A secret file that Control itself generates. */
export interface SecretFile {
  readonly path: string;
  /** Undefined when the file does not exist. @throws CliError `file_permissions` and as `readInputBytes` */
  read(): Promise<string | undefined>;
  /** Creates the file atomically and durably. @returns false when it already exists @throws CliError `file_not_written` */
  create(content: string): Promise<boolean>;
  remove(): Promise<void>;
}

export function secretFile(path: string): SecretFile {
  return {
    path,
    async read() {
      try {
        return (await readInputBytes(path, { maxBytes: MAX_SECRET_BYTES, secret: true })).toString('utf8');
      } catch (error) {
        if (error instanceof CliError && error.code === 'file_not_found') return undefined;
        throw error;
      }
    },
    create: (content) => createWhole(path, content),
    remove: () => unlink(path),
  };
}

async function createWhole(path: string, content: string): Promise<boolean> {
  try {
    return await publishDurably(path, content, 0o600);
  } catch (error) {
    throw usageError('file_not_written', `${path} cannot be written (${systemErrorCode(error) ?? 'error'})`);
  }
}

/**
 * Reads a mounted secret: its group may have access (Kubernetes' `fsGroup`), others must not. One trailing line break is
 * not part of the secret.
 * @throws CliError `file_permissions`, `file_empty`, or as `readInputBytes`
 */
export async function readMountedSecret(path: string): Promise<string> {
  const content = (await readInputBytes(path, { maxBytes: MAX_SECRET_BYTES, secret: false })).toString(
    'utf8',
  );
  if (((await stat(path)).mode & 0o007) !== 0) {
    throw usageError('file_permissions', `${path} can be read or written by everybody: chmod o-rwx ${path}`);
  }
  const secret = content.replace(/\r?\n$/, '');
  if (secret === '') throw usageError('file_empty', `${path} is empty`);
  return secret;
}

/** Reads a file that contains one bearer token. */

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
  throw usageError('token_file_invalid', `${path} does not contain exactly one token`);
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
