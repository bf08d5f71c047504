/**
 * Computes a chain's resulting content: the whole bundle with its deltas applied and shards included. For people and
 * tools; verifiers apply deltas to a compiled table (`compile-delta.ts`), and a test ensures the same result.
 * Source: docs/design/bundle.md "Content" and "Deltas".
 */
import { createHash } from 'node:crypto';
import { parseStrictJson } from '../../protocol/strict-json.ts';
import { BundleError, bundleError, showValue } from '../format/bundle-error.ts';
import type { ResolvedDirectory } from '../format/local-directory.ts';
import type {
  BundleContent,
  ClientContent,
  DeltaContent,
  DerivedKeyContent,
  KeyShardContent,
} from '../format/schema.ts';
import { asDerivedKey } from '../format/shape.ts';
import type { ChainOnDisk } from './read-chain.ts';

export interface SiteContent {
  /** Members of the whole bundle that deltas cannot change. */
  readonly bundle: Omit<BundleContent, 'clients' | 'derived_keys' | 'key_shards'>;
  /** By `client_id`. */
  readonly clients: ReadonlyMap<string, ClientContent>;
  /** By `key_id`. */
  readonly derivedKeys: ReadonlyMap<string, DerivedKeyContent>;
}

/** @throws BundleError `shard_mismatch`, `duplicate`, and errors of the files */
export async function contentOfChain({ bundle, files, steps }: ChainOnDisk): Promise<SiteContent> {
  const { clients = [], derived_keys: keys = [], key_shards: shards = [], ...rest } = bundle.content;
  const tables = new Tables(bundle.file);
  for (const client of clients) tables.addClient(client);
  for (const key of keys) tables.addKey(key);
  for (const shard of shards) for (const key of await readShard(files, shard)) tables.addKey(key);
  let content = rest;
  for (const step of steps) {
    if (step.kind === 'delta') tables.apply(step.content);
    else content = { ...content, expires_at: step.content.expires_at };
  }
  return { bundle: content, clients: tables.clients, derivedKeys: tables.keys };
}

/** The same for unsigned content. */
export function contentOfDraft(
  content: Omit<BundleContent, 'key_shards'>,
  keys: readonly DerivedKeyContent[],
  file: string,
): SiteContent {
  const { clients = [], derived_keys: _, ...bundle } = content;
  const tables = new Tables(file);
  for (const client of clients) tables.addClient(client);
  for (const key of keys) tables.addKey(key);
  return { bundle, clients: tables.clients, derivedKeys: tables.keys };
}

class Tables {
  readonly #file: string;
  readonly clients = new Map<string, ClientContent>();
  readonly keys = new Map<string, DerivedKeyContent>();

  constructor(file: string) {
    this.#file = file;
  }

  addClient(client: ClientContent): void {
    if (this.clients.has(client.client_id)) throw this.#twice('client_id', client.client_id);
    this.clients.set(client.client_id, client);
  }

  addKey(key: DerivedKeyContent): void {
    if (this.keys.has(key.key_id)) throw this.#twice('key_id', key.key_id);
    this.keys.set(key.key_id, key);
  }

  apply(delta: DeltaContent): void {
    for (const client of delta.clients_put) this.clients.set(client.client_id, client);
    for (const keyId of delta.keys_removed) this.keys.delete(keyId);
    for (const key of delta.keys_put) this.keys.set(key.key_id, key);
    if (delta.clients_removed.length === 0) return;
    const gone = new Set(delta.clients_removed);
    for (const clientId of gone) this.clients.delete(clientId);
    // Any keys that these clients still have must have expired.
    for (const [keyId, { client_id: clientId }] of this.keys) if (gone.has(clientId)) this.keys.delete(keyId);
  }

  #twice(member: string, value: string): BundleError {
    return bundleError('duplicate', this.#file, '', `two entries with the ${member} ${showValue(value)}`);
  }
}

/** @throws BundleError `shard_mismatch` when the bytes differ from those that the bundle names */
async function readShard(
  files: ResolvedDirectory,
  { count, file, sha256 }: KeyShardContent,
): Promise<readonly DerivedKeyContent[]> {
  const shard = await files.readShard(file);
  const chunks: Buffer[] = [];
  try {
    for await (const chunk of shard.chunks()) chunks.push(chunk);
  } finally {
    await shard.close();
  }
  const bytes = Buffer.concat(chunks);
  if (createHash('sha256').update(bytes).digest('base64url') !== sha256) {
    throw bundleError('shard_mismatch', file, '', 'not the bytes that the bundle names');
  }
  const keys = parseShard(bytes, file);
  if (keys.length !== count) {
    throw bundleError('shard_mismatch', file, '', `${keys.length} keys, the bundle names ${count}`);
  }
  return keys;
}

/** Parses one derived key for each line; each line ends with a line feed. */
export function parseShard(bytes: Buffer, file: string): readonly DerivedKeyContent[] {
  const lines = bytes.toString('utf8').split('\n');
  if (lines.at(-1) === '') lines.pop();
  return lines.map((line, index) => {
    try {
      return asDerivedKey(parseStrictJson(line), file, `/${index}`);
    } catch (error) {
      throw error instanceof BundleError
        ? error
        : bundleError('payload_malformed', file, `/${index}`, 'not JSON');
    }
  });
}
