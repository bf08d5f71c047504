/**
 * Lists whose statements each read a bounded range of one index, for any reach and any filter. Other conditions apply
 * to the rows of a range. A page may be shorter than its limit; the list then continues after the last examined row.
 */
import { type Expression, type Kysely, type SqlBool, sql } from 'kysely';
import type { RowOf } from './records.ts';
import type { Database, Tables } from './tables.ts';

/** Maximum number of rows that a page examines for its conditions. */
export const EXAMINED_AT_ONCE = 10_000;
/** Maximum number of rows that one step examines. */
const EXAMINED_IN_STEP = 500;
/** Minimum number of rows to examine in each range when many are merged. */
const EXAMINED_AT_LEAST = 500;
/** Maximum number of ranges in one statement. SQLite allows 500. */
const RANGES_AT_ONCE = 100;

type Position = string | number;
type TableName = keyof Tables;
type Values<T extends TableName> = { readonly [C in keyof RowOf<T>]?: RowOf<T>[C] | undefined };

/** Values of an index's first columns; the column that orders the list follows them. */
export type IndexRange<T extends TableName> = Values<T>;

export interface RangedList<T extends TableName> {
  readonly table: T;
  /** The column that orders the list; its values are unique in the list. */
  readonly orderedBy: keyof Tables[T] & string;
  readonly direction: 'asc' | 'desc';
  /** Ranges that contain exactly the rows that the reader may see. */
  readonly whole: readonly IndexRange<T>[];
  /** Alternative ranges that contain all rows of the page. The first one that is short or fills the page suffices. */
  readonly shortcuts?: readonly IndexRange<T>[];
  /** Condition that rows of an alternative range must meet, so that the reader may see them. */
  readonly within?: Expression<SqlBool> | undefined;
  /** Values that columns must equal; undefined ones do not matter. Texts only. */
  readonly filter?: Values<T>;
  /** The last position of the list; undefined for the end of its ranges. */
  readonly upTo?: Position | undefined;
  /** Further conditions, on expressions that no index has. */
  readonly conditions?: readonly Expression<SqlBool>[];
  readonly after: Position | undefined;
  readonly limit: number;
}

/** Rows of a page, in order. */
export type RangedPage<R> = readonly R[] & {
  /** Position of the last examined row, if the page ends before its limit and the list may continue. */
  readonly stoppedAt?: Position;
};

export function endingAt<R>(rows: readonly R[], stoppedAt: Position | undefined): RangedPage<R> {
  return stoppedAt === undefined ? rows : Object.assign([...rows], { stoppedAt });
}

/** Views of a page's rows. */
export function viewsOf<R, V>(page: RangedPage<R>, view: (row: R) => V): RangedPage<V> {
  return endingAt(page.map(view), page.stoppedAt);
}

export async function rangedPage<T extends TableName>(
  db: Database,
  list: RangedList<T>,
): Promise<RangedPage<RowOf<T>>> {
  const ranges = new RangeReader(db, list);
  if (list.whole.length === 0) return [];
  const { within } = list;
  const shown = within === undefined ? [] : [within];
  for (const range of list.shortcuts ?? []) {
    const page = await ranges.read(range, shown, EXAMINED_AT_ONCE, undefined);
    if (page.stoppedAt === undefined) return page;
  }
  return merged(ranges, list);
}

/**
 * Without other conditions, reads the beginnings of all ranges at once. Otherwise it reads one range after the other,
 * each up to the last row that the page already has.
 */
async function merged<T extends TableName>(
  ranges: RangeReader<T>,
  { whole, limit }: RangedList<T>,
): Promise<RangedPage<RowOf<T>>> {
  if (!ranges.hasConditions) return ranges.beginnings(whole);
  const most = Math.max(EXAMINED_AT_LEAST, Math.floor(EXAMINED_AT_ONCE / whole.length));
  let rows: readonly RowOf<T>[] = [];
  let stoppedAt: Position | undefined;
  for (const range of whole) {
    const last = rows.length < limit ? undefined : rows.at(-1);
    const page = await ranges.read(range, [], most, last && ranges.positionOf(last));
    if (page.stoppedAt !== undefined) stoppedAt = ranges.first(stoppedAt, page.stoppedAt);
    rows = ranges.inOrder([...rows, ...page]).slice(0, limit);
  }
  if (stoppedAt === undefined) return rows;
  // After this position, a range may have rows that were not examined.
  const known = rows.filter((row) => !ranges.isBehind(ranges.positionOf(row), stoppedAt));
  return endingAt(known, known.length < limit ? stoppedAt : undefined);
}

/** A generic table for Kysely, whose types cannot follow a variable table name. */
interface AnyTable {
  readonly row: { readonly [column: string]: unknown };
}

interface PartOfRange {
  readonly after: Position | undefined;
  /** The last position of interest. */
  readonly upTo: Position | undefined;
  readonly limit: number;
}

class RangeReader<T extends TableName> {
  readonly #db: Kysely<AnyTable>;
  readonly #list: RangedList<T>;

  constructor(db: Database, list: RangedList<T>) {
    this.#db = db as unknown as Kysely<AnyTable>;
    this.#list = list;
  }

  positionOf(row: RowOf<T>): Position {
    return this.#positionIn(row);
  }

  isBehind(position: Position, other: Position): boolean {
    return this.#list.direction === 'asc' ? position > other : position < other;
  }

