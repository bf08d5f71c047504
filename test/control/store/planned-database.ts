/** A database of Control whose statements a test can read together with their plans. */
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { CamelCasePlugin, type CompiledQuery, Kysely, PostgresDialect, SqliteDialect } from 'kysely';
import LibsqlDatabase from 'libsql';
import pg from 'pg';
import { openPostgresStore } from '../../../src/control/store/postgres.ts';
import { connectionOf } from '../../../src/control/store/postgres-connection.ts';
import type { Tables } from '../../../src/control/store/repositories/tables.ts';
import { DATABASE_FILE, openSqliteStore } from '../../../src/control/store/sqlite.ts';
import { NO_LOCKS, openTransaction, type Transaction } from '../../../src/control/store/transaction.ts';
import { TestPostgresServer } from '../../support/harness/postgres-server.ts';
import { NOW_MS } from './databases.ts';

export type Statement = Pick<CompiledQuery, 'parameters' | 'sql'>;

export interface PlannedDatabase {
  readonly name: 'postgres' | 'sqlite';
  run(sql: string): Promise<void>;
  rows(
    sql: string,
    parameters: readonly unknown[],
  ): Promise<readonly { readonly [column: string]: unknown }[]>;
  /** Statistics, as the database's own maintenance makes them. */
  analyze(): Promise<void>;
  /** Reads like the store, and returns the statements. */
  read<T>(
    work: (tx: Transaction) => Promise<T>,
  ): Promise<{ readonly result: T; readonly statements: readonly Statement[] }>;
  /** Why the statement is no bounded range of an index; empty when it is. */
  faultsOf(statement: Statement, mostRows: number): Promise<readonly string[]>;
  close(): Promise<void>;
}

function reader(kysely: Kysely<Tables>, statements: Statement[]): PlannedDatabase['read'] {
  return async (work) => {
    statements.length = 0;
    const result = await kysely.transaction().execute((db) => work(openTransaction(db, NO_LOCKS)));
    return { result, statements: statements.filter(({ sql }) => /^(?:select|with)/i.test(sql)) };
  };
}

export async function plannedSqlite(): Promise<PlannedDatabase> {
  const dataDirectory = await mkdtemp(join(tmpdir(), 'proofgate-plans-'));
  await (await openSqliteStore({ dataDirectory, nowMs: () => NOW_MS })).close();
  const database = new LibsqlDatabase(join(dataDirectory, DATABASE_FILE));
  for (const pragma of ['journal_mode = wal', 'synchronous = off']) database.pragma(pragma);
  const statements: Statement[] = [];
  const kysely = new Kysely<Tables>({
    dialect: new SqliteDialect({ database }),
    plugins: [new CamelCasePlugin()],
    log: ({ query }) => void statements.push(query),
  });
  return {
    name: 'sqlite',
    async run(sql) {
      database.exec(sql);
    },
    rows: async (sql, parameters) => database.prepare(sql).all([...parameters]) as never,
    // Control never runs it, so the planner has no statistics.
    async analyze() {},
    read: reader(kysely, statements),
    async faultsOf({ sql, parameters }) {
      const lines = database.prepare(`explain query plan ${sql}`).all([...parameters]) as {
        readonly detail: string;
      }[];
      // A whole table in the order of an index, up to a limit, is a range, too.
      const isWhole = !/ where /i.test(sql) && / limit /i.test(sql);
      // A subquery of that name has a limit, and lines of its own.
      const isScan = (detail: string) => /^SCAN/.test(detail) && detail !== 'SCAN beginning';
      return lines
        .map(({ detail }) => detail)
        .filter((detail) => /TEMP B-TREE|MULTI-INDEX/.test(detail) || (isScan(detail) && !isWhole));
    },
    async close() {
      await kysely.destroy();
      await rm(dataDirectory, { recursive: true, force: true });
    },
  };
}

interface PlanNode {
  readonly 'Node Type': string;
  readonly 'Actual Rows': number;
  readonly 'Actual Loops': number;
  readonly 'Rows Removed by Filter'?: number;
  readonly Plans?: readonly PlanNode[];
}

export async function plannedPostgres(): Promise<PlannedDatabase> {
  const server = await TestPostgresServer.start();
  const url = await server.createDatabase();
  await (await openPostgresStore({ url, nowMs: () => NOW_MS })).close();
  const pool = new pg.Pool({ ...connectionOf(url), max: 1 });
  const statements: Statement[] = [];
  const kysely = new Kysely<Tables>({
    dialect: new PostgresDialect({ pool }),
    plugins: [new CamelCasePlugin()],
    log: ({ query }) => void statements.push(query),
  });
  // Compiling a statement changes no plan, and takes longer than to run it.
  await pool.query('set jit = off');
  const rows: PlannedDatabase['rows'] = async (sql, parameters) =>
    (await pool.query(sql, [...parameters])).rows;
  return {
    name: 'postgres',
    async run(sql) {
      await pool.query(sql);
    },
    rows,
    async analyze() {
      await pool.query('vacuum analyze');
    },
    read: reader(kysely, statements),
    async faultsOf({ sql, parameters }, mostRows) {
      const [row] = await rows(`explain (analyze, timing off, format json) ${sql}`, parameters);
      const plans = (row?.['QUERY PLAN'] ?? []) as readonly { readonly Plan: PlanNode }[];
      return plans.flatMap(({ Plan: plan }) => faultsOfNode(plan, mostRows));
    },
    async close() {
      await kysely.destroy();
      await server.stop();
    },
  };
}

/** What counts is how many rows a node has read: a sort or a scan of a page costs little, whatever its kind. */
function faultsOfNode(node: PlanNode, mostRows: number): readonly string[] {
  const { 'Node Type': kind, 'Actual Loops': loops, 'Actual Rows': actual, Plans: plans = [] } = node;
  const rows = (actual + (node['Rows Removed by Filter'] ?? 0)) * loops;
  // It only appends what others have read.
  const hasRead = kind !== 'Append';
  return [
    ...(hasRead && rows > mostRows ? [`${kind}: ${rows} rows`] : []),
    ...plans.flatMap((plan) => faultsOfNode(plan, mostRows)),
  ];
}
