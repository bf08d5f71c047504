/** Opens servers whose Unix socket only its owner can connect to. */

/**
 * The umask sets the socket's mode at its creation: with chmod another user could connect first.
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
