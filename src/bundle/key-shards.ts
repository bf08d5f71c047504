/**
 * Derived keys in files of their own: one JSON object a line. The signed bundle names each file with its count and
 * SHA-256, so its signature covers them; the hash is compared before a line is parsed.
 * Source: docs/bundle.md "Signed documents".
 */
import { hash } from 'node:crypto';
import { parseStrictJson } from '../protocol/strict-json.ts';
import type { KeyTableBuilder } from './compile-keys.ts';
import { bundleError, Faults } from './errors.ts';
import { type DerivedKeyContent, type KeyShardContent, MAX_KEYS_PER_SHARD } from './schema.ts';
import { asDerivedKey } from './shape.ts';
import type { TimeSlice } from './time-slice.ts';

export const MAX_SHARD_BYTES = 64 * 1024 * 1024;

/** Gives the bytes of a shard that the bundle names. @throws BundleError when there is no such file. */
export type ShardReader = (file: string) => Promise<Buffer>;

/**
 * Adds a shard's keys to the table.
 * @throws BundleError `shard_mismatch` for other bytes than the bundle names, and what a derived key is refused for
 */
export async function addShard(
  shard: KeyShardContent,
  bytes: Buffer,
  keys: KeyTableBuilder,
  slice: TimeSlice,
): Promise<void> {
  const { file } = shard;
  if (hash('sha256', bytes, 'base64url') !== shard.sha256) {
    throw bundleError('shard_mismatch', file, '', 'its SHA-256 is not the one that the bundle names');
  }
  const faults = new Faults(file);
  let lines = 0;
  for (const line of linesOf(bytes)) {
    const path = `/${lines}`;
    keys.addDerivedKey(asDerivedKey(parseLine(line, file, path), file, path), path, faults);
    faults.throwIfAny();
    lines++;
    if (slice.isUsedUp) await slice.next();
  }
  if (lines !== shard.count) {
    throw bundleError('shard_mismatch', file, '', `${lines} keys, the bundle names ${shard.count}`);
  }
}

const LINE_FEED = 0x0a;
const utf8 = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true });

/** Each line without its line feed; the last one may end without. */
function* linesOf(bytes: Buffer): Generator<Buffer> {
  let start = 0;
  while (start < bytes.length) {
    const end = bytes.indexOf(LINE_FEED, start);
    yield bytes.subarray(start, end === -1 ? bytes.length : end);
    start = end === -1 ? bytes.length : end + 1;
  }
}

function parseLine(line: Buffer, file: string, path: string): unknown {
  try {
    return parseStrictJson(utf8.decode(line));
  } catch {
    throw bundleError('payload_malformed', file, path, 'line is not UTF-8 JSON without repeated members');
  }
}

/** A shard as it is written, with its entry for the bundle. */
export interface WrittenShard {
  readonly entry: KeyShardContent;
  readonly bytes: Buffer;
}

/** Splits keys into shards, in order. */
export function makeShards(derivedKeys: readonly DerivedKeyContent[]): readonly WrittenShard[] {
  const shards: WrittenShard[] = [];
  for (let start = 0; start < derivedKeys.length; start += MAX_KEYS_PER_SHARD) {
    const part = derivedKeys.slice(start, start + MAX_KEYS_PER_SHARD);
    const bytes = Buffer.from(part.map((key) => `${JSON.stringify(key)}\n`).join(''));
    const file = `keys-${String(shards.length + 1).padStart(4, '0')}.jsonl`;
    shards.push({ entry: { file, count: part.length, sha256: hash('sha256', bytes, 'base64url') }, bytes });
  }
  return shards;
}
