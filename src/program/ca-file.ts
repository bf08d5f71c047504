/** Reads a file of CA certificates that replaces the system's trust store. */
import { checkedCaPem } from '../client/ca-certificates.ts';
import { usageError } from './errors.ts';
import { readPemFile } from './input-files.ts';

/**
 * Returns the file's text; undefined when no file is configured. Validates the certificates, because Node silently accepts
 * a file without any and then trusts no server.
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
