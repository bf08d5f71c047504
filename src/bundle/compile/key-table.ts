/**
 * The keys and clients of a bundle, which deltas change in place.
 *
 * A delta's cost must depend only on its size, so tables are not copied for each revision. Snapshots share one table
 * until the next whole bundle. That is safe because a decision is synchronous and reads its key once
 * (`src/verifier/decision/decide.ts`). Each entry is immutable and replaced as a whole, so the decision sees the key
 * before or after a change, never half of it. No change alters what a pending request reads later (the client's name,
 * for audit). An immutable tree would copy a path for each key and make every lookup walk it. It would only preserve
 * older keys, which must not be used: the next request with a revoked key is denied.
 *
 * Keys refer to their client by a slot, so that a client's new grants apply to all its keys at once.
 */
import type { Attributes } from '../../protocol/passport.ts';
import type { PublicKey } from '../../protocol/public-key.ts';
import type { BundleKey, ClientEntry, DerivedKey, IssuerKey, KeyTable } from './snapshot.ts';

/** A derived key to be added to a table. */
export type NewDerivedKey = Omit<DerivedKey, 'client' | 'kind'>;

/** A delta's changes, after they have been checked against the table. */
export interface TableChange {
  readonly keysRemoved: readonly string[];
  readonly clientsPut: readonly ClientEntry[];
  readonly keysPut: readonly NewDerivedKey[];
  /** Their remaining keys have expired, and are removed with them. */
  readonly clientsRemoved: readonly string[];
}

interface ClientSlot {
  entry: ClientEntry;
  readonly keyIds: Set<string>;
}

export class LiveKeyTable implements KeyTable {
  readonly #keys = new PartitionedMap<IssuerKey | DerivedKeyEntry>();
  readonly #clients = new PartitionedMap<ClientSlot>();
  readonly #expiry = new ExpiryIndex();
  readonly #brokerIssuers: ReadonlySet<string>;

  /** @param brokerIssuers issuers that no client may have */
  constructor(brokerIssuers: ReadonlySet<string> = new Set()) {
    this.#brokerIssuers = brokerIssuers;
  }

  get size(): number {
    return this.#keys.size;
  }

  get clientCount(): number {
    return this.#clients.size;
  }

  get(keyId: string): BundleKey | undefined {
    return this.#keys.get(keyId);
  }

  client(clientId: string): ClientEntry | undefined {
    return this.#clients.get(clientId)?.entry;
  }

  /** Names of the client's keys, including expired ones that have not been removed yet. */
  keyIdsOf(clientId: string): Iterable<string> {
    return this.#clients.get(clientId)?.keyIds ?? [];
  }

  isBrokerIssuer(issuer: string): boolean {
    return this.#brokerIssuers.has(issuer);
  }

  /** The key must not exist yet. */
  addIssuerKey(key: IssuerKey): void {
    this.#keys.set(key.keyId, key);
  }

  putClient(entry: ClientEntry): void {
    const slot = this.#clients.get(entry.clientId);
    if (slot === undefined) this.#clients.set(entry.clientId, { entry, keyIds: new Set() });
    else slot.entry = entry;
  }

  /** Replaces a derived key of the same name. */
  putDerivedKey(key: NewDerivedKey): void {
    const slot = this.#clients.get(key.clientId);
    if (slot === undefined) throw new Error('a derived key without a client');
    this.#removeDerivedKey(key.keyId);
    this.#keys.set(key.keyId, new DerivedKeyEntry(key, slot));
    slot.keyIds.add(key.keyId);
    this.#expiry.add(key.keyId, key.expiresAtSeconds);
  }

  /**
   * Applies a checked change; cannot fail. Synchronous, so that no request sees half of it: about a microsecond for
   * each entry.
   */
  apply(change: TableChange): void {
    for (const keyId of change.keysRemoved) this.#removeDerivedKey(keyId);
    for (const entry of change.clientsPut) this.putClient(entry);
    for (const key of change.keysPut) this.putDerivedKey(key);
    for (const clientId of change.clientsRemoved) {
      for (const keyId of this.keyIdsOf(clientId)) this.#removeDerivedKey(keyId);
      this.#clients.delete(clientId);
    }
  }

  /**
   * Removes derived keys that expired before the given time: they are `key_unknown` from then on.
   * @param most maximum number of keys to remove now
   * @returns number of removed keys
   */
  forgetLapsed(beforeSeconds: number, most: number): number {
    const lapsed = this.#expiry.takeLapsed(beforeSeconds, most);
    for (const keyId of lapsed) this.#removeDerivedKey(keyId);
    return lapsed.length;
  }

  #removeDerivedKey(keyId: string): void {
    const key = this.#keys.get(keyId);
    if (!(key instanceof DerivedKeyEntry)) return;
    this.#keys.delete(keyId);
    this.#clients.get(key.clientId)?.keyIds.delete(keyId);
    this.#expiry.remove(keyId, key.expiresAtSeconds);
  }
}

