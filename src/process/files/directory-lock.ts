/**
 * A shared lock on a directory, such as a verifier's state directory: a Unix socket on which the process listens while it
 * runs. The kernel releases it when the process ends for any reason, and every container that mounts the directory sees
 * the socket's file; a process ID would name another process there. Several processes may hold the lock.
 * Source: docs/design/bundle.md "The state directory".
 */
import { randomBytes } from 'node:crypto';
import { type FileHandle, open, readdir, unlink } from 'node:fs/promises';
import { connect, createServer, type Server } from 'node:net';
import { join } from 'node:path';

const VERIFIER_PREFIX = '.verifier-';
const SOCKET_ENDING = /^[0-9a-f]{16}$/;
/** Maximum length of a socket's path (108 bytes on Linux, 104 elsewhere, including the terminating byte). */
const MAX_SOCKET_PATH_BYTES = 103;

export interface DirectoryLock {
  /** When two processes first lock the directory and then call this, at least one of them sees the other. */
  isHeldByOthers(): Promise<boolean>;
  /** Never rejects. */
  release(): Promise<void>;
}

/**
 * @param prefix of the socket's name: locks with different prefixes are independent
 * @throws system errors where the file system does not support sockets
 */
export async function lockDirectory(directory: string, prefix = VERIFIER_PREFIX): Promise<DirectoryLock> {
  const name = prefix + randomBytes(8).toString('hex');
  const place = await shortPath(directory, name);
  // Accepting the connection is a sufficient answer.
  const server = createServer((socket) => socket.destroy());
  try {
    await listen(server, place.path);
  } catch (error) {
    await place.close();
    throw error;
  }
  server.unref();
  return {
    isHeldByOthers: () => isAnswered(directory, (other) => other !== name && isSocketOf(prefix, other)),
    async release() {
      await new Promise<void>((resolve) => server.close(() => resolve()));
      await unlink(join(directory, name)).catch(() => undefined);
      await place.close();
    },
  };
}

/**
 * Whether a running verifier holds the lock. Sockets of processes that were killed are removed.
 * @throws system errors when the directory cannot be read
 */
export function isDirectoryLocked(stateDirectory: string): Promise<boolean> {
  return isAnswered(stateDirectory, (name) => isSocketOf(VERIFIER_PREFIX, name));
}

function isSocketOf(prefix: string, name: string): boolean {
  return name.startsWith(prefix) && SOCKET_ENDING.test(name.slice(prefix.length));
}

async function isAnswered(directory: string, isMeant: (name: string) => boolean): Promise<boolean> {
  for (const name of (await readdir(directory)).filter(isMeant)) {
    const place = await shortPath(directory, name);
    const answer = await ask(place.path);
    await place.close();
    // Removed only when no process listens: a full queue, or a missing permission, belongs to a process that does.
    if (answer === 'answered') return true;
    if (answer === 'no_listener') await unlink(join(directory, name)).catch(() => undefined);
  }
  return false;
}

async function ask(path: string): Promise<'answered' | 'no_listener' | 'gone'> {
  return new Promise((resolve) => {
    const socket = connect(path);
    socket.once('connect', () => {
      socket.destroy();
      resolve('answered');
    });
    socket.once('error', (error: NodeJS.ErrnoException) => {
      if (error.code === 'ECONNREFUSED') resolve('no_listener');
      else resolve(error.code === 'ENOENT' ? 'gone' : 'answered');
    });
  });
}

function listen(server: Server, path: string): Promise<void> {
  return new Promise((resolve, reject) => {
    server.on('error', reject);
    // A worker of a cluster would otherwise have the primary listen, which has other descriptors and may run longer.
    server.listen({ path, exclusive: true }, () => resolve());
  });
}

/** A socket address has little room. A longer path goes through an open directory descriptor, where the system supports it. */
async function shortPath(
  directory: string,
  name: string,
): Promise<{ readonly path: string; close(): Promise<void> }> {
  const path = join(directory, name);
  if (Buffer.byteLength(path) <= MAX_SOCKET_PATH_BYTES || process.platform !== 'linux') {
    return { path, close: async () => undefined };
  }
  const handle: FileHandle = await open(directory, 'r');
  return { path: `/proc/self/fd/${handle.fd}/${name}`, close: () => handle.close() };
}
