/**
 * Reads and writes shards: files of derived keys, one JSON object for each line. The signed bundle names each file with
 * its count and SHA-256, so its signature covers them. The hash is compared before a line is parsed. Files are
 * streamed.
 * Source: docs/design/bundle.md "Signed documents".
 */

import { createHash, hash } from 'node:crypto';
import { parseStrictJson } from '../../protocol/strict-json.ts';
import { type BundleError, bundleError, Faults } from '../format/bundle-error.ts';
import { MAX_KEYS_PER_SHARD } from '../format/bundle-limits.ts';
import type { ShardFile } from '../format/local-directory.ts';
import type { DerivedKeyContent, KeyShardContent } from '../format/schema.ts';
import { asDerivedKey } from '../format/shape.ts';
import type { TimeSlice } from '../format/time-slice.ts';
import type { KeyTableBuilder } from './compile-keys.ts';

/** Opens a shard that the bundle names. @throws BundleError when there is no such file. */
export type ShardReader = (file: string) => Promise<Buffer | ShardFile>;

/**
 * Adds a shard's keys to the table.
 * @throws BundleError `shard_mismatch` when the bytes differ from those that the bundle names, and errors of derived
 * keys
 */
export async function addShard(
  shard: KeyShardContent,
  source: Buffer | ShardFile,
  keys: KeyTableBuilder,
  slice: TimeSlice,
): Promise<void> {
  const bytes = Buffer.isBuffer(source) ? inMemory(source) : source;
  try {
    await checkHash(shard, bytes);
    await addLines(shard, bytes, keys, slice);
  } finally {
    await bytes.close();
  }
}

function inMemory(bytes: Buffer): ShardFile {
  return {
    async *chunks() {
      yield bytes;
    },
    close: async () => undefined,
  };
}

async function checkHash({ file, sha256 }: KeyShardContent, source: ShardFile): Promise<void> {
  const hash = createHash('sha256');
  for await (const chunk of source.chunks()) hash.update(chunk);
  if (hash.digest('base64url') !== sha256) throw notAsNamed(file);
}

/** Hashes again what it parses, because the file may have changed since. */
async function addLines(
  { count, file, sha256 }: KeyShardContent,
  source: ShardFile,
  keys: KeyTableBuilder,
  slice: TimeSlice,
): Promise<void> {
  const hash = createHash('sha256');
  const faults = new Faults(file);
  let lines = 0;
  for await (const line of linesOf(source, (chunk) => hash.update(chunk), file)) {
    const path = `/${lines}`;
    keys.addDerivedKey(asDerivedKey(parseLine(line, file, path), file, path), path, faults);
    faults.throwIfAny();
    lines++;
    if (slice.isUsedUp) await slice.next();
  }
  if (hash.digest('base64url') !== sha256) throw notAsNamed(file);
  if (lines !== count) {
    throw bundleError('shard_mismatch', file, '', `${lines} keys, the bundle names ${count}`);
  }
}

function notAsNamed(file: string): BundleError {
  return bundleError('shard_mismatch', file, '', 'its SHA-256 is not the one that the bundle names');
}

const LINE_FEED = 0x0a;
/** Well above the size of a key with all its attributes. */
const MAX_LINE_BYTES = 256 * 1024;
const utf8 = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true });

/** Each line without its line feed; the last one may lack it. */
async function* linesOf(
  source: ShardFile,
  onChunk: (chunk: Buffer) => void,
  file: string,
): AsyncGenerator<Buffer> {
  let rest: Buffer = Buffer.alloc(0);
  for await (const chunk of source.chunks()) {
    onChunk(chunk);
    const bytes = rest.length === 0 ? chunk : Buffer.concat([rest, chunk]);
    let start = 0;
    for (let end = bytes.indexOf(LINE_FEED); end !== -1; end = bytes.indexOf(LINE_FEED, start)) {
      yield bytes.subarray(start, end);
      start = end + 1;
    }
    rest = bytes.subarray(start);
    if (rest.length > MAX_LINE_BYTES) {
      throw bundleError('payload_malformed', file, '', `a line of more than ${MAX_LINE_BYTES} bytes`);
    }
  }
  if (rest.length > 0) yield rest;
}

function parseLine(line: Buffer, file: string, path: string): unknown {
  try {
    return parseStrictJson(utf8.decode(line));
  } catch {
    throw bundleError('payload_malformed', file, path, 'line is not UTF-8 JSON without repeated members');
  }
}

/** A shard's bytes with its entry for the bundle. */
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
