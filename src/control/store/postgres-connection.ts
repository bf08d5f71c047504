/** Configures connections to PostgreSQL and classifies their errors. */
import pg from 'pg';
import { codeOf, type DatabaseFault, isError } from './database-fault.ts';
import { pause } from './keep-trying.ts';

const CONNECT_TIMEOUT_MS = 5000;
const KEEP_ALIVE_DELAY_MS = 10_000;
const END_TIMEOUT_MS = 2000;

/** Types parsed as numbers: none of ours exceeds 2^53. */
const NUMBER_TYPES: ReadonlySet<number> = new Set([pg.types.builtins.INT8, pg.types.builtins.NUMERIC]);

/** Overrides the server's configuration: a commit is on disk before it is confirmed. */
const DURABLE = '-c synchronous_commit=on';

/** @param settings session settings in the form `-c name=value` */
export function connectionOf(url: string, ...settings: readonly string[]): pg.ClientConfig {
  return {
    connectionString: url,
    connectionTimeoutMillis: CONNECT_TIMEOUT_MS,
    keepAlive: true,
    keepAliveInitialDelayMillis: KEEP_ALIVE_DELAY_MS,
    application_name: 'proofgate-control',
    options: [DURABLE, ...settings].join(' '),
    types: {
      getTypeParser: (id: number, format?: 'text' | 'binary') =>
        NUMBER_TYPES.has(id) ? Number : pg.types.getTypeParser(id, format),
    } as pg.CustomTypesConfig,
  };
}

/** Closes a connection, after a short time also without the server's response. Never rejects. */
export async function endConnection(client: pg.Client): Promise<void> {
  const ended = new AbortController();
  const end = client
    .end()
    .catch(() => {})
    .then(() => ended.abort());
  await Promise.race([end, pause(END_TIMEOUT_MS, ended.signal)]);
}

/** PostgreSQL appendix A: serialization failure, deadlock. */
const REPEAT = /^(40001|40P01)$/;
/**
 * SQLSTATE classes and codes of an unavailable database: connections, authorization, missing database, resources,
 * operator intervention, system errors; statement and lock timeouts; a read-only transaction on a demoted server.
 */
const UNAVAILABLE = /^(08|28|3D|53|57|58|55P03|25006|25P03|25P04)/;
/** Codes of an established session that ended: shutdown, crash, broken connection, idle timeout. */
const SESSION_ENDED = /^(57P0[1-5]|08003|08006|25P0[34])$/;
const SOCKET_BROKE = /^(ECONNRESET|EPIPE)$/;
const SOCKET_FAULT = /^E(CONN|PIPE|HOST|NET|TIMEDOUT|NOTFOUND|AI_)/;
/** Driver errors without a code. */
const DRIVER_LOST = /^Connection terminated unexpectedly|not queryable/;
const DRIVER_FAULT = /terminated|time-?out|not queryable|Connection (ended|lost)|SSL|driver has already/i;

export function postgresFaultOf(error: unknown): DatabaseFault | undefined {
  if (!isError(error)) return undefined;
  const code = codeOf(error);
  if (REPEAT.test(code)) return { kind: 'repeat', code };
  if (SESSION_ENDED.test(code) || SOCKET_BROKE.test(code)) return { kind: 'connection_lost', code };
  if (UNAVAILABLE.test(code) || SOCKET_FAULT.test(code)) return { kind: 'unavailable', code };
  if (error instanceof pg.DatabaseError) return faultOfStatement(error, code);
  if (code !== '') return undefined;
  if (DRIVER_LOST.test(error.message)) return { kind: 'connection_lost', code: 'connection lost' };
  return DRIVER_FAULT.test(error.message) ? { kind: 'unavailable', code: 'no answer' } : undefined;
}

/** Whether a transaction ended because another one had locks that it needs. */
export function isLockConflict(error: unknown): boolean {
  return isError(error) && /^(40001|40P01|55P03)$/.test(codeOf(error));
}

function faultOfStatement(error: pg.DatabaseError, code: string): DatabaseFault {
  const name = error.constraint ?? '';
  if (code === '23505') return { kind: 'constraint', constraint: 'unique', name };
  if (code === '23503') return { kind: 'constraint', constraint: 'reference', name };
  return { kind: 'other', code, cause: error };
}
