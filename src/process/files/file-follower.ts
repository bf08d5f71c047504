/** Reads files again when they change. Faulty new content never replaces the content in use. */
import { CliError } from '../program/errors.ts';

const LOOK_EVERY_MS = 1_000;

export interface FileFault {
  /** Code of the CliError, or `file_unreadable`. */
  readonly code: string;
  readonly text: string;
}

export interface FileFollowerOptions<T> {
  /** Changes when the files change; see `fileFingerprint`. */
  readonly fingerprint: () => Promise<string>;
  /**
   * Fingerprint that was computed before the content in use was read. Without it, the first check reads the files
   * again.
   */
  readonly seen?: string;
  /** @throws CliError */
  readonly read: () => Promise<T>;
  readonly take: (content: T) => void;
  /** Called once for each fault, not for each check. */
  readonly onRejected: (fault: FileFault) => void;
}

export class FileFollower<T> {
  readonly #options: FileFollowerOptions<T>;
  readonly #timer: NodeJS.Timeout;
  #seen: string | undefined;
  #fault: FileFault | undefined;
  #isLooking = false;

  constructor(options: FileFollowerOptions<T>) {
    this.#options = options;
    this.#seen = options.seen;
    this.#timer = setInterval(() => void this.#lookOnce(), LOOK_EVERY_MS).unref();
  }

  /** Why the changed files are not in use; undefined when they are. */
  get fault(): FileFault | undefined {
    return this.#fault;
  }

  close(): void {
    clearInterval(this.#timer);
  }

  /** Skips a check while the previous one still runs. */
  async #lookOnce(): Promise<void> {
    if (this.#isLooking) return;
    this.#isLooking = true;
    try {
      await this.#look();
    } catch (error) {
      this.#reportRejection(error);
    } finally {
      this.#isLooking = false;
    }
  }

  /** After a fault each check reads again, because the fault may be gone although the files did not change. */
  async #look(): Promise<void> {
    const { fingerprint, read, take } = this.#options;
    const found = await fingerprint();
    if (found === this.#seen && this.#fault === undefined) return;
    const content = await read();
    // Files that change meanwhile may have been read half written, so the next check reads them again.
    if ((await fingerprint()) !== found) return;
    take(content);
    this.#seen = found;
    this.#fault = undefined;
  }

  #reportRejection(error: unknown): void {
    const fault =
      error instanceof CliError
        ? { code: error.code, text: error.message }
        : { code: 'file_unreadable', text: 'the files cannot be read' };
    if (fault.text === this.#fault?.text) return;
    this.#fault = fault;
    this.#options.onRejected(fault);
  }
}
