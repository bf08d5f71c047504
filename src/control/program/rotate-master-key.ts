/** `proofgate control rotate-master-key`: encrypts the database's secrets with the first key of the key file. */
import { access } from 'node:fs/promises';
import { join } from 'node:path';
import { secretFile } from '../../process/files/secret-files.ts';
import { usageError } from '../../process/program/errors.ts';
import { MasterKeyError, MasterKeys } from '../secrets/master-keys.ts';
import { planDatabase } from './control-plan.ts';
import type { DatabaseSettings } from './control-settings.ts';
import { type MasterKeyRotation, rotateMasterKey } from './master-key-rotation.ts';
import { masterKeyFault, openControlStore } from './open-store.ts';

export interface RotatedMasterKey extends MasterKeyRotation {
  readonly masterKeyFile: string;
}

/** @throws CliError */
export async function rotateControlMasterKey(settings: DatabaseSettings): Promise<RotatedMasterKey> {
  const plan = await planDatabase(settings);
  const { dataDirectory, databaseUrl, masterKeyFile } = plan;
  try {
    const keys = await readKeys(masterKeyFile);
    if (databaseUrl === undefined) await assertDatabaseFile(dataDirectory);
    const store = await openControlStore(plan, Date.now);
    try {
      return { ...(await rotateMasterKey(store, keys, Date.now)), masterKeyFile };
    } finally {
      await store.close();
    }
  } catch (error) {
    throw masterKeyFault(error, masterKeyFile);
  }
}

/** Unlike a start of Control, this never creates a key. */
async function readKeys(file: string): Promise<MasterKeys> {
  const text = await secretFile(file).read();
  if (text === undefined)
    throw new MasterKeyError('master_key_missing', 'the file does not exist: check --master-key-file');
  return MasterKeys.parse(text);
}

/** Opening would create the file. @throws CliError `database_empty` */
async function assertDatabaseFile(dataDirectory: string): Promise<void> {
  const { DATABASE_FILE } = await import('../store/sqlite.ts');
  const file = join(dataDirectory, DATABASE_FILE);
  const exists = await access(file).then(
    () => true,
    () => false,
  );
  if (!exists) throw usageError('database_empty', `${file} is not there: no Control has used --data-dir yet`);
}
