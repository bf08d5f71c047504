/**
 * Opens or generates the key to enroll. A command with `--private-key-out` can be rerun after any failure: the state file
 * beside the key shows that `enroll` generated it, and the key is used again. Another Control or policy is accepted while
 * nothing was issued to the key.
 */
import { lstat, unlink } from 'node:fs/promises';
import { readSigningKeyFile } from '../../process/files/key-files.ts';
import { writeNewFile } from '../../process/files/output-files.ts';
import { systemErrorCode, usageError } from '../../process/program/errors.ts';
import { generateSigningKey, type SigningKey } from '../../protocol/signing.ts';
import { type EnrollmentState, type EnrollmentTarget, isSameTarget } from './enrollment-state.ts';
import { EnrollmentStateFile, statePathOf } from './state-file.ts';

export type KeyChoice =
  | { readonly kind: 'use'; readonly file: string }
  /** The key is generated now, or an earlier run generated it: for the same Control and policy, or without enrolling it. */
  | { readonly kind: 'make'; readonly file: string };

/** @throws CliError `file_exists`, `private_key_not_ed25519`, or as `readSigningKeyFile` and `writeNewFile` */
export async function openEnrollmentKey(choice: KeyChoice, target: EnrollmentTarget): Promise<SigningKey> {
  const { file } = choice;
  if (choice.kind === 'use') return readEd25519Key(file);
  switch (await kindOfEntry(file)) {
    case 'something':
      return readOwnKey(file, target);
    case 'empty_file':
      await removeUnfinishedKey(file);
      return makeKey(file, target);
    case 'nothing':
      return makeKey(file, target);
  }
}

async function readEd25519Key(file: string): Promise<SigningKey> {
  const key = await readSigningKeyFile(file);
  if (key.publicKey.algorithm === 'Ed25519') return key;
  throw usageError('private_key_not_ed25519', `${file}: only Ed25519 keys can be enrolled`);
}

async function kindOfEntry(file: string): Promise<'nothing' | 'empty_file' | 'something'> {
  try {
    // Does not follow links: a dangling link counts as something and is not replaced.
    const stats = await lstat(file);
    return stats.isFile() && stats.size === 0 ? 'empty_file' : 'something';
  } catch (error) {
    // Other errors appear when the file is read.
    if (systemErrorCode(error) === 'ENOENT') return 'nothing';
    return 'something';
  }
}

async function readOwnKey(file: string, target: EnrollmentTarget): Promise<SigningKey> {
  const state = await new EnrollmentStateFile(file).load();
  if (state === undefined || !(isUnused(state) || isSameTarget(state.target, target)))
    throw notOursError(file);
  const key = await readEd25519Key(file);
  if (state.keyThumbprint !== key.publicKey.thumbprint) throw notOursError(file);
  return key;
}

/** Removes the empty file of a run that was killed before it wrote the key, so nothing was enrolled with it. */
async function removeUnfinishedKey(file: string): Promise<void> {
  const state = await new EnrollmentStateFile(file).load();
  if (state === undefined || !isUnused(state)) throw notOursError(file);
  await unlink(file);
}

/** Whether nothing was issued to the key and no submission could still succeed. */
function isUnused({ attempt, enrolled, mayBeIssued }: EnrollmentState): boolean {
  return attempt === undefined && enrolled === undefined && mayBeIssued === undefined;
}

/** The error for a file that neither `enroll` nor the agent generated for this Control and policy. */
export function notOursError(file: string) {
  return usageError(
    'file_exists',
    `${file} is there and ${statePathOf(file)} does not say that it was made for this Control and policy: to enroll it, give it as --private-key-file`,
  );
}

/** Writes the state first: without it, the next run could not recognize the key as its own. */
async function makeKey(file: string, target: EnrollmentTarget): Promise<SigningKey> {
  const key = generateSigningKey('Ed25519');
  const keyThumbprint = key.publicKey.thumbprint;
  const state = { keyThumbprint, target, enrolled: undefined, attempt: undefined };
  await new EnrollmentStateFile(file).save(state);
  const content = key.privateKey.export({ type: 'pkcs8', format: 'pem' }).toString();
  await writeNewFile({ path: file, content, mode: 0o600 });
  return key;
}
