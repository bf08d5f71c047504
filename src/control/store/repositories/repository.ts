import { setImmediate as nextTurn } from 'node:timers/promises';
import { type Expression, type Insertable, type Kysely, type SqlBool, sql, type Updateable } from 'kysely';
import { inParts, type Page, PRUNED_AT_ONCE, type RowOf } from './records.ts';
import type { Database, Tables } from './tables.ts';

type TableName = keyof Tables;
type ColumnOf<T extends TableName> = keyof RowOf<T> & string;

/** Values that columns must equal, all of them present: Kysely would let `undefined` match every row. */
export type Having<T extends TableName> = Partial<RowOf<T>>;

/** Values that columns must equal, except undefined ones. */
export type Filter<T extends TableName> = { readonly [C in keyof RowOf<T>]?: RowOf<T>[C] | undefined };

/** A generic table for Kysely, whose types cannot follow a variable table name. */
interface AnyTable {
  readonly row: { readonly [column: string]: unknown };
}

/** Statements that repositories share. */
export class Repository {
  protected readonly db: Database;

  constructor(db: Database) {
    this.db = db;
  }

  protected async insert<T extends TableName>(table: T, row: Insertable<Tables[T]>): Promise<void> {
    await this.#any.insertInto(nameOf(table)).values(row).execute();
  }

  protected async insertAll<T extends TableName>(
    table: T,
    rows: readonly Insertable<Tables[T]>[],
  ): Promise<void> {
    for (const part of inParts(rows)) {
      await this.#any.insertInto(nameOf(table)).values(part).execute();
      // SQLite runs in the event loop's thread.
      if (part.length < rows.length) await nextTurn();
    }
  }

  /** Inserts the rows, or replaces the columns of the first in those of the same key. */
  protected async putAll<T extends TableName>(
    table: T,
    key: readonly ColumnOf<T>[],
    rows: readonly Partial<RowOf<T>>[],
  ): Promise<void> {
    const columns = Object.keys(rows[0] ?? {}).filter((column) => !key.some((name) => name === column));
    for (const part of inParts(rows)) {
      await this.#any
        .insertInto(nameOf(table))
        .values(part)
        .onConflict((conflict) =>
          conflict
            .columns([...key])
            .doUpdateSet(
              Object.fromEntries(columns.map((column) => [column, sql.ref(`excluded.${column}`)])),
            ),
        )
        .execute();
      if (part.length < rows.length) await nextTurn();
    }
  }

  /** Removes the rows whose first columns have these values and whose last column has one of many values. */
  protected async deleteAll<T extends TableName>(
    table: T,
    having: Having<T>,
    column: ColumnOf<T>,
    values: readonly string[],
  ): Promise<void> {
    for (const part of inParts(values)) {
      await this.#any
        .deleteFrom(nameOf(table))
        .where((is) => is.and(present(having)))
        .where(column as string, 'in', part)
        .execute();
      if (part.length < values.length) await nextTurn();
    }
  }

  protected async row<T extends TableName>(table: T, having: Having<T>): Promise<RowOf<T> | undefined> {
    const row = await this.#select(table, present(having)).selectAll().executeTakeFirst();
    return row as RowOf<T> | undefined;
  }

  protected async rows<T extends TableName>(
    table: T,
    having: Having<T>,
    ...order: readonly ColumnOf<T>[]
  ): Promise<readonly RowOf<T>[]> {
    let query = this.#select(table, present(having)).selectAll();
    for (const column of order) query = query.orderBy(column);
    return (await query.execute()) as unknown as readonly RowOf<T>[];
  }

  /**
   * A page of the rows that match, ordered by `name`.
   * @param condition limits the rows further
   */
  protected async page<T extends TableName>(
    table: T,
    filter: Filter<T>,
    name: ColumnOf<T>,
    { after, limit }: Page,
    condition?: Expression<SqlBool>,
  ): Promise<readonly RowOf<T>[]> {
    let query = this.#select(table, filter).selectAll();
    if (condition !== undefined) query = query.where(condition);
    if (after !== undefined) query = query.where(name as string, '>', after);
    return (await query.orderBy(name).limit(limit).execute()) as unknown as readonly RowOf<T>[];
  }

  protected async has<T extends TableName>(table: T, having: Having<T>): Promise<boolean> {
    const query = this.#select(table, present(having)).select((is) => is.lit(1).as('found'));
    return (await query.limit(1).executeTakeFirst()) !== undefined;
  }

  protected async countRows<T extends TableName>(table: T, having: Having<T>): Promise<number> {
    const query = this.#select(table, present(having)).select((of) => of.fn.countAll<number>().as('rows'));
    return Number((await query.executeTakeFirstOrThrow()).rows);
  }

  /** @returns whether a row matched */
  protected async delete<T extends TableName>(table: T, having: Having<T>): Promise<boolean> {
    const { numDeletedRows } = await this.#any
      .deleteFrom(nameOf(table))
      .where((is) => is.and(present(having)))
      .executeTakeFirstOrThrow();
    return numDeletedRows > 0n;
  }

  /** @returns the number of updated rows */
  protected async update<T extends TableName>(
    table: T,
    having: Having<T>,
    set: Updateable<Tables[T]>,
  ): Promise<bigint> {
    const { numUpdatedRows } = await this.#any
      .updateTable(nameOf(table))
      .set(set as AnyTable['row'])
      .where((is) => is.and(present(having)))
      .executeTakeFirstOrThrow();
    return numUpdatedRows;
  }

  /**
   * Removes rows, found by their key, whose `column` is below a limit.
   * @returns how many, at most {@link PRUNED_AT_ONCE}
   */
  protected async pruneBelow<T extends TableName>(
    table: T,
    key: ColumnOf<T>,
    column: ColumnOf<T>,
    limit: number,
  ): Promise<number> {
    const ended = this.#any
      .selectFrom(nameOf(table))
      .select<string>(key)
      .where(column as string, '<', limit)
      .limit(PRUNED_AT_ONCE);
    const { numDeletedRows } = await this.#any
      .deleteFrom(nameOf(table))
      .where(key as string, 'in', ended)
      .executeTakeFirstOrThrow();
    return Number(numDeletedRows);
  }

  get #any(): Kysely<AnyTable> {
    return this.db as unknown as Kysely<AnyTable>;
  }

  #select<T extends TableName>(table: T, having: Filter<T>) {
    return this.#any.selectFrom(nameOf(table)).where((is) => is.and(having));
  }
}

function nameOf(table: TableName): 'row' {
  return table as unknown as 'row';
}

/** @throws Error for an undefined value, which would match every row */
function present<H extends object>(having: H): H {
  if (Object.values(having).includes(undefined)) throw new Error('a condition with an undefined value');
  return having;
}
