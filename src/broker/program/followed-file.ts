/** A value from files that is read again when they change. Bad new content never replaces good old content. */
import { stat } from 'node:fs/promises';
import type { ReadinessCheck } from '../../process/admin/admin-server.ts';
import { CliError } from '../../process/program/errors.ts';
import type { Logger } from '../../process/telemetry/log.ts';

const LOOK_EVERY_MS = 1_000;

export interface FollowOptions<T> {
  /** Name of the readiness check and in the log. */
  readonly name: string;
  /** Cheap; changes when the files change. */
  readonly fingerprint: () => Promise<string>;
  /** @throws CliError */
  readonly read: () => Promise<T>;
  readonly logger: Logger;
  readonly onReload?: (outcome: 'succeeded' | 'failed') => void;
}

export interface Followed<T> {
  readonly value: T;
  check(): ReadinessCheck;
  close(): void;
}

/** @throws CliError when the first content is bad */
export async function follow<T>(options: FollowOptions<T>): Promise<Followed<T>> {
  // Before the content: a change between the two is then seen by the next look.
  const seen = await options.fingerprint().catch(() => '');
  return new FollowedFile(options, await options.read(), seen);
}

/** A value that never changes, where no file is configured. */
export function fixed<T>(name: string, value: T): Followed<T> {
  return { value, check: () => ({ name, problem: undefined }), close: () => undefined };
}

class FollowedFile<T> implements Followed<T> {
  readonly #options: FollowOptions<T>;
  readonly #timer: NodeJS.Timeout;
  #value: T;
  #seen: string;
  #fault: string | undefined;
  #loggedText: string | undefined;
  #isLooking = false;

  constructor(options: FollowOptions<T>, value: T, seen: string) {
    this.#options = options;
    this.#value = value;
    this.#seen = seen;
    this.#timer = setInterval(() => void this.#lookOnce(), LOOK_EVERY_MS).unref();
  }

  get value(): T {
    return this.#value;
  }

  check(): ReadinessCheck {
    const warning =
      this.#fault &&
      `the changed files are rejected (${this.#fault}), the earlier ones stay in use: correct them; they are read again`;
    return { name: this.#options.name, problem: undefined, warning };
  }

  close(): void {
    clearInterval(this.#timer);
  }

  /** Skips a look while the one before still runs. */
  async #lookOnce(): Promise<void> {
    if (this.#isLooking) return;
    this.#isLooking = true;
    try {
      await this.#look();
    } catch (error) {
      this.#failed(error);
    } finally {
      this.#isLooking = false;
    }
  }

  async #look(): Promise<void> {
    const { name, fingerprint, read, logger, onReload } = this.#options;
    const found = await fingerprint();
    if (found === this.#seen && this.#fault === undefined) return;
    this.#value = await read();
    this.#seen = found;
    this.#fault = undefined;
    this.#loggedText = undefined;
    onReload?.('succeeded');
    logger.info({ event: 'file_reloaded', file: name }, 'changed files are in use');
  }

  #failed(error: unknown): void {
    const code = error instanceof CliError ? error.code : 'file_unreadable';
    const text = error instanceof CliError ? error.message : 'the files cannot be read';
    if (text === this.#loggedText) return;
    this.#fault = code;
    this.#loggedText = text;
    const { name, logger, onReload } = this.#options;
    onReload?.('failed');
    logger.error({ event: 'file_rejected', file: name, code, text }, 'changed files are rejected');
  }
}

/** For a single file. Follows symbolic links, so it also changes when a link is replaced. */
export async function fileFingerprint(path: string): Promise<string> {
  const { ino, mtimeMs, size } = await stat(path);
  return `${ino}:${mtimeMs}:${size}`;
}
