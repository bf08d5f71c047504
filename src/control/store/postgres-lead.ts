import pg from 'pg';
import { keepTrying, leadOnce, pause } from './keep-trying.ts';
import type { ReportIncident } from './port.ts';
import { endConnection } from './postgres-connection.ts';

export interface LeadTimes {
  /** Pause between attempts to take the lock. */
  readonly retryMs: number;
  readonly heartbeatMs: number;
  /** A leader steps down if its heartbeat gets no response for this time. */
  readonly answerTimeoutMs: number;
  /** The server ends a silent leader's session after this time, for example of a frozen process. */
  readonly silenceTimeoutMs: number;
}

/** Failover takes at most 5 s, half of the default `--realtime-staleness`, so that realtime routes stay open. */
export const LEAD_TIMES: LeadTimes = {
  retryMs: 500,
  heartbeatMs: 1000,
  answerTimeoutMs: 3000,
  silenceTimeoutMs: 4000,
};

export interface Leading {
  readonly connection: pg.ClientConfig;
  readonly name: string;
  readonly work: (signal: AbortSignal) => Promise<void>;
  readonly report: ReportIncident;
  readonly times?: LeadTimes;
}

/**
 * Leader election: leads while one connection holds an advisory lock. PostgreSQL releases the lock when the connection
 * ends, so a killed leader is replaced at once, and one that lost its connection stops its work. Two instances may
 * briefly both consider themselves leader. That is safe, because all their work takes the site's lock and reads the
 * state first.
 * @returns a function that stops; it resolves when `work` has ended
 */
export function leadByAdvisoryLock(leading: Leading): () => Promise<void> {
  const times = leading.times ?? LEAD_TIMES;
  return keepTrying(times.retryMs, (stop) => leadOneTerm(leading, times, stop));
}

async function leadOneTerm(
  { connection, name, work, report }: Leading,
  times: LeadTimes,
  stop: AbortSignal,
): Promise<void> {
  const client = new pg.Client({ ...connection, query_timeout: times.answerTimeoutMs });
  const lost = new AbortController();
  client.on('error', () => lost.abort());
  client.on('end', () => lost.abort());
  const over = AbortSignal.any([stop, lost.signal]);
  try {
    await client.connect();
    await client.query(`set idle_session_timeout = ${times.silenceTimeoutMs}`);
    while (!over.aborted && !(await takeLock(client, name))) await pause(times.retryMs, over);
    if (over.aborted) return;
    const heart = beat(client, over, lost, times.heartbeatMs);
    await leadOnce(name, work, over, report);
    lost.abort();
    await heart;
  } finally {
    await endConnection(client);
  }
}

async function takeLock(client: pg.Client, name: string): Promise<boolean> {
  const { rows } = await client.query<{ locked: boolean }>(
    'select pg_try_advisory_lock(hashtextextended($1, 0)) as locked',
    [`proofgate:${name}`],
  );
  return rows[0]?.locked === true;
}

/** Sends heartbeats. A connection that does not respond counts as lost. */
async function beat(
  client: pg.Client,
  over: AbortSignal,
  lost: AbortController,
  heartbeatMs: number,
): Promise<void> {
  while (!over.aborted) {
    await pause(heartbeatMs, over);
    if (over.aborted) return;
    await client.query('select 1').catch(() => lost.abort());
  }
}
