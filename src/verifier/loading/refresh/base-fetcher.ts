/**
 * Fetches whole bundles from Control: at once when nothing else continues the loaded bundle, and in the background when
 * too many steps have accumulated on the persisted base. Files are streamed into a folder of the state directory, checked
 * against the size and SHA-256 that Control named, and synced. `bundle.jws` comes first; of the shards, only those that it
 * names under valid signatures are fetched. A shard that the current base already has is linked instead. The loader verifies
 * the files' content.
 * Source: docs/design/bundle.md "Distribution".
 */
import { createHash } from 'node:crypto';
import { constants, createReadStream } from 'node:fs';
import { copyFile, type FileHandle, link, open, unlink } from 'node:fs/promises';
import { join } from 'node:path';
import { BundleError } from '../../../bundle/format/bundle-error.ts';
import type { DistributedBundle, DistributedFile } from '../../../bundle/format/distribution-contract.ts';
import { DOCUMENTS, MAX_SHARD_BYTES } from '../../../bundle/format/documents.ts';
import { BUNDLE_FILE, isShardFile } from '../../../bundle/format/file-names.ts';
import { fileNotWritten } from '../../../bundle/format/files.ts';
import type { ResolvedDirectory } from '../../../bundle/format/local-directory.ts';
import type { StepDocument } from '../../../bundle/format/open-document.ts';
import type { Backoff } from '../../../process/program/backoff.ts';
import type { BundleLoader } from '../bundle-loader.ts';
import { PASSING } from '../problem-record.ts';
import type { PersistedBundle } from '../state/persisted-bundle.ts';
import type { ControlConnection } from './control-connection.ts';
import { ControlFailure, retryAfterOf } from './control-failure.ts';

export interface BaseFetcherOptions {
  readonly connection: ControlConnection;
  readonly loader: BundleLoader;
  readonly persisted: PersistedBundle;
  readonly signal: AbortSignal;
  readonly backoff: Backoff;
  /** Resolves after the time, or at once when aborted. */
  readonly sleep: (waitMs: number, signal: AbortSignal) => Promise<void>;
  readonly onFailure: (error: unknown) => void;
  readonly onFetched: (revision: number, bytesFetched: number) => void;
}

/** One bundle and its shards. */
const MOST_FILES = 101;

export class BaseFetcher {
  readonly #options: BaseFetcherOptions;
  #fetching: Promise<void> | undefined;
  /** Head of a base that could not replace the current one and is not retried. */
  #unfit: string | undefined;

  constructor(options: BaseFetcherOptions) {
    this.#options = options;
  }

  /**
   * Fetches a whole bundle and loads it.
   * @returns why it was rejected
   * @throws ControlFailure, BundleError when it could not be fetched or persisted
   */
  async replace(whole: DistributedBundle, steps: readonly StepDocument[]): Promise<BundleError | undefined> {
    return this.#fetch(whole, async (incoming) => this.#options.loader.replace(incoming, steps));
  }

  /** Returns at once. Fetches a newer base if that is worthwhile and no fetch is in progress. */
  offer(whole: DistributedBundle | undefined): void {
    const { persisted } = this.#options;
    const isNewer =
      whole !== undefined && whole.revision > (persisted.base?.revision ?? Number.MAX_SAFE_INTEGER);
    if (!isNewer || !persisted.isLong || whole.head === this.#unfit) return;
    this.#fetching ??= this.#rebase(whole).finally(() => {
      this.#fetching = undefined;
    });
  }

  /** Returns when no fetch is in progress. */
  async idle(): Promise<void> {
    await this.#fetching;
  }

  async #rebase(whole: DistributedBundle): Promise<void> {
    const { loader, backoff, onFailure, onFetched, signal, sleep } = this.#options;
    try {
      await this.#fetch(whole, async (incoming, bytesFetched) => {
        if (await loader.rebase(incoming)) onFetched(whole.revision, bytesFetched);
        else this.#unfit = whole.head;
      });
      backoff.reset();
    } catch (error) {
      if (signal.aborted) return;
      onFailure(error);
      if (error instanceof BundleError && !PASSING.has(error.code)) this.#unfit = whole.head;
      // The next response repeats the offer; this delays the next attempt.
      await sleep(backoff.failed(retryAfterOf(error)), signal);
    }
  }

  async #fetch<T>(
    whole: DistributedBundle,
    use: (incoming: ResolvedDirectory, bytesFetched: number) => Promise<T>,
  ): Promise<T> {
    const { persisted } = this.#options;
    const incoming = await persisted.newBase();
    try {
      return await use(incoming, await this.#download(whole.files, incoming));
    } finally {
      // A base that has become current was moved, so this removes only a failed one.
      await persisted.discard(incoming);
    }
  }

  /** @returns the number of bytes fetched @throws ControlFailure, BundleError `file_not_written` */
  async #download(files: readonly DistributedFile[], incoming: ResolvedDirectory): Promise<number> {
    const bundle = checkFiles(files);
    const known = this.#options.persisted.shardPaths;
    await this.#fetchFile(bundle, incoming);
    let bytesFetched = bundle.bytes;
    const named = await this.#namedShards(incoming);
    for (const file of files) {
      if (named.get(file.name) !== file.sha256) continue;
      if (await reuse(known.get(file.sha256), join(incoming.path, file.name), file.sha256)) continue;
      await this.#fetchFile(file, incoming);
      bytesFetched += file.bytes;
    }
    return bytesFetched;
  }

  /**
   * A server that impersonates Control may offer a hundred large files, but has no key that signs a bundle.
   * @returns SHA-256 by name; empty for an invalid bundle, whose error the loader reports
   */
  async #namedShards(incoming: ResolvedDirectory): Promise<ReadonlyMap<string, string>> {
    const bytes = await incoming.readBundle();
    try {
      const { content } = await this.#options.loader.open(bytes);
      return new Map((content.key_shards ?? []).map(({ file, sha256 }) => [file, sha256]));
    } catch (error) {
      if (error instanceof BundleError) return new Map();
      throw error;
    }
  }

  async #fetchFile(file: DistributedFile, incoming: ResolvedDirectory): Promise<void> {
    const { connection, signal } = this.#options;
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
}

/** @returns the bundle's own file */
function checkFiles(files: readonly DistributedFile[]): DistributedFile {
  const bundle = files.find(({ name }) => name === BUNDLE_FILE);
  const names = new Set(files.map(({ name }) => name));
  if (names.size !== files.length || files.length > MOST_FILES || bundle === undefined) {
    throw new ControlFailure('control_answer_invalid', 'the files that it names are no bundle');
  }
  for (const { name, bytes } of files) {
    const maxBytes = isShardFile(name) ? MAX_SHARD_BYTES : DOCUMENTS.bundle.maxBytes;
    if (bytes > maxBytes) {
      throw new ControlFailure('control_answer_too_large', `${name} has ${bytes} bytes, at most ${maxBytes}`);
    }
  }
  return bundle;
}

/** Links an existing file where the file system allows it, if its content still matches the hash. */
async function reuse(path: string | undefined, target: string, sha256: string): Promise<boolean> {
  if (path === undefined) return false;
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

async function write(handle: FileHandle, chunk: Buffer, file: string): Promise<void> {
  await handle.writeFile(chunk).catch((error: unknown) => {
    throw fileNotWritten(error, file);
  });
}
