import {
  CompiledQuery,
  type DatabaseConnection,
  SqliteDialect,
  SqliteDriver,
  type TransactionSettings,
} from 'kysely';
import type LibsqlDatabase from 'libsql';

type Libsql = InstanceType<typeof LibsqlDatabase>;

/** Kysely's SQLite dialect, with read-only transactions that are so, over one open connection. */
export class LibsqlDialect extends SqliteDialect {
  readonly #database: Libsql;

  constructor(database: Libsql) {
    super({ database });
    this.#database = database;
  }

  override createDriver(): LibsqlDriver {
    return new LibsqlDriver(this.#database);
  }
}

class LibsqlDriver extends SqliteDriver {
  readonly #database: Libsql;

  constructor(database: Libsql) {
    super({ database });
    this.#database = database;
  }

  override async beginTransaction(
    connection: DatabaseConnection,
    settings?: TransactionSettings,
  ): Promise<void> {
    const isReadOnly = settings?.accessMode === 'read only';
    await connection.executeQuery(CompiledQuery.raw(`pragma query_only = ${isReadOnly ? 'on' : 'off'}`));
    await super.beginTransaction(connection);
  }

  override async rollbackTransaction(connection: DatabaseConnection): Promise<void> {
    // A full disk and the like end the transaction by themselves; a second end would hide their error.
    if (this.#database.inTransaction) await super.rollbackTransaction(connection);
  }

  override async destroy(): Promise<void> {
    // The library closes a file when its statements are collected, some time. Out of the log (where an exclusive lock is
    // not given back) and out of that lock: the file is free now.
    try {
      for (const pragma of ['journal_mode = delete', 'locking_mode = normal']) this.#database.pragma(pragma);
      this.#database.prepare('select count(*) from sqlite_schema').all([]);
    } finally {
      await super.destroy();
    }
  }
}
