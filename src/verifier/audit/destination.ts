/**
 * What audit lines are written to on this machine: standard output, a file, a FIFO. Nothing here ever waits for a
 * reader: pipes are written to without blocking, and one that takes nothing says so (EAGAIN).
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
import { failureCode } from './sink.ts';
import { openStandardOutput } from './standard-output.ts';

export interface Destination {
  /** Undefined while there is nothing to write to: a FIFO without a reader, a file that cannot be made again. */
  readonly descriptor: number | undefined;
  /** A write of up to PIPE_BUF bytes goes through as a whole or not at all (POSIX, `write`). */
  readonly isPipe: boolean;
  /**
   * Opens the file anew when it was renamed, removed or replaced since, or when told to.
   * @returns a failure code when that was due and failed
   */
  follow(force: boolean): string | undefined;
  /** Whether what was written last ends within a line. The next line then begins with a line break. */
  isTorn: boolean;
  close(): void;
}

/**
 * @param isShared other processes append to the same file: what one of them leaves torn, when it is killed or the disk is
 *   full, must not spoil a line of another
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

  /** It is the process's. */
  close(): void {}
}

/** Nobody but its owner reads what callers did. */
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

  /** Its last byte tells. In the middle of another's long write it may be taken for torn: that costs an empty line. */
  #isTornByOthers(): boolean {
    if (this.#descriptor === undefined) return false;
    const { size } = fstatSync(this.#descriptor);
    return size > 0 && !isLineBreakAt(this.#descriptor, size - 1);
  }

  follow(force: boolean): string | undefined {
    if (this.#descriptor !== undefined && !force && this.#isWhereItWas()) return undefined;
    const failure = this.#open();
    if (failure === undefined) return undefined;
    // Nobody would ever find what is written to a file without a name.
    if (this.#descriptor !== undefined && fstatSync(this.#descriptor).nlink === 0) this.close();
    return failureCode(failure);
  }

  close(): void {
    if (this.#descriptor !== undefined) closeSync(this.#descriptor);
    this.#descriptor = undefined;
  }

  /** @returns what went wrong; the descriptor that was there then stays */
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

/** A FIFO opened for writing without blocking, while nobody has it open for reading (POSIX, `open`, ENXIO). */
function isUnreadFifo(path: string, error: unknown): boolean {
  return failureCode(error) === 'enxio' && lstatSync(path).isFIFO();
}

/** A process before this one may have died within a line. Where the file may not be read, nobody knows. */
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
 * Whole lines, at once: all of them, or what was written of them.
 * @returns bytes written, and why not more
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
