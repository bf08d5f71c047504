/**
 * The keys and clients of a bundle, changed in place.
 *
 * A delta must cost what it holds, so tables are not copied for each revision, and snapshots share one table until the
 * next whole bundle. That is sound because a decision is synchronous and reads its key once (`src/verifier/decision/decide.ts`):
 * it sees the key as it was before a change or after it, never half of it, for each entry is immutable and replaced as a
 * whole. What a request that is still in flight reads afterwards (the client's name, for audit) no change alters.
 * An immutable tree would copy a path for each key and cost every look-up a walk, for a view of older keys that nobody
 * may use: a revoked key is to be refused by whoever asks next.
 *
 * Keys refer to their client by a slot, so that a client's new grants hold for all its keys at once.
 */
import type { Attributes } from '../../protocol/passport.ts';
import type { PublicKey } from '../../protocol/public-key.ts';
import { ExpiryIndex } from './expiry-index.ts';
import { PartitionedMap } from './partitioned-map.ts';
import type { BundleKey, ClientEntry, DerivedKey, IssuerKey, KeyTable } from './snapshot.ts';

/** A derived key on its way into a table. */
export interface NewDerivedKey {
  readonly keyId: string;
  readonly clientId: string;
  readonly key: PublicKey;
  readonly status: DerivedKey['status'];
  readonly expiresAtSeconds: number;
  readonly provenance: Attributes;
}

/** What a delta comes to, once everything in it has been checked against the table. */
export interface TableChange {
  readonly keysRemoved: readonly string[];
  readonly clientsPut: readonly ClientEntry[];
  readonly keysPut: readonly NewDerivedKey[];
  /** Keys that are left to them have lapsed, and go with them. */
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

  /** Names of the client's keys, lapsed ones that are still here included. */
  keyIdsOf(clientId: string): Iterable<string> {
    return this.#clients.get(clientId)?.keyIds ?? [];
  }

  isBrokerIssuer(issuer: string): boolean {
    return this.#brokerIssuers.has(issuer);
  }

  /** Must not be there yet. */
  addIssuerKey(key: IssuerKey): void {
    this.#keys.set(key.keyId, key);
  }

  putClient(entry: ClientEntry): void {
    const slot = this.#clients.get(entry.clientId);
    if (slot === undefined) this.#clients.set(entry.clientId, { entry, keyIds: new Set() });
    else slot.entry = entry;
  }

  /** Replaces a derived key of that name. */
  putDerivedKey(key: NewDerivedKey): void {
    const slot = this.#clients.get(key.clientId);
    if (slot === undefined) throw new Error('a derived key without a client');
    this.#removeDerivedKey(key.keyId);
    this.#keys.set(key.keyId, new DerivedKeyEntry(key, slot));
    slot.keyIds.add(key.keyId);
    this.#expiry.add(key.keyId, key.expiresAtSeconds);
  }

  /**
   * Makes a change that has been checked; nothing in it can fail. In one go, so that no request sees half of it: a
   * microsecond or so for each entry.
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
   * Lets go of derived keys that lapsed before the moment: they are `key_unknown` from then on.
   * @param most keys to let go of now
   * @returns how many were
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

/** Immutable but for its client, which is whatever the client's slot holds. */
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