  first(a: Position | undefined, b: Position): Position {
    return a === undefined || this.isBehind(a, b) ? b : a;
  }

  /** Returns each row once, because ranges may overlap. */
  inOrder(rows: readonly RowOf<T>[]): readonly RowOf<T>[] {
    const byPosition = new Map(rows.map((row) => [this.positionOf(row), row]));
    return this.#sorted(byPosition.keys()).flatMap((position) => byPosition.get(position) ?? []);
  }

  #sorted(positions: Iterable<Position>): readonly Position[] {
    return [...positions].sort((a, b) => (this.isBehind(a, b) ? 1 : -1));
  }

  /**
   * Reads the positions from the index alone, and then the rows at these positions. In one statement, PostgreSQL may
   * scan another index past any number of other rows, because it expects early matches.
   * @param mostRows that are examined for the conditions
   * @param upTo the last position of interest
   */
  async read(
    range: IndexRange<T>,
    shown: readonly Expression<SqlBool>[],
    mostRows: number,
    upTo: Position | undefined,
  ): Promise<RangedPage<RowOf<T>>> {
    const { after, conditions = [], limit } = this.#list;
    if (this.#excludes(range)) return [];
    const others = [...this.#filtersBeside(range), ...conditions, ...shown];
    const size = others.length === 0 ? limit : EXAMINED_IN_STEP;
    let rows: readonly RowOf<T>[] = [];
    let last = after;
    for (let examined = 0; examined < mostRows; examined += size) {
      const positions = await this.#positions(range, { after: last, upTo, limit: size });
      rows = [...rows, ...(await this.#rowsAt(positions, others))];
      if (rows.length >= limit || positions.length < size) return rows.slice(0, limit);
      last = positions.at(-1);
    }
    return endingAt(rows, last);
  }

  get hasConditions(): boolean {
    return this.#filters.length > 0 || (this.#list.conditions ?? []).length > 0;
  }

  /** The first rows of ranges, without other conditions. */
  async beginnings(ranges: readonly IndexRange<T>[]): Promise<readonly RowOf<T>[]> {
    const { after, limit } = this.#list;
    const positions = new Set<Position>();
    for (let start = 0; start < ranges.length; start += RANGES_AT_ONCE) {
      const [first, ...others] = ranges
        .slice(start, start + RANGES_AT_ONCE)
        .map((range) => this.#beginning(range, { after, upTo: undefined, limit }))
        // SQLite takes a limit within a union only inside a subquery.
        .map((beginning) => this.#db.selectFrom(beginning.as('beginning')).select<string>(this.#orderedBy));
      const all = others.reduce((union, other) => union?.unionAll(other), first);
      for (const row of (await all?.execute()) ?? []) positions.add(this.#positionIn(row));
    }
    return this.#rowsAt(this.#sorted(positions).slice(0, limit), []);
  }

  async #rowsAt(
    positions: readonly Position[],
    conditions: readonly Expression<SqlBool>[],
  ): Promise<readonly RowOf<T>[]> {
    if (positions.length === 0) return [];
    let query = this.#table.selectAll().where(this.#orderedBy, 'in', positions);
    for (const condition of conditions) query = query.where(condition);
    return this.inOrder((await query.execute()) as unknown as readonly RowOf<T>[]);
  }

  async #positions(range: IndexRange<T>, part: PartOfRange): Promise<readonly Position[]> {
    const found = await this.#beginning(range, part).execute();
    return found.map((row) => this.#positionIn(row));
  }

  #positionIn(row: { readonly [column: string]: unknown }): Position {
    return row[this.#orderedBy] as Position;
  }

  /** The query of a range's first positions. */
  #beginning(range: IndexRange<T>, { after, upTo, limit }: PartOfRange) {
    const isUp = this.#list.direction === 'asc';
    const column = this.#orderedBy;
    const end = upTo ?? this.#list.upTo;
    let query = this.#table.select<string>(column);
    for (const [name, value] of Object.entries(range)) query = query.where(name, '=', value);
    if (after !== undefined) query = query.where(column, isUp ? '>' : '<', after);
    if (end !== undefined) query = query.where(column, isUp ? '<=' : '>=', end);
    return query.orderBy(column, this.#list.direction).limit(limit);
  }

  /** Whether the filter requires another value of a column. */
  #excludes(range: IndexRange<T>): boolean {
    const values: { readonly [column: string]: unknown } = range;
    return this.#filters.some(([column, value]) => column in values && values[column] !== value);
  }

  /** `coalesce` prevents the use of an index for these filters. */
  #filtersBeside(range: IndexRange<T>): readonly Expression<SqlBool>[] {
    return this.#filters.flatMap(([column, value]) =>
      column in range ? [] : [sql<SqlBool>`coalesce(${sql.ref(column)}, '') = ${value}`],
    );
  }

  get #filters(): readonly (readonly [column: string, value: unknown])[] {
    return Object.entries(this.#list.filter ?? {}).filter(([, value]) => value !== undefined);
  }

  get #orderedBy(): string {
    return this.#list.orderedBy;
  }

  get #table() {
    return this.#db.selectFrom(this.#list.table as unknown as 'row');
  }
}

/** Whether a column has one of these values, without the use of an index. */
export function isOneOf(column: string, values: readonly string[]): readonly Expression<SqlBool>[] {
  if (values.length === 0) return [];
  return [sql<SqlBool>`coalesce(${sql.ref(column)}, '') in (${sql.join([...values])})`];
}
