/**
 * Local destinations of audit lines: standard output, a file, a FIFO. Writes never block on a reader: pipes are opened
 * non-blocking, and a full one fails with EAGAIN.
 */
import {
  closeSync,
  constants,
  fstatSync,
  lstatSync,
  openSync,
  readSync,
  type Stats,
  statSync,
  writeSync,
} from 'node:fs';
import { Socket } from 'node:net';
import { failureCode } from './sink.ts';

export interface Destination {
  /** Undefined while there is nothing to write to: a FIFO without a reader, or a file that cannot be recreated. */
  readonly descriptor: number | undefined;
  /** A write of up to PIPE_BUF bytes is atomic (POSIX, `write`). */
  readonly isPipe: boolean;
  /**
   * Reopens the file when it was renamed, removed or replaced, or when `force` is set.
   * @returns a failure code when it had to reopen the file and could not
   */
  follow(force: boolean): string | undefined;
  /** Whether the last write ended within a line. The next line then begins with a line break. */
  isTorn: boolean;
  close(): void;
}

/**
 * @param isShared other processes append to the same file. A line that one of them leaves incomplete, because it was
 * killed or the disk is full, must not spoil a line of another.
 * @throws Error of the file system when the destination can never be written to
 */
export function openDestination(path: string, isShared = false): Destination {
  return path === '-' ? new StandardOutput() : new FileDestination(path, isShared);
}

class StandardOutput implements Destination {
  readonly descriptor: number;
  readonly isPipe: boolean;
  isTorn = false;

  constructor() {
    this.descriptor = openStandardOutput();
    this.isPipe = !fstatSync(this.descriptor).isFile();
  }

  follow(): undefined {}

  /** The process owns the descriptor. */
  close(): void {}
}

/** Only the owner may read the log of what callers did. */
const FILE_MODE = 0o600;
const FLAGS = constants.O_APPEND | constants.O_CREAT | constants.O_NONBLOCK | constants.O_NOCTTY;
const LINE_BREAK = 0x0a;

class FileDestination implements Destination {
  readonly #path: string;
  #descriptor: number | undefined;
  #identity: FileIdentity | undefined;
  #isPipe = false;
  readonly #isShared: boolean;
  #isTorn = false;

  constructor(path: string, isShared: boolean) {
    this.#path = path;
    this.#isShared = isShared;
    const failure = this.#open();
    if (failure !== undefined && !isUnreadFifo(path, failure)) throw failure;
  }

  get descriptor(): number | undefined {
    return this.#descriptor;
  }

  get isPipe(): boolean {
    return this.#isPipe;
  }

  get isTorn(): boolean {
    return this.#isTorn || (this.#isShared && this.#isTornByOthers());
  }

  set isTorn(isTorn: boolean) {
    this.#isTorn = isTorn;
  }

  /**
   * The file's last byte is not a line break. During another process' long write this is a false positive, which costs
   * an empty line.
   */
  #isTornByOthers(): boolean {
    if (this.#descriptor === undefined) return false;
    const { size } = fstatSync(this.#descriptor);
    return size > 0 && !isLineBreakAt(this.#descriptor, size - 1);
  }

  follow(force: boolean): string | undefined {
    if (this.#descriptor !== undefined && !force && this.#isWhereItWas()) return undefined;
    const failure = this.#open();
    if (failure === undefined) return undefined;
    // Data that is written to a deleted file is lost.
    if (this.#descriptor !== undefined && fstatSync(this.#descriptor).nlink === 0) this.close();
    return failureCode(failure);
  }

  close(): void {
    if (this.#descriptor !== undefined) closeSync(this.#descriptor);
    this.#descriptor = undefined;
  }

  /** @returns the error; the previous descriptor then stays in use */
  #open(): unknown {
    try {
      const descriptor = openSync(
        this.#path,
        FLAGS | (this.#isShared ? constants.O_RDWR : constants.O_WRONLY),
        FILE_MODE,
      );
      const stats = fstatSync(descriptor);
      this.close();
      this.#descriptor = descriptor;
      this.#identity = identityOf(stats);
      this.#isPipe = stats.isFIFO();
      this.isTorn = stats.isFile() && stats.size > 0 && !endsInLineBreak(this.#path, stats.size);
      return undefined;
    } catch (error) {
      return error;
    }
  }

  #isWhereItWas(): boolean {
    try {
      const { device, inode } = identityOf(statSync(this.#path));
      return device === this.#identity?.device && inode === this.#identity.inode;
    } catch {
      return false;
    }
  }
}

interface FileIdentity {
  readonly device: number;
  readonly inode: number;
}

function identityOf({ dev, ino }: Stats): FileIdentity {
  return { device: dev, inode: ino };
}

/** A FIFO that no process has open for reading cannot be opened for non-blocking writes (POSIX, `open`, ENXIO). */
function isUnreadFifo(path: string, error: unknown): boolean {
  return failureCode(error) === 'enxio' && lstatSync(path).isFIFO();
}

/** A previous process may have died within a line. A file that cannot be read counts as ending in a line break. */
function endsInLineBreak(path: string, size: number): boolean {
  try {
    const descriptor = openSync(path, constants.O_RDONLY | constants.O_NONBLOCK);
    try {
      return isLineBreakAt(descriptor, size - 1);
    } finally {
      closeSync(descriptor);
    }
  } catch {
    return true;
  }
}

function isLineBreakAt(descriptor: number, position: number): boolean {
  const byte = Buffer.alloc(1);
  return readSync(descriptor, byte, 0, 1, position) < 1 || byte[0] === LINE_BREAK;
}

/**
 * Writes whole lines without waiting, completely or in part.
 * @returns the number of bytes written, and why not more
 */
export function writeNow(
  { descriptor }: Pick<Destination, 'descriptor'>,
  bytes: Buffer,
): { readonly written: number; readonly failure: string | undefined } {
  let written = 0;
  if (descriptor === undefined) return { written, failure: 'enxio' };
  try {
    while (written < bytes.byteLength) written += writeSync(descriptor, bytes, written);
    return { written, failure: undefined };
  } catch (error) {
    return { written, failure: failureCode(error) };
  }
}

/** Opens standard output for writes that never block on the reader. */

const STANDARD_OUTPUT = 1;
/** Linux: opens the file of the descriptor again, so that O_NONBLOCK does not affect other processes. */
const ITSELF = '/proc/self/fd/1';

/** Kept referenced: garbage collection of the socket would close the descriptor. */
let holder: Socket | undefined;

/** @returns a descriptor that must not be closed */
function openStandardOutput(): number {
  const stats = fstatSync(STANDARD_OUTPUT);
  if (stats.isFile()) return STANDARD_OUTPUT;
  // A socket cannot be opened by a path.
  if (!stats.isSocket()) {
    try {
      return openSync(ITSELF, constants.O_WRONLY | constants.O_NONBLOCK | constants.O_NOCTTY);
    } catch {
      // Not Linux, or a pipe of another user.
    }
  }
  if (stats.isSocket() || stats.isFIFO()) makeNonBlocking();
  return STANDARD_OUTPUT;
}

/** Node.js has no fcntl. Opening a stream on a descriptor sets O_NONBLOCK, for all processes that share it. */
function makeNonBlocking(): void {
  holder ??= new Socket({ fd: STANDARD_OUTPUT, readable: false, writable: true });
  holder.unref();
  // The stream itself is never written to.
  holder.on('error', () => undefined);
}
