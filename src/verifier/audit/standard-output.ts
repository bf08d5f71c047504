/** Opens standard output for writes that never block on the reader. */
import { constants, fstatSync, openSync } from 'node:fs';
import { Socket } from 'node:net';

const STANDARD_OUTPUT = 1;
/** Linux: opens the file of the descriptor again, so that O_NONBLOCK does not affect other processes. */
const ITSELF = '/proc/self/fd/1';

/** Kept referenced: garbage collection of the socket would close the descriptor. */
let holder: Socket | undefined;

/** @returns a descriptor that must not be closed */
export function openStandardOutput(): number {
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
