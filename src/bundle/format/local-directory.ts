/**
 * A directory with a bundle's files. One load reads all files from one resolved directory, so that a swap in between
 * cannot mix two versions. Kubernetes swaps a volume's content by renaming the link `..data`.
 * Source: docs/design/bundle.md "Life in the verifier".
 */
import { readdir, realpath } from 'node:fs/promises';
import { join } from 'node:path';
import { fileFingerprint } from '../../process/files/file-fingerprint.ts';
import { BundleError, bundleError } from './bundle-error.ts';
import { DOCUMENTS, MAX_SHARD_BYTES } from './documents.ts';
import {
  BUNDLE_FILE,
  FRESHNESS_FILE,
  isShardFile,
  readStepName,
  type StepKind,
  type StepName,
} from './file-names.ts';
import { fileError, openRegularFile, readChunks, readRegularFile } from './files.ts';

/** Kubernetes' link to the current version of a volume. */
const DATA_LINK = '..data';

export class LocalDirectory {
  readonly path: string;

  constructor(path: string) {
    this.path = path;
  }

  /**
   * Calls `read` with the resolved directory, and again if the directory was replaced meanwhile.
   * @throws BundleError `file_missing`, `file_unreadable`, and whatever `read` throws
   */
  async read<T>(read: (files: ResolvedDirectory) => Promise<T>): Promise<T> {
    const resolved = await this.resolve();
    try {
      return await read(new ResolvedDirectory(resolved));
    } catch (error) {
      const isAboutFiles = error instanceof BundleError && error.code.startsWith('file_');
      const now = isAboutFiles ? await this.resolve() : resolved;
      if (now === resolved) throw error;
      return await read(new ResolvedDirectory(now));
    }
  }

  /** The current real path of the files. */
  async resolve(): Promise<string> {
    try {
      return await realpath(join(this.path, DATA_LINK)).catch(() => realpath(this.path));
    } catch {
      throw bundleError('file_missing', this.path, '', 'no such directory');
    }
  }
}

/** A delta or link in a directory, not read yet. */
export interface FoundStepFile extends StepName {
  /** Changes when the file is replaced or rewritten. */
  readonly fingerprint: string;
}

/** A shard to be streamed, twice, because it may be too large to hold in memory. */
export interface ShardFile {
  /** Starts at the beginning each time. */
  chunks(): AsyncIterable<Buffer>;
  close(): Promise<void>;
}

/** One version of the directory. */
export class ResolvedDirectory {
  readonly path: string;

  constructor(path: string) {
    this.path = path;
  }

  readBundle(): Promise<Buffer> {
    return readRegularFile({ directory: this.path, file: BUNDLE_FILE, maxBytes: DOCUMENTS.bundle.maxBytes });
  }

  /** Undefined when there is none: the bundle is then as fresh as its `issued_at`. */
  async readFreshness(): Promise<Buffer | undefined> {
    try {
      return await readRegularFile({
        directory: this.path,
        file: FRESHNESS_FILE,
        maxBytes: DOCUMENTS.freshness.maxBytes,
      });
    } catch (error) {
      if (error instanceof BundleError && error.code === 'file_missing') return undefined;
      throw error;
    }
  }

  readStep(file: string, kind: StepKind): Promise<Buffer> {
    const maxBytes = DOCUMENTS[kind].maxBytes;
    return readRegularFile({ directory: this.path, file, maxBytes });
  }

  /** Deltas and links after a revision, lowest first. */
  async stepsAfter(revision: number): Promise<readonly FoundStepFile[]> {
    const names = await readdir(this.path).catch((error: unknown) => {
      throw fileError(error, BUNDLE_FILE);
    });
    const found: FoundStepFile[] = [];
    for (const name of names) {
      const step = readStepName(name);
      if (step === undefined || step.revision <= revision) continue;
      const fingerprint = await this.#fingerprintOf(name).catch((error: unknown) => {
        throw fileError(error, name);
      });
      found.push({ ...step, fingerprint });
    }
    return found.sort((a, b) => a.revision - b.revision || (a.name < b.name ? -1 : 1));
  }

  /** @param file the name in the bundle; its schema allows no separators */
  async readShard(file: string): Promise<ShardFile> {
    const maxBytes = MAX_SHARD_BYTES;
    const { handle } = await openRegularFile({ directory: this.path, file, maxBytes });
    return { chunks: () => readChunks(handle, file, maxBytes), close: () => handle.close() };
  }

  /**
   * Changes when the bundle or a shard is replaced or rewritten. Only a hint to look again: the content decides what is
   * loaded.
   */
  async bundleFingerprint(): Promise<string> {
    try {
      const names = (await readdir(this.path)).filter((name) => isShardFile(name)).sort();
      const parts = await Promise.all([BUNDLE_FILE, ...names].map((name) => this.#fingerprintOf(name)));
      return parts.join('\n');
    } catch (error) {
      throw fileError(error, BUNDLE_FILE);
    }
  }

  async #fingerprintOf(file: string): Promise<string> {
    return `${file} ${await fileFingerprint(join(this.path, file))}`;
  }
}
