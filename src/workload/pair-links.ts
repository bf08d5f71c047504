/**
 * How a key and its state are replaced together. The agent keeps each pair in a folder of its own and has both files led
 * there through one link, which it moves:
 *
 *     key.pem                  -> .key.pem.current/key.pem
 *     key.pem.enrollment.json  -> .key.pem.current/key.pem.enrollment.json
 *     .key.pem.current         -> .key.pem.7
 *     .key.pem.7/              the pair; .key.pem.6 is the one before
 *
 * Whoever asks once where `.key.pem.current` leads, and reads both files there, has two that belong together.
 * Source: docs/workloads.md "Files".
 */
import { readlink } from 'node:fs/promises';
import { basename, dirname, join } from 'node:path';

export interface PairNames {
  readonly directory: string;
  readonly key: string;
  /** The link that is moved. */
  readonly current: string;
  /** Begins the names of all else that the agent keeps there. */
  readonly prefix: string;
}

export function pairNamesOf(keyFile: string): PairNames {
  const key = basename(keyFile);
  return { directory: dirname(keyFile), key, current: `.${key}.current`, prefix: `.${key}.` };
}

/** Number of the pair that is in place; undefined where no agent has put one. */
export async function currentNumber({ directory, current, prefix }: PairNames): Promise<number | undefined> {
  const folder = await readlink(join(directory, current)).catch(() => undefined);
  return folder?.startsWith(prefix) ? numberOf(folder.slice(prefix.length)) : undefined;
}

/** Of a folder's ending; undefined for anything else. */
export function numberOf(ending: string): number | undefined {
  return /^[1-9][0-9]{0,14}$/.test(ending) ? Number(ending) : undefined;
}

/** Where the key file is at this moment, with its state beside it: the file itself, unless an agent looks after it. */
export async function settledKeyFile(keyFile: string): Promise<string> {
  const names = pairNamesOf(keyFile);
  const link = await readlink(keyFile).catch(() => undefined);
  if (link !== join(names.current, names.key)) return keyFile;
  const number = await currentNumber(names);
  return number === undefined ? keyFile : join(names.directory, `${names.prefix}${number}`, names.key);
}
