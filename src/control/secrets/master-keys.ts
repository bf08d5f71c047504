/**
 * The master keys of an installation: one, or during a rotation the new and the old one. The database records which of
 * them encrypts, so that all instances use the same one. Each of them can decrypt.
 * Source: docs/operate/control-upkeep.md "The master key".
 */
import { decodeBase64url } from '../../protocol/base64url.ts';
import { REDACTED } from '../../protocol/redacted.ts';
import type { Transaction } from '../store/transaction.ts';
import { MASTER_KEY_BYTES, MasterKey, UnsealError } from './master-key.ts';

export class MasterKeyError extends Error {
  override readonly name = 'MasterKeyError';
  readonly code:
    | 'database_empty'
    | 'master_key_invalid'
    | 'master_key_mismatch'
    | 'master_key_missing'
    | 'master_key_unchanged'
    | 'master_keys_equal'
    | 'secret_undecryptable';

  constructor(code: MasterKeyError['code'], message: string) {
    super(message);
    this.code = code;
  }
}

export class MasterKeys {
  /** In the order of the file. */
  readonly all: readonly [MasterKey, ...MasterKey[]];

  constructor(first: MasterKey, ...others: readonly MasterKey[]) {
    this.all = [first, ...others];
  }

  /** A new key, for a database that has none. */
  static random(): MasterKeys {
    return new MasterKeys(new MasterKey(MasterKey.random()));
  }

  /** One key on each line. @throws MasterKeyError `master_key_invalid`, `master_keys_equal` */
  static parse(text: string): MasterKeys {
    const [first, second, ...others] = text.trim().split(/\r?\n/).map(parseKey);
    if (first === undefined || others.length > 0) {
      throw new MasterKeyError('master_key_invalid', 'the file contains more than two keys');
    }
    if (first.id === second?.id) {
      throw new MasterKeyError('master_keys_equal', 'both lines of the file contain the same key');
    }
    return second === undefined ? new MasterKeys(first) : new MasterKeys(first, second);
  }

  has(id: string): boolean {
    return this.all.some((key) => key.id === id);
  }

  /** The key that encrypts now. @throws MasterKeyError `master_key_mismatch` when it is not one of these */
  async current(tx: Transaction): Promise<MasterKey> {
    const kept = await tx.operators.masterKey();
    if (kept === undefined) return this.all[0];
    const key = this.all.find(({ id }) => id === kept.id);
    if (key !== undefined) return key;
    throw new MasterKeyError('master_key_mismatch', 'the database is encrypted with another master key');
  }

  /** @throws UnsealError */
  unseal(sealed: string, purpose: string): Buffer {
    for (const key of this.all) {
      const secret = key.unsealed(sealed, purpose);
      if (secret !== undefined) return secret;
    }
    throw new UnsealError('the sealed text does not belong to these keys and this purpose');
  }

  toString(): string {
    return REDACTED;
  }

  toJSON(): string {
    return REDACTED;
  }
}

function parseKey(line: string): MasterKey {
  const bytes = decodeBase64url(line.trim());
  if (bytes?.length === MASTER_KEY_BYTES) return new MasterKey(bytes);
  throw new MasterKeyError('master_key_invalid', 'each line of the file must have 32 bytes in base64url');
}
