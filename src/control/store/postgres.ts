/**
 * PostgreSQL: several instances of Control share one database. A site's row is the lock of the site; notices travel by
 * LISTEN and NOTIFY; who leads the background jobs holds an advisory lock on a connection of its own.
 */
import { CamelCasePlugin, Kysely, PostgresDialect, sql } from 'kysely';
import pg from 'pg';
import { migrate } from './migrate.ts';
import { type ControlStore, StoreUnavailableError } from './port.ts';
import { leadByAdvisoryLock } from './postgres-lead.ts';
import { listenForNotices, NOTICE_CHANNEL } from './postgres-notices.ts';
import { type Engine, RelationalStore } from './relational-store.ts';
import type { Tables } from './tables.ts';

export interface PostgresOptions {
  /** `postgres://user:password@host/database`. A secret: in no message and no log. */
  readonly url: string;
  readonly nowMs: () => number;
  /** Default 10. */
  readonly maxConnections?: number;
}

const CONNECT_TIMEOUT_MS = 5000;
const STATEMENT_TIMEOUT_MS = 30_000;

/** @throws StoreUnavailableError when the database cannot be reached or its schema not be brought up to date */
export async function openPostgresStore(options: PostgresOptions): Promise<ControlStore> {
  const connection = connectionOf(options.url);
  const pool = new pg.Pool({
    ...connection,
    max: options.maxConnections ?? 10,
    statement_timeout: STATEMENT_TIMEOUT_MS,
  });
  // An idle connection that breaks is replaced; without a listener it would end the process.
  pool.on('error', () => {});
  const db = new Kysely<Tables>({
    dialect: new PostgresDialect({ pool }),
    plugins: [new CamelCasePlugin()],
  });
  try {
    await migrate(db, { bytes: 'bytea', sequence: 'bigint generated always as identity primary key' });
  } catch (error) {
    await db.destroy();
    throw new StoreUnavailableError(`the database cannot be used (${codeOf(error)})`);
  }
  return new RelationalStore(postgresEngine(db, connection), options.nowMs);
}

/** Whole numbers as numbers: none of ours is beyond 2^53. */
const NUMBER_TYPES: ReadonlySet<number> = new Set([pg.types.builtins.INT8, pg.types.builtins.NUMERIC]);

export function connectionOf(url: string): pg.ClientConfig {
  return {
    connectionString: url,
    connectionTimeoutMillis: CONNECT_TIMEOUT_MS,
    application_name: 'proofgate-control',
    types: {
      getTypeParser: (id: number, format?: 'text' | 'binary') =>
        NUMBER_TYPES.has(id) ? Number : pg.types.getTypeParser(id, format),
    } as pg.CustomTypesConfig,
  };
}

function postgresEngine(db: Kysely<Tables>, connection: pg.ClientConfig): Engine {
  const stops: (() => Promise<void>)[] = [];
  return {
    db,
    async lock(tx, lock) {
      const rows =
        lock.kind === 'installation'
          ? await sql`select id from installation for update`.execute(tx)
          : await sql`select id from site where id = ${lock.siteId} for update`.execute(tx);
      return rows.rows.length === 1;
    },
    async announce(tx, notices) {
      for (const { topic, reference } of notices) {
        await sql`select pg_notify(${NOTICE_CHANNEL}, ${`${topic} ${reference}`})`.execute(tx);
      }
    },
    listen(listener) {
      stops.push(listenForNotices(connection, listener));
    },
    lead: (name, work) => leadByAdvisoryLock(connection, name, work),
    isTransient: (error) => TRANSIENT.has(codeOf(error)),
    isUnavailable: (error) => UNAVAILABLE.test(codeOf(error)) || isConnectionFault(error),
    async close() {
      await Promise.all(stops.map((stop) => stop()));
      await db.destroy();
    },
  };
}

/** Serialization failure, deadlock: PostgreSQL's appendix A. */
const TRANSIENT: ReadonlySet<string> = new Set(['40001', '40P01']);
const UNAVAILABLE = /^(08|53|57P|58)|^E(CONN|PIPE|HOST|NET|TIMEDOUT|NOTFOUND|AI_)/;

/** The driver gives these no code. */
function isConnectionFault(error: unknown): boolean {
  return error instanceof Error && /terminated|timeout exceeded|Connection (ended|lost)/i.test(error.message);
}

function codeOf(error: unknown): string {
  return error instanceof Error && 'code' in error ? String(error.code) : 'no answer';
}
