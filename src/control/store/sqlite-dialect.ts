import {
  CompiledQuery,
  type DatabaseConnection,
  SqliteDialect,
  SqliteDriver,
  type TransactionSettings,
} from 'kysely';
import type LibsqlDatabase from 'libsql';

type Libsql = InstanceType<typeof LibsqlDatabase>;

/** Kysely's SQLite dialect over one open connection, with enforced read-only transactions. */
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
    // Errors such as a full disk end the transaction by themselves; another rollback would hide them.
    if (this.#database.inTransaction) await super.rollbackTransaction(connection);
  }

  override async destroy(): Promise<void> {
    // The library closes the file only when its statements are garbage-collected. Leaving WAL mode and the exclusive lock,
    // which WAL mode does not release, frees the file now.
    try {
      for (const pragma of ['journal_mode = delete', 'locking_mode = normal']) this.#database.pragma(pragma);
      this.#database.prepare('select count(*) from sqlite_schema').all([]);
    } finally {
      await super.destroy();
    }
  }
}
