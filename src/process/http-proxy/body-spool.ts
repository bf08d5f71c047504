/**
 * Stores a bound body until it is verified and forwarded: in memory, and above 64 KiB in an unlinked temporary file. It
 * hashes the file's bytes as they arrive, so that a long body is never completely in memory.
 */
import { createHash, randomUUID } from 'node:crypto';
import { constants, type FileHandle, open, unlink } from 'node:fs/promises';
import { join } from 'node:path';
import { Readable } from 'node:stream';
import type { HeldSpace } from '../request-body/body-space.ts';
import { GrowingBuffer } from '../request-body/growing-buffer.ts';

/** Maximum size of a body in memory; longer bodies are written to a file. */
export const MEMORY_BYTES = 65_536;

/** Thrown when the file cannot be created or written, or the limit for all bodies is exhausted. */
export class SpoolError extends Error {
  override readonly name = 'SpoolError';
}

/** A complete body. */
export type SpooledBody =
  | { readonly kind: 'exact'; readonly bytes: Uint8Array }
  /** Only its base64url SHA-256 is in memory. Never empty. */
  | { readonly kind: 'hashed'; readonly sha256: string };

export interface SpoolOptions {
  /** Directory of the temporary file. */
  readonly directory: string;
  /** Disk space of the file. */
  readonly held: HeldSpace;
}

export class BodySpool {
  readonly #options: SpoolOptions;
  readonly #hash = createHash('sha256');
  #memory = new GrowingBuffer();
  #file: FileHandle | undefined;
  #reading: Readable | undefined;
  #lengthBytes = 0;

  constructor(options: SpoolOptions) {
    this.#options = options;
  }

  get lengthBytes(): number {
    return this.#lengthBytes;
  }

  /** @returns false when the chunk does not fit into memory, so that the caller must call {@link spill} first */
  keep(chunk: Buffer): boolean {
    if (this.#file !== undefined || this.#lengthBytes + chunk.length > MEMORY_BYTES) return false;
    this.#lengthBytes += chunk.length;
    this.#memory.append(chunk);
    return true;
  }

  /** Writes the chunk to the file, which it creates at the first call. @throws SpoolError */
  async spill(chunk: Buffer): Promise<void> {
    this.#lengthBytes += chunk.length;
    try {
      if (!this.#options.held.atLeast(this.#lengthBytes)) throw new Error('no room for the body');
      this.#file ??= await this.#createFile();
      await this.#write(this.#file, chunk);
    } catch (error) {
      throw new SpoolError('the temporary file cannot be written', { cause: error });
    }
  }

  /** The received body, after its end. */
  state(): SpooledBody {
    if (this.#file === undefined) return { kind: 'exact', bytes: this.#memory.bytes() };
    return { kind: 'hashed', sha256: this.#hash.digest('base64url') };
  }

  /** The same bytes for the upstream, each time; undefined for an empty body. */
  forUpstream(): Buffer | Readable | undefined {
    if (this.#lengthBytes === 0) return undefined;
    if (this.#file === undefined) return this.#memory.bytes();
    // A stream of the file itself would close it when an answer ends the stream early, and the body could not be sent again.
    this.#reading = Readable.from(readFile(this.#file, this.#lengthBytes), { objectMode: false });
    return this.#reading;
  }

  /** Frees memory and file. */
  async discard(): Promise<void> {
    this.#memory = new GrowingBuffer();
    const file = this.#file;
    this.#file = undefined;
    this.#reading?.destroy();
    // Waits for a read that has begun.
    await file?.close().catch(() => undefined);
    this.#options.held.release();
  }

  async #createFile(): Promise<FileHandle> {
    const path = join(this.#options.directory, `proofgate-body-${randomUUID()}`);
    const file = await open(path, constants.O_RDWR | constants.O_CREAT | constants.O_EXCL, 0o600);
    try {
      // A file without a name cannot be opened by others, and disappears when the process ends.
      await unlink(path);
      await this.#write(file, this.#memory.bytes());
    } catch (error) {
      await file.close().catch(() => undefined);
      throw error;
    }
    this.#memory = new GrowingBuffer();
    return file;
  }

  async #write(file: FileHandle, chunk: Buffer): Promise<void> {
    this.#hash.update(chunk);
    let offset = 0;
    while (offset < chunk.length) {
      const { bytesWritten } = await file.write(chunk, offset);
      offset += bytesWritten;
    }
  }
}

async function* readFile(file: FileHandle, lengthBytes: number): AsyncGenerator<Buffer> {
  for (let offset = 0; offset < lengthBytes; ) {
    const chunk = Buffer.allocUnsafe(Math.min(MEMORY_BYTES, lengthBytes - offset));
    const { bytesRead } = await file.read(chunk, 0, chunk.length, offset);
    if (bytesRead === 0) throw new SpoolError('the temporary file is shorter than the body');
    offset += bytesRead;
    yield chunk.subarray(0, bytesRead);
  }
}
