/**
 * A process that campaigns for the leader lease and logs to a table: `leader_log (seq, instance, event)`, with the events
 * `begins`, then `leads` repeatedly, and `ends`.
 */
import { setTimeout as delay } from 'node:timers/promises';
import pg from 'pg';
import { openPostgresStore } from '../../../src/control/store/postgres.ts';
import { connectionOf } from '../../../src/control/store/postgres-connection.ts';
import { type LeadTimes, leadByAdvisoryLock } from '../../../src/control/store/postgres-lead.ts';
import { scriptSettings } from './run-typescript.ts';

export interface LeaderSettings {
  readonly url: string;
  readonly instance: string;
  /** Default: what the store takes. */
  readonly times?: LeadTimes;
}

const INTERVAL_MS = 10;
const { url, instance, times } = scriptSettings<LeaderSettings>();
const log = new pg.Client({ connectionString: url });
await log.connect();
const write = (event: string) =>
  log.query('insert into leader_log (instance, event) values ($1, $2)', [instance, event]);

async function work(signal: AbortSignal): Promise<void> {
  await write('begins');
  while (!signal.aborted) {
    await write('leads');
    await delay(INTERVAL_MS, undefined, { signal }).catch(() => {});
  }
  await write('ends');
}

if (times === undefined) {
  const store = await openPostgresStore({ url, nowMs: Date.now });
  store.lead('jobs', work);
} else {
  leadByAdvisoryLock({ connection: connectionOf(url), name: 'jobs', work, report: () => {}, times });
}
