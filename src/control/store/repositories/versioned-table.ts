import type { Insertable, Kysely, Updateable } from 'kysely';
import type { Database } from '../database.ts';
import type { Tables } from '../tables.ts';
import { expectUpdated, type Page, type RowOf } from './records.ts';

/** Tables whose rows have a version, with the columns that name a row. Lists are in the order of the last one. */
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

/** Values of the columns that name a row, in the order of the columns. */
export type NameOf<T extends VersionedTableName> = T extends 'sourceRevision'
  ? readonly [sourceId: string, revision: number]
  : (typeof NAMES)[T] extends readonly [string]
    ? readonly [id: string]
    : readonly [siteId: string, name: string];

/** A row's name and the version that was read. */
export type VersionRead<T extends VersionedTableName> = Pick<
  RowOf<T>,
  Extract<(typeof NAMES)[T][number] | 'version', keyof RowOf<T>>
>;

/** A row of any such table. */
export type VersionedRow<T extends VersionedTableName> = RowOf<T> & { readonly version: number };

/** Columns of a row that a change may set. */
export type ChangesOf<T extends VersionedTableName> = Updateable<Tables[T]>;

/** One table to Kysely, whichever it is: its types cannot follow a name that is a variable. */
interface AnyTable {
  readonly row: { readonly [column: string]: unknown };
}

/** Rows that are changed only from the version that was read. One instance for each table of {@link NAMES}. */
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

  /** Rows that have these values, in the order of their names. */
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

  /** Writes over exactly the version that was read. @throws VersionConflictError */
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

  /** @returns whether it was there */
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
