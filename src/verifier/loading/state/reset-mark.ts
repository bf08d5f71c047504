/**
 * Resets a verifier's high-water mark, with the shared mark and the persisted bundle, so that a lower revision can be
 * loaded after an accident. Records what it deletes before it does so.
 * Source: docs/design/bundle.md "Resetting the mark".
 */
import { constants } from 'node:fs';
import { access, open, readdir, readlink, unlink } from 'node:fs/promises';
import { join } from 'node:path';
import { BundleError, bundleError } from '../../../bundle/format/bundle-error.ts';
import type { ChainPosition } from '../../../bundle/format/chain.ts';
import { CURRENT_LINK } from '../../../bundle/format/file-names.ts';
import { fileError, fileNotWritten } from '../../../bundle/format/files.ts';
import { isDirectoryLocked } from '../../../process/files/directory-lock.ts';
import { syncDirectory } from '../../../process/files/durable-files.ts';
import { FileMark, MARK_FILE } from './high-water-mark.ts';
import { BASES_FOLDER } from './persisted-bundle.ts';
import type { SharedMark } from './shared-mark.ts';

/** One line of JSON for each step of each reset. Proofgate never deletes it. */
export const RESET_LOG_FILE = 'mark-resets.jsonl';

/** The previous value: a mark, an unreadable value, or nothing. */
export type ClearedMark = ChainPosition | 'unreadable' | undefined;

export interface ResetMarkOptions {
  readonly stateDirectory: string;
  readonly authSite: string;
  readonly shared?: SharedMark | undefined;
  /** Timeout of each command to the shared mark. */
  readonly sharedTimeoutMs: number;
  /** Who requested the reset, for the record. */
  readonly by: { readonly [member: string]: string | number };
  readonly now: () => Date;
}

export interface ResetMark {
  readonly own: ClearedMark;
  /** `not_asked` when no shared mark is configured. */
  readonly shared: ClearedMark | 'not_asked';
  /** Folder of the persisted bundle; undefined when there was none. */
  readonly keptBundle: string | undefined;
}

/**
 * Deletes the own mark and the persisted bundle last, so that a failed reset can be repeated.
 * @throws BundleError `state_dir_in_use` while a verifier uses the directory, `mark_of_another_site`, `mark_missing`
 * when no
 *   verifier has stored anything there, `file_not_written`; SharedMarkError: then nothing else was deleted
 */
export async function resetMark(options: ResetMarkOptions): Promise<ResetMark> {
  const { authSite, shared, sharedTimeoutMs, stateDirectory } = options;
  await assertFree(stateDirectory);
  const own = await readOwn(options);
  const keptBundle = await readlink(join(stateDirectory, CURRENT_LINK)).catch(() => undefined);
  if (own === undefined && !keptBundle?.startsWith(`${BASES_FOLDER}/`)) await assertOfVerifier(options);
  await record(options, 'begun', { own_mark: markMembers(own), kept_bundle: keptBundle ?? null });
  const sharedMark = shared === undefined ? 'not_asked' : await shared.reset(authSite, sharedTimeoutMs);
  await remove(stateDirectory, CURRENT_LINK);
  await remove(stateDirectory, MARK_FILE);
  await syncDirectory(stateDirectory);
  await record(options, 'done', {
    own_mark: markMembers(own),
    shared_mark: sharedMark === 'not_asked' ? 'not_asked' : markMembers(sharedMark),
    kept_bundle: keptBundle ?? null,
  });
  // A verifier that started meanwhile may have read the mark before it was deleted.
  await assertFree(stateDirectory);
  return { own, shared: sharedMark, keptBundle };
}

async function assertFree(stateDirectory: string): Promise<void> {
  const isInUse = await isDirectoryLocked(stateDirectory).catch((error: unknown) => {
    throw fileError(error, stateDirectory);
  });
  if (!isInUse) return;
  const text = 'a verifier is at work in it; end it, reset the mark, then start it';
  throw bundleError('state_dir_in_use', stateDirectory, '', text);
}

/**
 * A mistyped directory must neither look like a reset nor leave a record among other files.
 * @throws BundleError `mark_missing`
 */
async function assertOfVerifier({ shared, stateDirectory }: ResetMarkOptions): Promise<void> {
  if (await isThere(join(stateDirectory, RESET_LOG_FILE))) return;
  // The directory of a verifier that has loaded nothing, because the shared mark binds it.
  if (shared !== undefined && (await holdsNothingOfOthers(stateDirectory))) return;
  const text = `holds neither a mark nor a kept bundle, and was never reset: is it the verifier's --state-dir?`;
  throw bundleError('mark_missing', stateDirectory, '', text);
}

async function isThere(path: string): Promise<boolean> {
  return access(path).then(
    () => true,
    () => false,
  );
}

/** Files in a verifier's directory before it accepts anything; `lost+found` belongs to the file system. */
const WITHOUT_MARK: ReadonlySet<string> = new Set([BASES_FOLDER, 'lost+found']);

async function holdsNothingOfOthers(stateDirectory: string): Promise<boolean> {
  const names = await readdir(stateDirectory).catch((error: unknown) => {
    throw fileError(error, stateDirectory);
  });
  return names.every((name) => name.startsWith('.') || WITHOUT_MARK.has(name));
}

async function readOwn({ authSite, stateDirectory }: ResetMarkOptions): Promise<ClearedMark> {
  try {
    return await new FileMark({ stateDirectory, authSite }).position();
  } catch (error) {
    if (error instanceof BundleError && error.code === 'mark_corrupt') return 'unreadable';
    throw error;
  }
}

export function markMembers(mark: ClearedMark) {
  if (mark === undefined || mark === 'unreadable') return mark ?? null;
  const { revision, head } = mark;
  return { revision, head };
}

async function record(
  { authSite, by, now, stateDirectory }: ResetMarkOptions,
  phase: 'begun' | 'done',
  what: { readonly [member: string]: unknown },
): Promise<void> {
  const event = { event: 'proofgate.mark_reset', time: now().toISOString(), phase, auth_site: authSite, by };
  const line = `${JSON.stringify({ ...event, ...what })}\n`;
  const flags = constants.O_WRONLY | constants.O_CREAT | constants.O_APPEND | constants.O_NOFOLLOW;
  try {
    const handle = await open(join(stateDirectory, RESET_LOG_FILE), flags, 0o644);
    try {
      await handle.appendFile(line);
      await handle.sync();
    } finally {
      await handle.close();
    }
    await syncDirectory(stateDirectory);
  } catch (error) {
    throw fileNotWritten(error, RESET_LOG_FILE);
  }
}

async function remove(directory: string, name: string): Promise<void> {
  await unlink(join(directory, name)).catch((error: NodeJS.ErrnoException) => {
    if (error.code !== 'ENOENT') throw fileNotWritten(error, name);
  });
}
