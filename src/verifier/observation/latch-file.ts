/**
 * The latch: which observations this verifier has begun or ended, so that none begins again without a new flag. A small file in
 * the state directory. Source: docs/operate/observe.md.
 */
import { BundleError } from '../../bundle/format/bundle-error.ts';
import { readRegularFile, writeFileAtomically } from '../../bundle/format/files.ts';
import { isJsonObject, parseStrictJson } from '../../protocol/strict-json.ts';

export const LATCH_FILE = 'observations.json';
const LATCH_FORMAT = 'proofgate.observations/v1';
const MAX_LATCH_BYTES = 16 * 1024 * 1024;

/** What is remembered of a route, or of unmatched requests. Times in seconds since the epoch. */
export interface Latch {
  /** The flag's time: another one is a new local act. */
  readonly allowedUntil: number;
  /** When the observation ends, by flag and bundle, as last seen; undefined: no bundle with the flag's route came yet. */
  readonly until: number | undefined;
  /** Whether this verifier has enforced under this flag. */
  readonly isClosed: boolean;
}

/** By `route ROUTE` or `unmatched`. */
export type Latches = ReadonlyMap<string, Latch>;

/** @throws Error when it exists and cannot be read: then nothing may be observed */
export async function readLatches(directory: string, authSite: string): Promise<Latches> {
  let bytes: Buffer;
  try {
    bytes = await readRegularFile({ directory, file: LATCH_FILE, maxBytes: MAX_LATCH_BYTES });
  } catch (error) {
    if (error instanceof BundleError && error.code === 'file_missing') return new Map();
    throw error;
  }
  return parseLatches(parseStrictJson(bytes.toString('utf8')), authSite);
}

/** @throws BundleError `file_not_written` */
export async function writeLatches(directory: string, authSite: string, latches: Latches): Promise<void> {
  const content = {
    format: LATCH_FORMAT,
    auth_site: authSite,
    latches: [...latches].map(([name, { allowedUntil, isClosed, until }]) => ({
      name,
      allowed_until: allowedUntil,
      until: until ?? null,
      closed: isClosed,
    })),
  };
  await writeFileAtomically(directory, LATCH_FILE, Buffer.from(`${JSON.stringify(content)}\n`));
}

function parseLatches(value: unknown, authSite: string): Latches {
  if (!isJsonObject(value) || value.format !== LATCH_FORMAT || value.auth_site !== authSite)
    throw unreadable();
  if (!Array.isArray(value.latches)) throw unreadable();
  return new Map(value.latches.map(parseLatch));
}

function parseLatch(value: unknown): readonly [string, Latch] {
  if (!isJsonObject(value)) throw unreadable();
  const { allowed_until: allowedUntil, closed, name, until } = value;
  if (typeof name !== 'string' || typeof closed !== 'boolean') throw unreadable();
  if (typeof allowedUntil !== 'number' || !(typeof until === 'number' || until === null)) throw unreadable();
  return [name, { allowedUntil, until: until ?? undefined, isClosed: closed }];
}

function unreadable(): Error {
  return new Error(`${LATCH_FILE} has another format, or is of another site`);
}
