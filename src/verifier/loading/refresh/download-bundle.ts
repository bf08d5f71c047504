/**
 * Downloads a whole bundle into a folder of the state directory. Files are streamed, checked against the size and
 * SHA-256 that Control named, and synced. `bundle.jws` comes first; of the shards, only those that it names under valid
 * signatures are fetched. A shard that the current base already has is linked instead. The loader verifies the files'
 * content.
 */
import { createHash } from 'node:crypto';
import { constants, createReadStream } from 'node:fs';
import { copyFile, type FileHandle, link, open, unlink } from 'node:fs/promises';
import { join } from 'node:path';
import type { DistributedBundle, DistributedFile } from '../../../bundle/format/distribution-contract.ts';
import { MAX_BUNDLE_BYTES, MAX_SHARD_BYTES } from '../../../bundle/format/documents.ts';
import { BUNDLE_FILE, isShardFile } from '../../../bundle/format/file-names.ts';
import { fileNotWritten } from '../../../bundle/format/files.ts';
import type { IncomingBase } from '../state/state-directory.ts';
import type { ControlConnection } from './control-connection.ts';
import { ControlFailure } from './control-failure.ts';
import { type BundleTrust, namedShards } from './named-shards.ts';

/** Paths of existing files, by the base64url SHA-256 of their content. */
export type KnownFiles = ReadonlyMap<string, string>;

/** One bundle and its shards. */
const MOST_FILES = 101;

export interface DownloadOptions {
  readonly connection: Pick<ControlConnection, 'download'>;
  readonly incoming: IncomingBase;
  readonly known: KnownFiles;
  readonly trust: BundleTrust;
  readonly signal: AbortSignal;
}

/** @throws ControlFailure, BundleError `file_not_written` */
export async function downloadBundle(
  { files }: DistributedBundle,
  options: DownloadOptions,
): Promise<{ readonly bytesFetched: number }> {
  const bundle = checkFiles(files);
  await fetchFile(bundle, options);
  let bytesFetched = bundle.bytes;
  const named = await namedShards(options.incoming.path, options.trust);
  for (const file of files) {
    if (named.get(file.name) !== file.sha256 || (await reuse(file, options))) continue;
    await fetchFile(file, options);
    bytesFetched += file.bytes;
  }
  return { bytesFetched };
}

/** @returns the bundle's own file */
function checkFiles(files: readonly DistributedFile[]): DistributedFile {
  const bundle = files.find(({ name }) => name === BUNDLE_FILE);
  const names = new Set(files.map(({ name }) => name));
  if (names.size !== files.length || files.length > MOST_FILES || bundle === undefined) {
    throw new ControlFailure('control_answer_invalid', 'the files that it names are no bundle');
  }
  for (const { name, bytes } of files) {
    const maxBytes = isShardFile(name) ? MAX_SHARD_BYTES : MAX_BUNDLE_BYTES;
    if (bytes > maxBytes) {
      throw new ControlFailure('control_answer_too_large', `${name} has ${bytes} bytes, at most ${maxBytes}`);
    }
  }
  return bundle;
}

/** Links an existing file where the file system allows it, if its content still matches the hash. */
async function reuse(
  { name, sha256 }: DistributedFile,
  { incoming, known }: DownloadOptions,
): Promise<boolean> {
  const path = known.get(sha256);
  if (path === undefined) return false;
  const target = join(incoming.path, name);
  try {
    await link(path, target).catch(() => copyDurably(path, target));
    if ((await hashOf(target)) === sha256) return true;
    await unlink(target);
  } catch {
    await unlink(target).catch(() => undefined);
  }
  return false;
}

async function copyDurably(path: string, target: string): Promise<void> {
  await copyFile(path, target, constants.COPYFILE_EXCL);
  const handle = await open(target, 'r+');
  await handle.sync().finally(() => handle.close());
}

async function hashOf(path: string): Promise<string> {
  const hash = createHash('sha256');
  for await (const chunk of createReadStream(path)) hash.update(chunk);
  return hash.digest('base64url');
}

async function fetchFile(file: DistributedFile, options: DownloadOptions): Promise<void> {
  const { connection, incoming, signal } = options;
  const handle = await open(join(incoming.path, file.name), 'wx', 0o644).catch((error: unknown) => {
    throw fileNotWritten(error, file.name);
  });
  try {
    const hash = createHash('sha256');
    let received = 0;
    for await (const chunk of connection.download(file, signal)) {
      hash.update(chunk);
      received += chunk.length;
      await write(handle, chunk, file.name);
    }
    if (received !== file.bytes || hash.digest('base64url') !== file.sha256) {
      throw new ControlFailure('control_file_mismatch', `${file.name} is not what Control named`);
    }
    await handle.sync().catch((error: unknown) => {
      throw fileNotWritten(error, file.name);
    });
  } finally {
    await handle.close();
  }
}

async function write(handle: FileHandle, chunk: Buffer, file: string): Promise<void> {
  await handle.writeFile(chunk).catch((error: unknown) => {
    throw fileNotWritten(error, file);
  });
}