/** Immutable except for its client, which the client's slot holds. */
class DerivedKeyEntry implements DerivedKey {
  readonly kind = 'derived_key';
  readonly keyId: string;
  readonly clientId: string;
  readonly key: PublicKey;
  readonly status: DerivedKey['status'];
  readonly expiresAtSeconds: number;
  readonly provenance: Attributes;
  readonly #slot: ClientSlot;

  constructor(key: NewDerivedKey, slot: ClientSlot) {
    this.keyId = key.keyId;
    this.clientId = key.clientId;
    this.key = key.key;
    this.status = key.status;
    this.expiresAtSeconds = key.expiresAtSeconds;
    this.provenance = key.provenance;
    this.#slot = slot;
  }

  get client(): ClientEntry {
    return this.#slot.entry;
  }
}

/**
 * Index of names by expiry: buckets of about a minute, the earliest on top of a heap. Adding and removing a name takes
 * the same time however many there are. Finding expired names costs only what has expired.
 */

const BUCKET_SECONDS = 64;

export class ExpiryIndex {
  readonly #buckets = new Map<number, Set<string>>();
  /** Bucket numbers in a binary heap: none is later than its children. */
  readonly #heap: number[] = [];

  add(name: string, expiresAtSeconds: number): void {
    const number = bucketOf(expiresAtSeconds);
    const bucket = this.#buckets.get(number);
    if (bucket !== undefined) {
      bucket.add(name);
      return;
    }
    this.#buckets.set(number, new Set([name]));
    pushNumber(this.#heap, number);
  }

  /** @param expiresAtSeconds the value that was added */
  remove(name: string, expiresAtSeconds: number): void {
    // An empty bucket stays until its expiry, because its number is in the heap.
    this.#buckets.get(bucketOf(expiresAtSeconds))?.delete(name);
  }

  /** Removes at most `most` names that expired before the given time in seconds, rounded to the later bucket. */
  takeLapsed(beforeSeconds: number, most: number): readonly string[] {
    const taken: string[] = [];
    for (;;) {
      const first = this.#heap[0];
      if (first === undefined || (first + 1) * BUCKET_SECONDS > beforeSeconds) return taken;
      const bucket = this.#buckets.get(first);
      for (const name of bucket ?? []) {
        if (taken.length >= most) return taken;
        bucket?.delete(name);
        taken.push(name);
      }
      this.#buckets.delete(first);
      popNumber(this.#heap);
    }
  }
}

function bucketOf(expiresAtSeconds: number): number {
  return Math.floor(expiresAtSeconds / BUCKET_SECONDS);
}

function pushNumber(heap: number[], number: number): void {
  let at = heap.length;
  while (at > 0) {
    const parentAt = (at - 1) >> 1;
    const parent = heap[parentAt];
    if (parent === undefined || parent <= number) break;
    heap[at] = parent;
    at = parentAt;
  }
  heap[at] = number;
}

function popNumber(heap: number[]): void {
  const last = heap.pop();
  if (last === undefined || heap.length === 0) return;
  let at = 0;
  for (;;) {
    const [left, right] = [heap[2 * at + 1], heap[2 * at + 2]];
    if (left === undefined) break;
    const [child, childAt] = right !== undefined && right < left ? [right, 2 * at + 2] : [left, 2 * at + 1];
    if (child >= last) break;
    heap[at] = child;
    at = childAt;
  }
  heap[at] = last;
}

/**
 * A map of strings, partitioned into many small ones. A `Map` that grows, or that has had many entries removed, is
 * rebuilt as a whole by some insertion. That takes milliseconds at 100,000 entries, on a process that answers requests.
 * A partition is rebuilt in microseconds.
 */

const PARTITIONS = 256;

export class PartitionedMap<V> {
  readonly #parts: readonly Map<string, V>[] = Array.from({ length: PARTITIONS }, () => new Map<string, V>());
  #size = 0;

  get size(): number {
    return this.#size;
  }

  get(key: string): V | undefined {
    return this.#partOf(key).get(key);
  }

  has(key: string): boolean {
    return this.#partOf(key).has(key);
  }

  set(key: string, value: V): void {
    const part = this.#partOf(key);
    const before = part.size;
    part.set(key, value);
    this.#size += part.size - before;
  }

  delete(key: string): boolean {
    const deleted = this.#partOf(key).delete(key);
    if (deleted) this.#size--;
    return deleted;
  }

  #partOf(key: string): Map<string, V> {
    const part = this.#parts[partitionOf(key)];
    if (part === undefined) throw new Error('no such partition');
    return part;
  }
}

const HASHED_CHARACTERS = 8;

/** FNV-1a, 32 bits, of the last characters, which vary most: spreads names that differ only in a few of them. */
function partitionOf(key: string): number {
  let hash = 0x811c9dc5;
  for (let i = Math.max(0, key.length - HASHED_CHARACTERS); i < key.length; i++)
    hash = Math.imul(hash ^ key.charCodeAt(i), 0x01000193);
  return (hash >>> 0) % PARTITIONS;
}
