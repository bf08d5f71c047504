/**
 * The store on PostgreSQL, 14 or later, which several instances of Control can share. A site's row is the lock of the
 * site. Notices use LISTEN and NOTIFY. Each leader of background jobs holds an advisory lock on its own connection.
 * An instance uses its pool, a few connections for long reads, one for notices, and one for each job that it leads or wants
 * to lead.
 */
import { randomUUID } from 'node:crypto';
import { CamelCasePlugin, Kysely, PostgresDialect, sql } from 'kysely';
import pg from 'pg';
import { keepTrying, pause } from './keep-trying.ts';
import { migrate } from './migrate.ts';
import {
  type ControlStore,
  type Notice,
  type ReportIncident,
  SchemaNewerError,
  StoreUnavailableError,
  type Topic,
} from './port.ts';
import { connectionOf, endConnection, isLockConflict, postgresFaultOf } from './postgres-connection.ts';
import { leadByAdvisoryLock } from './postgres-lead.ts';
import { type Engine, RelationalStore, type SnapshotStore, snapshotsOf } from './relational-store.ts';
import type { Tables } from './repositories/tables.ts';

export interface PostgresOptions {
  /** `postgres://user:password@host/database`, TLS by `sslmode` and `sslrootcert`. A secret: never in messages or logs. */
  readonly url: string;
  readonly nowMs: () => number;
  /** Default 10. */
  readonly maxConnections?: number;
  readonly report?: ReportIncident;
}

const DEFAULT_MAX_CONNECTIONS = 10;
/** Number of connections for reads that may take long. */
const CONNECTIONS_ASIDE = 3;
const STATEMENT_TIMEOUT = '-c statement_timeout=30s';
/** For how long a migration that waits for a table may keep the requests waiting that are queued behind it. */
const LOCK_TIMEOUT = '-c lock_timeout=2s';
const MIGRATION_ATTEMPTS = 60;
const MIGRATION_PAUSE_MS = 1000;
/** Prevents a frozen instance from locking a site for the others. */
const IDLE_TIMEOUT = '-c idle_in_transaction_session_timeout=4s';

/** @throws SchemaNewerError, or StoreUnavailableError when the database cannot be reached or migrated */
export async function openPostgresStore(options: PostgresOptions): Promise<ControlStore> {
  const { url, nowMs, report = () => {} } = options;
  // A separate connection without a statement timeout: a migration may take long.
  const migration = connect(connectionOf(url, LOCK_TIMEOUT), 1);
  try {
    await migrateBesideOthers(migration);
  } catch (error) {
    if (error instanceof SchemaNewerError) throw error;
    throw new StoreUnavailableError(`the database cannot be used (${whyOf(error)})`);
  } finally {
    await migration.destroy();
  }
  const session = connectionOf(url, STATEMENT_TIMEOUT, IDLE_TIMEOUT);
  const db = connect(session, options.maxConnections ?? DEFAULT_MAX_CONNECTIONS);
  const aside = connect(session, CONNECTIONS_ASIDE);
  return RelationalStore.open(postgresEngine({ db, aside }, connectionOf(url), report), nowMs, report);
}

/** Older instances work during the migration. After a conflict of locks with them it begins again. */
async function migrateBesideOthers(migration: Kysely<Tables>): Promise<void> {
  const dialect = { text: 'text collate "C"', bytes: 'bytea', sequence: IDENTITY };
  for (let attempt = 1; ; attempt++) {
    try {
      return await migrate(migration, dialect);
    } catch (error) {
      if (!isLockConflict(error) || attempt === MIGRATION_ATTEMPTS) throw error;
      await pause(MIGRATION_PAUSE_MS, new AbortController().signal);
    }
  }
}

/** Reads beside an open store of the same database, on one connection. */
export function openPostgresSnapshots(url: string): SnapshotStore {
  return snapshotsOf(connect(connectionOf(url, STATEMENT_TIMEOUT, IDLE_TIMEOUT), 1), postgresFaultOf);
}

const IDENTITY = 'bigint generated always as identity primary key';

function connect(connection: pg.ClientConfig, max: number): Kysely<Tables> {
  const pool = new pg.Pool({ ...connection, max });
  // A broken connection reports its error to the pending query, and the pool replaces it. Without these listeners, the
  // error event would end the process, for an idle connection as well as inside a transaction.
  pool.on('error', () => {});
  pool.on('connect', (client) => client.on('error', () => {}));
  return new Kysely<Tables>({ dialect: new PostgresDialect({ pool }), plugins: [new CamelCasePlugin()] });
}

