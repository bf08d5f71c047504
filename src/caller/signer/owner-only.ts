/** Opens servers with a Unix socket to which only its owner can connect. */

/**
 * The umask sets the socket's mode at its creation. With chmod, another user could connect before the mode changes.
 * @param listen `unix:PATH`; for `HOST:PORT` the umask stays as it is
 */
export async function openOwnerOnly<T>(listen: string, open: () => Promise<T>): Promise<T> {
  if (!listen.startsWith('unix:')) return open();
  const umask = process.umask(0o177);
  try {
    return await open();
  } finally {
    process.umask(umask);
  }
}
