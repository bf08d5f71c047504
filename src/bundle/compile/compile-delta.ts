/**
 * Compiles a delta's content to a change of the key table. It checks everything first and changes nothing, so a
 * rejected delta has no effect; all its faults are reported together. The cost depends only on the size of the delta.
 * Source: docs/design/bundle.md "Deltas".
 */
import { Faults, pointer, showValue } from '../format/bundle-error.ts';
import { MAX_CLIENTS } from '../format/bundle-limits.ts';
import type { OpenedDelta, OpenedStep } from '../format/open-document.ts';
import type { DeltaContent, DerivedKeyContent } from '../format/schema.ts';
import type { Steps, TimeSlice } from '../format/time-slice.ts';
import type { LiveSnapshot } from './compile.ts';
import { compileClient } from './compile-identities.ts';
import { compileDerivedKey, importKeyAt, type KeyImporter, noClient, requiredTime } from './compile-keys.ts';
import type { LiveKeyTable, NewDerivedKey, TableChange } from './key-table.ts';
import type { ClientEntry } from './snapshot.ts';

interface CompileDeltaOptions {
  readonly importKey: KeyImporter;
  /** Derived keys that expire before this time, in seconds, are skipped. Default: none is. */
  readonly forgetBeforeSeconds?: number | undefined;
}

/**
 * Pauses after each key. The table must not receive another change before this one; expired keys may be removed
 * meanwhile.
 * @throws BundleError with every fault found
 */
function* compileDeltaInSteps(
  { content, file, issuedAtSeconds }: OpenedDelta,
  table: LiveKeyTable,
  { importKey, forgetBeforeSeconds = 0 }: CompileDeltaOptions,
): Steps<TableChange> {
  const faults = new Faults(file);
  const clientsPut = compileClientsPut(content, table, faults);
  const keysRemoved = [...checkKeysRemoved(content, table, faults)];
  const keysPut: NewDerivedKey[] = [];
  const seen = new Set<string>(keysRemoved);
  const clients = new ClientsAfter(content, table);
  for (const [index, entry] of content.keys_put.entries()) {
    const path = pointer('keys_put', index);
    checkName(entry, path, { seen, table, faults });
    if (!clients.has(entry.client_id)) {
      faults.add('client_unknown', `${path}/client_id`, noClient(entry.client_id));
    }
    const expiresAtSeconds = requiredTime(entry.expires_at, `${path}/expires_at`, faults);
    if (expiresAtSeconds < forgetBeforeSeconds) {
      keysRemoved.push(entry.key_id);
      continue;
    }
    const key = importKeyAt(entry.jwk, entry.key_id, path, importKey, faults);
    if (key !== undefined) keysPut.push(compileDerivedKey(entry, key, expiresAtSeconds));
    yield;
  }
  checkClientsRemoved(content, { table, gone: seen, issuedAtSeconds, faults });
  checkClientCount(content, table, faults);
  faults.throwIfAny();
  return { keysRemoved, clientsPut, keysPut, clientsRemoved: content.clients_removed };
}

/** The clients as they will be after the delta. */
class ClientsAfter {
  readonly #put: ReadonlySet<string>;
  readonly #removed: ReadonlySet<string>;
  readonly #table: LiveKeyTable;

  constructor(content: DeltaContent, table: LiveKeyTable) {
    this.#put = new Set(content.clients_put.map(({ client_id }) => client_id));
    this.#removed = new Set(content.clients_removed);
    this.#table = table;
  }

