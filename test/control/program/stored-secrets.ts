/** Finds what a master key opens in a database, without knowing where secrets are or what they were sealed for. */
import { createDecipheriv, hkdfSync } from 'node:crypto';
import type { ControlDatabase } from '../../support/control/control-database.ts';

const SEALED = /[A-Za-z0-9_-]{60,}/g;
/** Ed25519 in PKCS#8 (RFC 8410), and a step of a sign-in. */
const SECRETS = [Buffer.from('302e020100300506032b6570', 'hex'), Buffer.from('{"step":')];

/** Texts in any column of any table that the key decrypts. */
export async function storedSecrets(
  database: ControlDatabase,
  tables: readonly string[],
  masterKey: string,
): Promise<readonly string[]> {
  const queries = Object.fromEntries(tables.map((table) => [table, `select * from ${table}`]));
  const rows = Object.values(await database.query(queries)).flat();
  const texts = rows.flatMap((row) => Object.values(row)).filter((value) => typeof value === 'string');
  return texts.flatMap((text) => text.match(SEALED) ?? []).filter((sealed) => opens(sealed, masterKey));
}

/** AES-256-GCM encrypts as AES-256-CTR whose counter begins at 2: the tag, and with it the purpose, is not checked. */
function opens(sealed: string, masterKey: string): boolean {
  const master = Buffer.from(masterKey, 'base64url');
  const key = Buffer.from(hkdfSync('sha256', master, Buffer.alloc(0), 'proofgate-control-sealing', 32));
  const bytes = Buffer.from(sealed, 'base64url');
  const counter = Buffer.concat([bytes.subarray(0, 12), Buffer.from([0, 0, 0, 2])]);
  const text = createDecipheriv('aes-256-ctr', key, counter).update(bytes.subarray(12));
  return SECRETS.some((secret) => text.subarray(0, secret.length).equals(secret));
}

export const SQLITE_TABLES =
  "select name from sqlite_schema where type = 'table' and name not like 'sqlite_%'";
export const POSTGRES_TABLES =
  "select table_name as name from information_schema.tables where table_schema = 'public'";

export async function tablesOf(database: ControlDatabase, query: string): Promise<readonly string[]> {
  const { tables } = await database.query({ tables: query });
  return tables.map(({ name }) => String(name));
}
