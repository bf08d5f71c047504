/** Certificates that a setting names to trust, in place of the system's. */
import { checkedCaPem } from '../client/ca-certificates.ts';
import { usageError } from './errors.ts';
import { readPemFile } from './input-files.ts';

/**
 * The file's text; undefined when no file is named. A file of something else would be taken by Node without a word, and
 * then nobody be trusted.
 * @throws CliError `ca_invalid`, or as `readInputText`
 */
export async function readCaFile(path: string | undefined): Promise<string | undefined> {
  const pem = await readPemFile(path);
  if (pem === undefined) return undefined;
  try {
    return checkedCaPem(pem);
  } catch {
    throw usageError('ca_invalid', `${path} holds no certificate in PEM, or one that cannot be read`);
  }
}
