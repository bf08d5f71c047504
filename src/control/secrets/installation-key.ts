/**
 * Which master key an installation is sealed with. The database knows the key's name; a Control with another key would
 * seal what its fellows cannot open, and could sign nothing.
 * Source: docs/control.md "Running Control".
 */
import type { ControlStore } from '../store/port.ts';
import { MASTER_KEY_BYTES, MasterKey } from './master-key.ts';

export interface MasterKeyFile {
  /** Undefined when there is none. Its permissions have been checked. */
  read(): Promise<string | undefined>;
  /** Complete and on the disk, or not there. @returns false when there was one already */
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
 * The key of the file; a new one when neither file nor database has any. The file is on the disk before the database
 * knows its name.
 * @throws MasterKeyError
 */
export async function establishMasterKey(store: ControlStore, file: MasterKeyFile): Promise<MasterKey> {
  const known = await store.read((tx) => tx.operators.keptMasterKeyId());
  const { key, isNew } = await readOrCreate(file, known);
  const kept = known ?? (await registerKey(store, key));
  if (kept === key.id) return key;
  // Another instance was first; what this one has made has sealed nothing.
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
    throw new MasterKeyError('master_key_invalid', 'the file does not hold 32 bytes in base64url');
  }
  return new MasterKey(bytes);
}

/** @returns the name that is kept: the first one */
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
