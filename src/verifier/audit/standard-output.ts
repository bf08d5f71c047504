/** Standard output such that writing to it never waits for whoever reads it. */
import { constants, fstatSync, openSync } from 'node:fs';
import { Socket } from 'node:net';

const STANDARD_OUTPUT = 1;
/** Linux: opens what the descriptor is of once more, so that what is set here is nobody else's. */
const ITSELF = '/proc/self/fd/1';

/** Kept: it would close the descriptor with itself. */
let holder: Socket | undefined;

/** @returns a descriptor that is not to be closed */
export function openStandardOutput(): number {
  const stats = fstatSync(STANDARD_OUTPUT);
  if (stats.isFile()) return STANDARD_OUTPUT;
  // A socket cannot be opened by its name.
  if (!stats.isSocket()) {
    try {
      return openSync(ITSELF, constants.O_WRONLY | constants.O_NONBLOCK | constants.O_NOCTTY);
    } catch {
      // Another system, or a pipe of another user.
    }
  }
  if (stats.isSocket() || stats.isFIFO()) makeNonBlocking();
  return STANDARD_OUTPUT;
}

/** Node has no fcntl; a stream on a descriptor sets O_NONBLOCK, for all who share it. */
function makeNonBlocking(): void {
  holder ??= new Socket({ fd: STANDARD_OUTPUT, readable: false, writable: true });
  holder.unref();
  // Nothing is written through it.
  holder.on('error', () => undefined);
}
