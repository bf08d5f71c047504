/**
 * Makes all instances use the master key that encrypts the database's secrets, whose ID the database stores. An instance
 * with another key could not decrypt anything, and others could not decrypt what it encrypts.
 * Source: docs/operate/control.md "Running Control".
 */
import type { ControlStore } from '../store/port.ts';
import type { KeptMasterKey } from '../store/repositories/operators-repository.ts';
import { MasterKey } from './master-key.ts';
import { MasterKeyError, MasterKeys } from './master-keys.ts';

export interface MasterKeyFile {
  /** Undefined when the file does not exist. Its permissions have been checked. */
  read(): Promise<string | undefined>;
  /** Writes atomically and durably. @returns false when the file existed already */
  create(text: string): Promise<boolean>;
  remove(): Promise<void>;
}

/**
 * Reads the key file, or creates it when neither file nor database has a key. The file is on disk before the database
 * stores the key's ID.
 * @throws MasterKeyError
 */
export async function establishMasterKeys(store: ControlStore, file: MasterKeyFile): Promise<MasterKeys> {
  const known = await store.read((tx) => tx.operators.masterKey());
  const { keys, isNew } = await readOrCreate(file, known !== undefined);
  const kept = known ?? (await registerKey(store, keys.all[0]));
  if (keys.has(kept.id) && (kept.replacing === undefined || keys.has(kept.replacing))) return keys;
  // Another instance registered its key first, and this one's key has encrypted nothing.
  if (isNew) await file.remove();
  throw new MasterKeyError(
    'master_key_mismatch',
    keys.has(kept.id)
      ? 'a rotation is not finished: the file must list the old key, too, until proofgate control rotate-master-key is done'
      : 'the database is encrypted with another master key',
  );
}

async function readOrCreate(
  file: MasterKeyFile,
  isKnown: boolean,
): Promise<{ readonly keys: MasterKeys; readonly isNew: boolean }> {
  const text = await file.read();
  if (text !== undefined) return { keys: MasterKeys.parse(text), isNew: false };
  if (isKnown) {
    throw new MasterKeyError(
      'master_key_missing',
      'the file is not there, and the database is encrypted with its key',
    );
  }
  const bytes = MasterKey.random();
  if (await file.create(`${bytes.toString('base64url')}\n`))
    return { keys: new MasterKeys(new MasterKey(bytes)), isNew: true };
  return { keys: MasterKeys.parse((await file.read()) ?? ''), isNew: false };
}

/** @returns what the database stores: the first key registered */
async function registerKey(store: ControlStore, key: MasterKey): Promise<KeptMasterKey> {
  return store.mutate({ kind: 'installation' }, async (tx) => {
    const kept = await tx.operators.registerMasterKey(key.id);
    const audit = {
      kind: 'proofgate.control.master_key.register',
      actor: 'control',
      resource: { kind: 'master_key', id: kept.id },
      place: {},
    } as const;
    return { result: kept, audit: [audit] };
  });
}
