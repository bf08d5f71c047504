/**
 * Makes all instances use the master key that sealed the database, whose ID the database stores. An instance with another
 * key could not unseal anything, and others could not unseal what it seals.
 * Source: docs/control.md "Running Control".
 */
import type { ControlStore } from '../store/port.ts';
import { MASTER_KEY_BYTES, MasterKey } from './master-key.ts';

export interface MasterKeyFile {
  /** Undefined when the file does not exist. Its permissions have been checked. */
  read(): Promise<string | undefined>;
  /** Writes atomically and durably. @returns false when the file existed already */
  create(text: string): Promise<boolean>;
  remove(): Promise<void>;
}

export class MasterKeyError extends Error {
  override readonly name = 'MasterKeyError';
  readonly code: 'master_key_missing' | 'master_key_invalid' | 'master_key_mismatch';

  constructor(code: MasterKeyError['code'], message: string) {
    super(message);
    this.code = code;
  }
}

/**
 * Reads the key file, or creates it when neither file nor database has a key. The file is on disk before the database
 * stores the key's ID.
 * @throws MasterKeyError
 */
export async function establishMasterKey(store: ControlStore, file: MasterKeyFile): Promise<MasterKey> {
  const known = await store.read((tx) => tx.operators.keptMasterKeyId());
  const { key, isNew } = await readOrCreate(file, known);
  const kept = known ?? (await registerKey(store, key));
  if (kept === key.id) return key;
  // Another instance was first; this one's key has sealed nothing.
  if (isNew) await file.remove();
  throw new MasterKeyError('master_key_mismatch', 'the database is sealed with another master key');
}

async function readOrCreate(
  file: MasterKeyFile,
  known: string | undefined,
): Promise<{ readonly key: MasterKey; readonly isNew: boolean }> {
  const text = await file.read();
  if (text !== undefined) return { key: parseKey(text), isNew: false };
  if (known !== undefined) {
    throw new MasterKeyError(
      'master_key_missing',
      'the file is not there, and the database is sealed with its key',
    );
  }
  const bytes = MasterKey.random();
  if (await file.create(`${bytes.toString('base64url')}\n`))
    return { key: new MasterKey(bytes), isNew: true };
  return { key: parseKey((await file.read()) ?? ''), isNew: false };
}

function parseKey(text: string): MasterKey {
  const bytes = Buffer.from(text.trim(), 'base64url');
  if (bytes.length !== MASTER_KEY_BYTES || bytes.toString('base64url') !== text.trim()) {
    throw new MasterKeyError('master_key_invalid', 'the file does not contain 32 bytes in base64url');
  }
  return new MasterKey(bytes);
}

/** @returns the stored key ID: the first one registered */
async function registerKey(store: ControlStore, key: MasterKey): Promise<string> {
  return store.mutate({ kind: 'installation' }, async (tx) => {
    const kept = await tx.operators.masterKeyId(key.id);
    const audit = {
      kind: 'proofgate.control.master_key.register',
      actor: 'control',
      resource: { kind: 'master_key', id: kept },
      place: {},
    } as const;
    return { result: kept, audit: [audit] };
  });
}
