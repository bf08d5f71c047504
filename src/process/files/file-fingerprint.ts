/** Detects changes of files without reading them. */
import { stat } from 'node:fs/promises';

/**
 * Changes when one of the files is replaced or written, even in place with the same size and modification time. Follows
 * symbolic links, so it also changes when a link has another target.
 * @throws system errors, such as for a file that does not exist
 */
export async function fileFingerprint(...paths: readonly string[]): Promise<string> {
  const parts = paths.map(async (path) => {
    const { ctimeNs, dev, ino, mtimeNs, size } = await stat(path, { bigint: true });
    return [dev, ino, size, mtimeNs, ctimeNs].join(':');
  });
  return (await Promise.all(parts)).join(' ');
}
