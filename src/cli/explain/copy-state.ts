/** Copies a state directory, because a verifier may be using it and `explain` must not change it. */
import { cp, mkdir, mkdtemp, readlink, rm, symlink } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { basename, join } from 'node:path';
import { CURRENT_LINK } from '../../bundle/format/file-names.ts';
import { systemErrorCode, usageError } from '../../program/errors.ts';
import { MARK_FILE } from '../../verifier/loading/high-water-mark.ts';
import { BASES_FOLDER } from '../../verifier/loading/state/persisted-bundle.ts';

const ATTEMPTS = 5;

/**
 * Copies the base with its steps and freshness statement, and the mark. Repeats this when the base is replaced meanwhile.
 * @returns a directory that the caller removes
 * @throws CliError `bundle_missing`, `state_dir_unusable`
 */
export async function copyStateDirectory(stateDirectory: string): Promise<string> {
  const copy = await mkdtemp(join(tmpdir(), 'proofgate-explain-'));
  for (let attempt = 1; ; attempt++) {
    try {
      await copyBase(stateDirectory, copy);
      return copy;
    } catch (error) {
      const code = systemErrorCode(error);
      if (attempt < ATTEMPTS && code === 'ENOENT' && (await hasBase(stateDirectory))) continue;
      await rm(copy, { recursive: true, force: true });
      if (code === 'ENOENT' || code === 'ENOTDIR' || code === 'EINVAL') {
        const text = `--state-dir ${stateDirectory} keeps no bundle; verifiers that follow Control keep one`;
        throw usageError('bundle_missing', text);
      }
      throw usageError(
        'state_dir_unusable',
        `--state-dir ${stateDirectory} cannot be read (${code ?? 'error'})`,
      );
    }
  }
}

async function hasBase(stateDirectory: string): Promise<boolean> {
  return readlink(join(stateDirectory, CURRENT_LINK)).then(
    () => true,
    () => false,
  );
}

async function copyBase(from: string, to: string): Promise<void> {
  const base = join(BASES_FOLDER, basename(await readlink(join(from, CURRENT_LINK))));
  await mkdir(join(to, BASES_FOLDER), { recursive: true });
  await cp(join(from, base), join(to, base), { recursive: true });
  await cp(join(from, MARK_FILE), join(to, MARK_FILE)).catch((error: unknown) => {
    if (systemErrorCode(error) !== 'ENOENT') throw error;
  });
  await symlink(base, join(to, CURRENT_LINK));
}
