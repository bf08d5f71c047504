import type { Insertable, Kysely, Updateable } from 'kysely';
import type { Database } from '../database.ts';
import type { Tables } from '../tables.ts';
import { expectUpdated, type Page, type RowOf } from './records.ts';

/** Versioned tables and the columns of their primary keys. Lists are ordered by the last column. */
const NAMES = {
  environment: ['id'],
  fleet: ['id'],
  site: ['id'],
  target: ['id'],
  client: ['siteId', 'clientId'],
  broker: ['siteId', 'issuer'],
  route: ['siteId', 'routeId'],
  routeSources: ['siteId', 'routeId'],
  source: ['id'],
  sourceRevision: ['sourceId', 'revision'],
  enrollmentPolicy: ['id'],
  enrollment: ['id'],
  derivedKey: ['keyId'],
  accessToken: ['id'],
} as const;

export type VersionedTableName = keyof typeof NAMES;

/** Values of a row's primary key, in column order. */
export type NameOf<T extends VersionedTableName> = T extends 'sourceRevision'
  ? readonly [sourceId: string, revision: number]
  : (typeof NAMES)[T] extends readonly [string]
    ? readonly [id: string]
    : readonly [siteId: string, name: string];

/** A row's primary key and the version that was read. */
export type VersionRead<T extends VersionedTableName> = Pick<
  RowOf<T>,
  Extract<(typeof NAMES)[T][number] | 'version', keyof RowOf<T>>
>;

/** A row of any versioned table. */
export type VersionedRow<T extends VersionedTableName> = RowOf<T> & { readonly version: number };

/** Columns of a row that a change may set. */
export type ChangesOf<T extends VersionedTableName> = Updateable<Tables[T]>;

/** A generic table for Kysely, whose types cannot follow a variable table name. */
interface AnyTable {
  readonly row: { readonly [column: string]: unknown };
}

/** Optimistic locking: rows change only from the version that was read. One instance per table of {@link NAMES}. */
export class VersionedTable<T extends VersionedTableName> {
  protected readonly db: Database;
  readonly #any: Kysely<AnyTable>;
  readonly #table: 'row';
  readonly #columns: readonly string[];

  constructor(db: Database, table: T) {
    this.db = db;
    this.#any = db as unknown as Kysely<AnyTable>;
    this.#table = table as unknown as 'row';
    this.#columns = NAMES[table];
  }

  async add(row: Insertable<Tables[T]>): Promise<void> {
    await this.#any.insertInto(this.#table).values(row).execute();
  }

  async find(...name: NameOf<T>): Promise<VersionedRow<T> | undefined> {
    const columns = this.#named(name);
    const row = await this.#any
      .selectFrom(this.#table)
      .selectAll()
      .where((is) => is.and(columns))
      .executeTakeFirst();
    return row as VersionedRow<T> | undefined;
  }

  /** Rows with these values, ordered by name. */
  async list(having: Partial<RowOf<T>>, { after, limit }: Page): Promise<readonly RowOf<T>[]> {
    const name = this.#columns.at(-1) ?? 'id';
    let query = this.#any
      .selectFrom(this.#table)
      .selectAll()
      .where((is) => is.and(having));
    if (after !== undefined) query = query.where(name, '>', after);
    const rows = await query.orderBy(name).limit(limit).execute();
    return rows as unknown as readonly RowOf<T>[];
  }

  /** Updates exactly the version that was read. @throws VersionConflictError */
  async change(row: VersionRead<T>, set: ChangesOf<T>, nowMs: number): Promise<void> {
    const { version } = row as { readonly version: number };
    const values: { readonly [column: string]: unknown } = { ...row };
    const read = { ...this.#named(this.#columns.map((column) => values[column])), version };
    expectUpdated(
      await this.#any
        .updateTable(this.#table)
        .set({ ...set, version: version + 1, updatedAtMs: nowMs })
        .where((is) => is.and(read))
        .executeTakeFirstOrThrow(),
    );
  }

  /** @returns whether the row existed */
  async remove(...name: NameOf<T>): Promise<boolean> {
    const columns = this.#named(name);
    const { numDeletedRows } = await this.#any
      .deleteFrom(this.#table)
      .where((is) => is.and(columns))
      .executeTakeFirstOrThrow();
    return numDeletedRows > 0n;
  }

  #named(name: readonly unknown[]): { readonly [column: string]: unknown } {
    return Object.fromEntries(this.#columns.map((column, index) => [column, name[index]]));
  }
}
