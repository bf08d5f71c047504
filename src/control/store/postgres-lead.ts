import { setTimeout as delay } from 'node:timers/promises';
import pg from 'pg';

const RETRY_MS = 500;
const HEARTBEAT_MS = 1000;

/**
 * Leads while one connection holds an advisory lock. PostgreSQL lets go of the lock when the connection ends, so a killed
 * leader is followed at once; one that lost its connection ends its work. For a moment two may believe that they lead:
 * whatever they do takes the site's lock and looks first.
 * @returns how to stop; resolves when `work` has ended
 */
export function leadByAdvisoryLock(
  connection: pg.ClientConfig,
  name: string,
  work: (signal: AbortSignal) => Promise<void>,
): () => Promise<void> {
  const stop = new AbortController();
  const ended = keepTrying(connection, name, work, stop.signal);
  return async () => {
    stop.abort();
    await ended;
  };
}

async function keepTrying(
  connection: pg.ClientConfig,
  name: string,
  work: (signal: AbortSignal) => Promise<void>,
  stop: AbortSignal,
): Promise<void> {
  while (!stop.aborted) {
    const client = new pg.Client(connection);
    const lost = new AbortController();
    client.on('error', () => lost.abort());
    client.on('end', () => lost.abort());
    try {
      await client.connect();
      while (!stop.aborted && !lost.signal.aborted && !(await takeLock(client, name))) {
        await pause(RETRY_MS, stop);
      }
      if (!stop.aborted && !lost.signal.aborted) await leadOnce(client, work, stop, lost);
    } catch {
      // The connection: tried again below.
    }
    await client.end().catch(() => {});
    await pause(RETRY_MS, stop);
  }
}

async function takeLock(client: pg.Client, name: string): Promise<boolean> {
  const { rows } = await client.query<{ locked: boolean }>(
    'select pg_try_advisory_lock(hashtextextended($1, 0)) as locked',
    [`proofgate:${name}`],
  );
  return rows[0]?.locked === true;
}

async function leadOnce(
  client: pg.Client,
  work: (signal: AbortSignal) => Promise<void>,
  stop: AbortSignal,
  lost: AbortController,
): Promise<void> {
  const signal = AbortSignal.any([stop, lost.signal]);
  const heart = beat(client, signal, lost);
  try {
    await work(signal);
  } finally {
    lost.abort();
    await heart;
  }
}

/** A connection that hangs is a lost one. */
async function beat(client: pg.Client, signal: AbortSignal, lost: AbortController): Promise<void> {
  while (!signal.aborted) {
    await pause(HEARTBEAT_MS, signal);
    if (signal.aborted) return;
    const answered = await Promise.race([
      client.query('select 1').then(
        () => true,
        () => false,
      ),
      pause(HEARTBEAT_MS * 3, signal).then(() => signal.aborted),
    ]);
    if (!answered) lost.abort();
  }
}

async function pause(durationMs: number, signal: AbortSignal): Promise<void> {
  await delay(durationMs, undefined, { signal }).catch(() => {});
}
