/**
 * Follows, in a worker, the bundle that the primary persists in the state directory: the base, the steps after it and the
 * freshness statement. The worker only reads, and verifies everything again as if it came from Control.
 * Source: docs/design/bundle.md "The state directory".
 */
import { open, readlink, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { CURRENT_LINK, FRESHNESS_FILE } from '../../bundle/format/file-names.ts';
import { ResolvedDirectory } from '../../bundle/format/local-directory.ts';
import { type StepDocument, stepKindOf } from '../../bundle/format/open-document.ts';
import { STEP_LOG_FILE } from '../../bundle/format/step-log.ts';
import { fileFingerprint } from '../../process/files/file-fingerprint.ts';
import { Backoff, NO_JITTER } from '../../process/program/backoff.ts';
import type { BundleLoader } from './bundle-loader.ts';
import { Coalesced } from './serial-tasks.ts';

const POLL_INTERVAL_MS = 100;
const MAX_RETRY_INTERVAL_MS = 10_000;
const LINE_FEED = 0x0a;
/** Limits the steps that one poll reads into memory; the next poll reads the rest. */
const MAX_READ_BYTES = 64 * 1024 * 1024;

export class StateFollower {
  readonly #directory: string;
  readonly #loader: BundleLoader;
  readonly #looks = new Coalesced(() => this.#lookSafely());
  readonly #backoff = new Backoff({
    firstMs: POLL_INTERVAL_MS,
    maxMs: MAX_RETRY_INTERVAL_MS,
    random: NO_JITTER,
  });
  #timer: NodeJS.Timeout | undefined;
  /** Link target of the base that was loaded. */
  #base: string | undefined;
  /** Bytes of its step log that were read. */
  #offset = 0;
  #steps = 0;
  #statement: string | undefined;

  constructor(stateDirectory: string, loader: BundleLoader) {
    this.#directory = stateDirectory;
    this.#loader = loader;
  }

  /** Loads what is available, then polls. Never rejects. */
  async start(): Promise<void> {
    await this.look();
    this.#timer = setInterval(() => void this.look(), POLL_INTERVAL_MS);
  }

  look(): Promise<void> {
    return this.#looks.run();
  }

  close(): void {
    clearInterval(this.#timer);
  }

  /** Files disappear during a read when the primary installs a newer base; the next poll finds that base. */
  async #lookSafely(): Promise<void> {
    try {
      await this.#look();
    } catch {
      this.#base = undefined;
    }
  }

  async #look(): Promise<void> {
    const target = await readlink(join(this.#directory, CURRENT_LINK)).catch(() => undefined);
    if (target === undefined) return;
    const path = join(this.#directory, target);
    if (this.#base === undefined && !this.#backoff.isDue) return;
    const isShorter = target === this.#base && (await sizeOf(join(path, STEP_LOG_FILE))) < this.#offset;
    if (target !== this.#base || isShorter) await this.#takeBase(target, path);
    else await this.#takeSteps(path);
    await this.#takeStatement(path);
  }

  async #takeBase(target: string, path: string): Promise<void> {
    this.#offset = 0;
    this.#steps = 0;
    const documents = await this.#nextSteps(path);
    const refused = await this.#loader.replace(new ResolvedDirectory(path), documents);
    if (refused === undefined) {
      this.#base = target;
      this.#backoff.reset();
    } else this.#retryLater();
  }

  /**
   * Retries with a backoff, because rejected content may be valid later, and verifying a large bundle takes time from
   * requests.
   */
  #retryLater(): void {
    this.#base = undefined;
    this.#backoff.failed();
  }

  async #takeSteps(path: string): Promise<void> {
    const documents = await this.#nextSteps(path);
    if (documents.length === 0) return;
    const refused = await this.#loader.advance(documents);
    if (refused !== undefined) this.#retryLater();
  }

  /** The complete lines after the last read. */
  async #nextSteps(path: string): Promise<readonly StepDocument[]> {
    const bytes = await readFrom(join(path, STEP_LOG_FILE), this.#offset);
    const end = bytes.lastIndexOf(LINE_FEED) + 1;
    this.#offset += end;
    const documents: StepDocument[] = [];
    for (let start = 0; start < end; ) {
      const lineEnd = bytes.indexOf(LINE_FEED, start);
      this.#steps += 1;
      const file = `${STEP_LOG_FILE}:${this.#steps}`;
      const line = bytes.subarray(start, lineEnd);
      documents.push({ kind: stepKindOf(line, file), file, bytes: line });
      start = lineEnd + 1;
    }
    return documents;
  }

  async #takeStatement(path: string): Promise<void> {
    const fingerprint = await fileFingerprint(join(path, FRESHNESS_FILE)).catch(() => undefined);
    if (fingerprint === undefined || fingerprint === this.#statement) return;
    const bytes = await new ResolvedDirectory(path).readFreshness();
    if (bytes !== undefined) await this.#loader.offerStatement(bytes);
    this.#statement = fingerprint;
  }
}

async function readFrom(file: string, offset: number): Promise<Buffer> {
  const handle = await open(file, 'r');
  try {
    const { size } = await handle.stat();
    const length = Math.min(Math.max(0, size - offset), MAX_READ_BYTES);
    const { buffer, bytesRead } = await handle.read(Buffer.alloc(length), 0, length, offset);
    return buffer.subarray(0, bytesRead);
  } finally {
    await handle.close();
  }
}

async function sizeOf(file: string): Promise<number> {
  return (await stat(file)).size;
}
