/**
 * Names of the links through which the agent replaces a key and its state atomically. Each pair has its own folder, and
 * both files resolve through one link, which the agent replaces:
 *
 *     key.pem                  -> .key.pem.current/key.pem
 *     key.pem.enrollment.json  -> .key.pem.current/key.pem.enrollment.json
 *     .key.pem.current         -> .key.pem.7
 *     .key.pem.7/              the installed pair; .key.pem.6 is the previous one
 *
 * A reader that resolves `.key.pem.current` once and reads both files there gets a matching pair.
 * Source: docs/workloads.md "Files".
 */
import { readlink } from 'node:fs/promises';
import { basename, dirname, join } from 'node:path';

export interface PairNames {
  readonly directory: string;
  readonly key: string;
  /** The link that the agent replaces. */
  readonly current: string;
  /** Prefix of all other names that the agent uses in the directory. */
  readonly prefix: string;
}

export function pairNamesOf(keyFile: string): PairNames {
  const key = basename(keyFile);
  return { directory: dirname(keyFile), key, current: `.${key}.current`, prefix: `.${key}.` };
}

/** Number of the installed pair; undefined when no agent has installed one. */
export async function currentNumber({ directory, current, prefix }: PairNames): Promise<number | undefined> {
  const folder = await readlink(join(directory, current)).catch(() => undefined);
  return folder?.startsWith(prefix) ? numberOf(folder.slice(prefix.length)) : undefined;
}

/** Parses the number at the end of a folder's name; undefined for anything else. */
export function numberOf(ending: string): number | undefined {
  return /^[1-9][0-9]{0,14}$/.test(ending) ? Number(ending) : undefined;
}

/** Resolves the current path of the key file, which has its state beside it: the agent's pair, or else the file itself. */
export async function settledKeyFile(keyFile: string): Promise<string> {
  const names = pairNamesOf(keyFile);
  const link = await readlink(keyFile).catch(() => undefined);
  if (link !== join(names.current, names.key)) return keyFile;
  const number = await currentNumber(names);
  return number === undefined ? keyFile : join(names.directory, `${names.prefix}${number}`, names.key);
}