function whyOf(error: unknown): string {
  const fault = postgresFaultOf(error);
  return fault !== undefined && 'code' in fault ? fault.code : 'its URL or its schema';
}

/** "for update" alone conflicts with "for key share". */
const INSTALLATION_LOCKS = {
  installation: sql`no key update`,
  encrypting: sql`key share`,
  master_key: sql`update`,
} as const;

function postgresEngine(
  { db, aside }: { readonly db: Kysely<Tables>; readonly aside: Kysely<Tables> },
  connection: pg.ClientConfig,
  report: ReportIncident,
): Engine {
  const instance = randomUUID();
  return {
    db,
    reader: db,
    aside: [aside],
    async lock(tx, lock) {
      if (lock.kind === 'origins') {
        await sql`select pg_advisory_xact_lock(hashtextextended('proofgate origins', 0))`.execute(tx);
        return true;
      }
      const { rows } =
        lock.kind === 'site'
          ? // Not "for update", which would also block inserts of records that refer to the site.
            await sql`select id from site where id = ${lock.siteId} for no key update`.execute(tx)
          : await sql`select id from installation for ${INSTALLATION_LOCKS[lock.kind]}`.execute(tx);
      return rows.length === 1;
    },
    async announce(tx, notices) {
      for (const notice of notices) {
        await sql`select pg_notify(${NOTICE_CHANNEL}, ${noticeText(instance, notice)})`.execute(tx);
      }
    },
    listen: (listener) => listenForNotices({ connection, instance, listener, report }),
    lead: (name, work) => leadByAdvisoryLock({ connection, name, work, report }),
    faultOf: postgresFaultOf,
    async close() {
      await aside.destroy();
      await db.destroy();
    },
  };
}

/** The channel of LISTEN and NOTIFY. */
const NOTICE_CHANNEL = 'proofgate_control';
const TOPICS: readonly Topic[] = ['site_changed', 'site_published', 'enrollment_decided'];
const RECONNECT_DELAY_MS = 500;
const HEARTBEAT_MS = 10_000;
const ANSWER_TIMEOUT_MS = 5000;

interface Listening {
  readonly connection: pg.ClientConfig;
  /** Name of this instance, to skip its own notices. */
  readonly instance: string;
  readonly listener: (notice: Notice) => void;
  readonly report: ReportIncident;
}

/**
 * Receives notices on its own connection and reconnects when that breaks. Notices sent meanwhile are lost: a notice is a
 * hint, and receivers also poll. Resolves when it listens, or when the first attempt failed.
 * @returns a function that stops
 */
async function listenForNotices(listening: Listening): Promise<() => Promise<void>> {
  return new Promise((resolve) => {
    const stop = keepTrying(RECONNECT_DELAY_MS, async (stopping) => {
      let wasListening = false;
      try {
        await listenOnce(listening, stopping, () => {
          wasListening = true;
          resolve(stop);
        });
      } catch {
        resolve(stop);
        // Reported once, not at every reconnect, and without the driver's text.
        const error = new StoreUnavailableError('the connection for notices broke');
        if (wasListening) listening.report({ kind: 'notices_interrupted', name: '', error });
      }
    });
  });
}

async function listenOnce(
  { connection, instance, listener }: Listening,
  stopping: AbortSignal,
  onListening: () => void,
): Promise<void> {
  const client = new pg.Client({ ...connection, query_timeout: ANSWER_TIMEOUT_MS });
  const broken = new AbortController();
  client.on('error', () => broken.abort());
  client.on('end', () => broken.abort());
  client.on('notification', ({ payload }) => {
    const notice = parseNotice(payload, instance);
    if (notice !== undefined) listener(notice);
  });
  const over = AbortSignal.any([stopping, broken.signal]);
  try {
    await client.connect();
    await client.query(`listen ${NOTICE_CHANNEL}`);
    onListening();
    while (!over.aborted) {
      await pause(HEARTBEAT_MS, over);
      if (!over.aborted) await client.query('select 1');
    }
    if (!stopping.aborted) throw new Error('the connection broke');
  } finally {
    await endConnection(client);
  }
}

function noticeText(instance: string, { topic, reference }: Notice): string {
  return `${instance} ${topic} ${reference}`;
}

/** @returns undefined unless the payload is a notice of another instance */
function parseNotice(payload: string | undefined, instance: string): Notice | undefined {
  const [sender, topicName, reference, ...rest] = payload?.split(' ') ?? [];
  const topic = TOPICS.find((known) => known === topicName);
  if (topic === undefined || reference === undefined || rest.length > 0 || sender === instance)
    return undefined;
  return { topic, reference };
}
