import { hash } from 'node:crypto';
import { describe, expect, it } from '@jest/globals';
import { compileBundle } from '../../../src/bundle/compile/compile.ts';
import { makeShards } from '../../../src/bundle/compile/key-shards.ts';
import { headOf } from '../../../src/bundle/format/chain.ts';
import type { DerivedKeyContent } from '../../../src/bundle/format/schema.ts';
import { rejection } from '../../support/bundle/rejection.ts';
import { bundleContent, newTestKeys } from '../../support/fixtures/bundle-content.ts';

const { derived_keys: inline = [], ...rest } = bundleContent(newTestKeys());
const [template] = inline;
const HEAD = headOf(undefined, Buffer.from('{}')) ?? '';
const keyNamed = (key_id: string) => JSON.stringify({ ...template, key_id });

/** Loads a bundle whose only shards hold these lines; counts and hashes fit unless they are given. */
async function load(shards: readonly string[], change: { count?: number; sha256?: string } = {}) {
  const files = new Map(shards.map((text, index) => [`keys-000${index + 1}.jsonl`, Buffer.from(text)]));
  const entries = [...files].map(([file, bytes]) => ({
    file,
    count: Math.max(1, bytes.toString().split('\n').filter(Boolean).length),
    sha256: hash('sha256', bytes, 'base64url'),
    ...change,
  }));
  const snapshot = await compileBundle(
    { ...rest, key_shards: entries },
    { file: 'bundle.jws', head: HEAD, readShard: async (file) => files.get(file) ?? Buffer.alloc(0) },
  );
  return snapshot.keys;
}

describe('shards', () => {
  it('hold a key a line, with or without a line feed at the end', async () => {
    const keys = await load([`${keyNamed('a')}\n${keyNamed('b')}\n`, keyNamed('c')]);
    expect(['a', 'b', 'c'].map((id) => keys.get(id)?.kind)).toEqual(Array(3).fill('derived_key'));
    // Beside the broker's.
    expect(keys.size).toBe(4);
  });

  it('are made of at most 50,000 keys each, counted and hashed', () => {
    const key: DerivedKeyContent = JSON.parse(keyNamed('a'));
    const shards = makeShards(Array.from({ length: 50_001 }, () => key));
    expect(shards.map(({ entry }) => [entry.file, entry.count])).toEqual([
      ['keys-0001.jsonl', 50_000],
      ['keys-0002.jsonl', 1],
    ]);
    for (const { entry, bytes } of shards) expect(hash('sha256', bytes, 'base64url')).toBe(entry.sha256);
    expect(makeShards([])).toEqual([]);
  });

  const one = `${keyNamed('a')}\n`;
  it.each([
    ['other bytes', [one], { sha256: 'A'.repeat(43) }, 'keys-0001.jsonl shard_mismatch '],
    ['fewer keys', [one], { count: 2 }, 'keys-0001.jsonl shard_mismatch '],
    ['more keys', [one + keyNamed('b')], { count: 1 }, 'keys-0001.jsonl shard_mismatch '],
    ['an empty line', [`${one}\n`], { count: 1 }, 'keys-0001.jsonl payload_malformed /1'],
    ['not JSON', [`${one}x`], {}, 'keys-0001.jsonl payload_malformed /1'],
    ['a member twice', ['{"key_id":"a","key_id":"b"}'], {}, 'keys-0001.jsonl payload_malformed /0'],
    [
      'unknown member',
      [one + JSON.stringify({ ...template, x: 1 })],
      {},
      'keys-0001.jsonl unknown_member /1/x',
    ],
    ['a key twice in a shard', [one + one], {}, 'keys-0001.jsonl duplicate /1/key_id'],
    ['a key twice in two shards', [one, one], {}, 'keys-0002.jsonl duplicate /0/key_id'],
    ['a key of the bundle', [keyNamed('broker-1')], {}, 'keys-0001.jsonl duplicate /0/key_id'],
    [
      'unknown client',
      [JSON.stringify({ ...template, client_id: 'x' })],
      {},
      'keys-0001.jsonl client_unknown /0/client_id',
    ],
  ])('are refused: %s', async (_name, shards, change, expected) => {
    const found = await rejection(() => load(shards, change));
    expect(found === 'no error' ? found : `${found.file} ${found.code} ${found.path}`).toBe(expected);
  });
});