  has(clientId: string): boolean {
    if (this.#removed.has(clientId)) return false;
    return this.#put.has(clientId) || this.#table.client(clientId) !== undefined;
  }
}

function compileClientsPut(
  content: DeltaContent,
  table: LiveKeyTable,
  faults: Faults,
): readonly ClientEntry[] {
  const seen = new Set<string>();
  return content.clients_put.map((entry, index) => {
    const path = pointer('clients_put', index);
    if (seen.has(entry.client_id)) {
      faults.add('duplicate', `${path}/client_id`, `${showValue(entry.client_id)} occurs twice`);
    }
    seen.add(entry.client_id);
    if (table.isBrokerIssuer(entry.issuer)) {
      // A broker must not be able to issue passports as a client.
      faults.add('issuer_of_client', `${path}/issuer`, `${showValue(entry.issuer)} is a broker's issuer`);
    }
    return compileClient(entry, path, faults);
  });
}

/** A missing key is not a fault, because it may have expired here after the delta was made. */
function checkKeysRemoved(content: DeltaContent, table: LiveKeyTable, faults: Faults): readonly string[] {
  const seen = new Set<string>();
  for (const [index, keyId] of content.keys_removed.entries()) {
    const path = pointer('keys_removed', index);
    if (seen.has(keyId)) faults.add('duplicate', path, `key ${showValue(keyId)} occurs twice`);
    seen.add(keyId);
    if (table.get(keyId)?.kind === 'issuer_key') {
      faults.add('value_invalid', path, `${showValue(keyId)} is an issuer's key, which no delta can remove`);
    }
  }
  return content.keys_removed;
}

/** Adds the name to `seen`: the names that the delta removes, or has put so far. */
function checkName(
  { key_id: keyId }: DerivedKeyContent,
  path: string,
  {
    seen,
    table,
    faults,
  }: { readonly seen: Set<string>; readonly table: LiveKeyTable; readonly faults: Faults },
): void {
  if (seen.has(keyId) || table.get(keyId)?.kind === 'issuer_key') {
    faults.add('duplicate', `${path}/key_id`, `key ${showValue(keyId)} occurs twice`);
  }
  seen.add(keyId);
}

interface RemovalInputs {
  readonly table: LiveKeyTable;
  /** Keys that the delta removes, or puts again for a client that stays. */
  readonly gone: ReadonlySet<string>;
  readonly issuedAtSeconds: number;
  readonly faults: Faults;
}

function checkClientsRemoved(
  content: DeltaContent,
  { table, gone, issuedAtSeconds, faults }: RemovalInputs,
): void {
  const put = new Set(content.clients_put.map(({ client_id }) => client_id));
  const seen = new Set<string>();
  for (const [index, clientId] of content.clients_removed.entries()) {
    const path = pointer('clients_removed', index);
    if (seen.has(clientId) || put.has(clientId)) {
      faults.add('duplicate', path, `${showValue(clientId)} occurs twice`);
    }
    seen.add(clientId);
    if (table.client(clientId) === undefined) faults.add('client_unknown', path, noClient(clientId));
    const left = firstLiveKey(table, clientId, gone, issuedAtSeconds);
    if (left !== undefined) {
      faults.add('client_in_use', path, `${showValue(clientId)} has keys left, ${showValue(left)} for one`);
    }
  }
}

/** Keys that had expired when the delta was made are removed with their client, whether or not it names them. */
function firstLiveKey(
  table: LiveKeyTable,
  clientId: string,
  gone: ReadonlySet<string>,
  issuedAtSeconds: number,
): string | undefined {
  for (const keyId of table.keyIdsOf(clientId)) {
    const key = table.get(keyId);
    const isLive = key?.kind === 'derived_key' && key.expiresAtSeconds > issuedAtSeconds;
    if (isLive && !gone.has(keyId)) return keyId;
  }
  return undefined;
}

/** Limits the number of clients to that of a whole bundle. */
function checkClientCount(content: DeltaContent, table: LiveKeyTable, faults: Faults): void {
  const added = content.clients_put.filter(({ client_id }) => table.client(client_id) === undefined).length;
  const count = table.clientCount + added - content.clients_removed.length;
  if (count > MAX_CLIENTS) {
    faults.add('value_invalid', '/clients_put', `makes ${count} clients, at most ${MAX_CLIENTS}`);
  }
}

/**
 * Applies a delta or link to a snapshot. The new snapshot shares its tables with the previous one: see `key-table.ts`.
 * Source: docs/design/bundle.md "Deltas" and "Freshness".
 */

/** A step that has been checked against its snapshot and not applied yet. */
interface PreparedStep {
  /** Applies the step at once; cannot fail. @returns the new snapshot */
  commit(): LiveSnapshot;
}

/**
 * The caller has checked that the step continues the snapshot's position.
 * @throws BundleError with every fault found; then nothing has changed
 */
export async function prepareStep(
  snapshot: LiveSnapshot,
  step: OpenedStep,
  { slice, ...options }: CompileDeltaOptions & { readonly slice: TimeSlice },
): Promise<PreparedStep> {
  const after = { ...snapshot, ...step.position, ...timesAfter(step) };
  if (step.kind === 'link') return { commit: () => after };
  const change: TableChange = await slice.run(compileDeltaInSteps(step, snapshot.keys, options));
  return {
    commit: () => {
      snapshot.keys.apply(change);
      return after;
    },
  };
}

/** Freshness statements about the previous revision do not apply to this one. */
function timesAfter(step: OpenedStep) {
  const { issuedAtSeconds } = step;
  const times = { issuedAtSeconds, freshAsOfSeconds: issuedAtSeconds };
  return step.kind === 'link' ? { ...times, expiresAtSeconds: step.expiresAtSeconds } : times;
}
