import type { Insertable, Updateable } from 'kysely';
import { type Page, type RowOf, VersionConflictError } from './records.ts';
import { type Filter, type Having, Repository } from './repository.ts';
import type { Database, Tables } from './tables.ts';

/** Versioned tables and the columns of their primary keys. Lists are ordered by the last column. */
const NAMES = {
  environment: ['id'],
  fleet: ['id'],
  site: ['id'],
  target: ['id'],
  client: ['siteId', 'clientId'],
  broker: ['siteId', 'issuer', 'trustDomain'],
  oauthIssuer: ['siteId', 'issuer'],
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
  : T extends 'broker'
    ? readonly [siteId: string, issuer: string, trustDomain: string]
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

/** A row to insert: columns with a default may be absent. */
export type NewRowOf<T extends VersionedTableName> = Insertable<Tables[T]>;

/** Columns of a row that a change may set. */
export type ChangesOf<T extends VersionedTableName> = Updateable<Tables[T]>;

/** Optimistic locking: rows change only from the version that was read. One instance per table of {@link NAMES}. */
export class VersionedTable<T extends VersionedTableName> extends Repository {
  readonly #table: T;
  readonly #columns: readonly string[];

  constructor(db: Database, table: T) {
    super(db);
    this.#table = table;
    this.#columns = NAMES[table];
  }

  add(row: NewRowOf<T>): Promise<void> {
    return this.insert(this.#table, row);
  }

  addAll(rows: readonly NewRowOf<T>[]): Promise<void> {
    return this.insertAll(this.#table, rows);
  }

  /**
   * Writes the next versions of rows. The caller holds the lock and knows that none has changed since it was read: unlike
   * `change`, it compares none. @returns the rows as written
   */
  async changeAll(rows: readonly RowOf<T>[], nowMs: number): Promise<readonly RowOf<T>[]> {
    const next = rows.map((row) => {
      const { version } = row as unknown as { readonly version: number };
      return { ...row, version: version + 1, updatedAtMs: nowMs };
    });
    await this.putAll(this.#table, this.#columns as readonly (keyof RowOf<T> & string)[], next);
    return next;
  }

  /** Removes many rows of a site, in tables whose key is a site and a name. */
  removeAll(siteId: string, names: readonly string[]): Promise<void> {
    const [site = '', name = ''] = this.#columns;
    const having = { [site]: siteId } as Having<T>;
    return this.deleteAll(this.#table, having, name as keyof RowOf<T> & string, names);
  }

  find(...name: NameOf<T>): Promise<VersionedRow<T> | undefined> {
    return this.row(this.#table, this.#named(name)) as Promise<VersionedRow<T> | undefined>;
  }

  /** Rows with these values, except undefined ones, ordered by name. */
  list(having: Filter<T>, page: Page): Promise<readonly RowOf<T>[]> {
    const name = this.#columns.at(-1) ?? 'id';
    return this.page(this.#table, having, name as keyof RowOf<T> & string, page);
  }

  /** Updates exactly the version that was read. @returns the row as written @throws VersionConflictError */
  async change<R extends VersionRead<T>>(row: R, set: ChangesOf<T>, nowMs: number): Promise<R> {
    const { version } = row as unknown as { readonly version: number };
    const values: { readonly [column: string]: unknown } = { ...row };
    const read = { ...this.#named(this.#columns.map((column) => values[column])), version };
    const next = { ...defined(set), version: version + 1, updatedAtMs: nowMs };
    const updated = await this.update(this.#table, read, next as ChangesOf<T>);
    if (updated !== 1n) throw new VersionConflictError('the record was changed meanwhile');
    return { ...row, ...next };
  }

  /** @returns whether the row existed */
  remove(...name: NameOf<T>): Promise<boolean> {
    return this.delete(this.#table, this.#named(name));
  }

  #named(name: readonly unknown[]): Having<T> {
    return Object.fromEntries(this.#columns.map((column, index) => [column, name[index]])) as Having<T>;
  }
}

/** Removes undefined values, whose columns an update does not change. */
function defined<S extends object>(set: S): S {
  return Object.fromEntries(Object.entries(set).filter(([, value]) => value !== undefined)) as S;
}
