/**
 * Persists the fence of the in-memory store: the issued-at up to which proofs may have been consumed before a restart.
 * A run consumes only proofs issued at or before a moment that is already on disk. A start that rejects proofs issued
 * up to there rejects all of them, whatever happened to clock and skew in between. The moment is written a few seconds
 * ahead, never while a request waits.
 * Source: docs/design/protocol.md "Replay".
 */

import { join } from 'node:path';
import { BundleError } from '../../bundle/format/bundle-error.ts';
import { readRegularFile, writeFileAtomically } from '../../bundle/format/files.ts';
import { removeTemporaries } from '../../process/files/durable-files.ts';
import { hasExactMembers, isJsonObject, parseStrictJson } from '../../protocol/strict-json.ts';

export const FENCE_FILE = 'replay-fence.json';
const FENCE_FORMAT = 'proofgate.replay-fence/v1';
const MAX_FENCE_BYTES = 4096;

export interface PersistedFence {
  /** Previous runs may have consumed proofs issued up to this moment, seconds since the epoch; 0 before the first run. */
  readonly startsThroughSeconds: number;
  /** Proofs issued up to this moment may be consumed now, because a later start would reject them. */
  readonly throughSeconds: number;
  /** One line that says why the fence cannot be raised. */
  readonly problem: string | undefined;
  /** Moves `throughSeconds`: down at once, up as soon as it is on disk. Returns at once, never throws. */
  keep(throughSeconds: number): void;
  /** Final fence of this run: nothing issued after it was consumed. Never rejects. */
  close(throughSeconds: number): Promise<void>;
}

/** Never rejects. If the file cannot be read, no proof may be consumed, and `problem` says why. */
export async function openPersistedFence(stateDirectory: string): Promise<PersistedFence> {
  await removeTemporaries(join(stateDirectory, FENCE_FILE));
  try {
    return new FileFence(stateDirectory, await readFence(stateDirectory));
  } catch (error) {
    const why = error instanceof BundleError ? error.message : `${FENCE_FILE}: not a fence of ours`;
    return new UnreadableFence(`${why}; restore it, or remove it once no proof from before can be valid`);
  }
}

class FileFence implements PersistedFence {
  readonly startsThroughSeconds: number;
  readonly #directory: string;
  #throughSeconds: number;
  #targetSeconds: number;
  #writtenSeconds: number | undefined;
  #writing: Promise<void> | undefined;
  #problem: string | undefined;

  constructor(directory: string, startsThroughSeconds: number) {
    this.#directory = directory;
    this.startsThroughSeconds = startsThroughSeconds;
    this.#throughSeconds = startsThroughSeconds;
    this.#targetSeconds = startsThroughSeconds;
  }

  get throughSeconds(): number {
    return this.#throughSeconds;
  }

  get problem(): string | undefined {
    return this.#problem;
  }

  keep(throughSeconds: number): void {
    const seconds = Math.max(throughSeconds, this.startsThroughSeconds);
    this.#targetSeconds = seconds;
    // Never above what is on disk, whichever of the two writes that is.
    this.#throughSeconds = Math.min(this.#throughSeconds, seconds);
    this.#writing ??= this.#write().finally(() => {
      this.#writing = undefined;
    });
  }

  async close(throughSeconds: number): Promise<void> {
    await this.#writing;
    this.keep(throughSeconds);
    await this.#writing;
  }

  async #write(): Promise<void> {
    try {
      while (this.#writtenSeconds !== this.#targetSeconds) {
        const seconds = this.#targetSeconds;
        // While the write is pending or failed, either value may be on disk.
        this.#writtenSeconds = undefined;
        await writeFence(this.#directory, seconds);
        this.#writtenSeconds = seconds;
        this.#throughSeconds = Math.min(seconds, this.#targetSeconds);
      }
      this.#problem = undefined;
    } catch (error) {
      this.#problem = error instanceof BundleError ? error.message : `${FENCE_FILE}: cannot be written`;
    }
  }
}

class UnreadableFence implements PersistedFence {
  readonly startsThroughSeconds = Number.POSITIVE_INFINITY;
  readonly throughSeconds = Number.NEGATIVE_INFINITY;
  readonly problem: string;

  constructor(problem: string) {
    this.problem = problem;
  }

  keep(): void {}

  async close(): Promise<void> {}
}

async function readFence(directory: string): Promise<number> {
  const file = { directory, file: FENCE_FILE, maxBytes: MAX_FENCE_BYTES };
  const bytes = await readRegularFile(file).catch((error: unknown) => {
    if (error instanceof BundleError && error.code === 'file_missing') return undefined;
    throw error;
  });
  return bytes === undefined ? 0 : parseFence(bytes);
}

function parseFence(bytes: Buffer): number {
  const value = parseJson(bytes);
  const seconds = isFence(value) ? value.fenced_through_seconds : undefined;
  if (typeof seconds === 'number' && Number.isSafeInteger(seconds) && seconds >= 0) return seconds;
  throw new Error('not a fence');
}

function isFence(value: unknown): value is { readonly fenced_through_seconds: unknown } {
  return (
    isJsonObject(value) &&
    hasExactMembers(value, ['format', 'fenced_through_seconds']) &&
    value.format === FENCE_FORMAT
  );
}

function parseJson(bytes: Buffer): unknown {
  try {
    return parseStrictJson(bytes.toString('utf8'));
  } catch {
    return undefined;
  }
}

async function writeFence(directory: string, seconds: number): Promise<void> {
  const text = `${JSON.stringify({ format: FENCE_FORMAT, fenced_through_seconds: seconds })}\n`;
  await writeFileAtomically(directory, FENCE_FILE, Buffer.from(text));
}
