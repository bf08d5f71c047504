/** Opens servers whose Unix socket only its owner can connect to. */

/** A socket has its mode from the start: another user could connect before a later chmod. */
export async function ownerOnly<T>(open: () => Promise<T>): Promise<T> {
  const umask = process.umask(0o177);
  try {
    return await open();
  } finally {
    process.umask(umask);
  }
}
