/** Checks that background jobs run once: three processes on one PostgreSQL, observed through a table that they write to. */
import { afterAll, afterEach, beforeAll, expect, it } from '@jest/globals';
import { LEAD_TIMES, type LeadTimes } from '../../../src/control/store/postgres-lead.ts';
import type { Child } from '../../support/harness/child.ts';
import { TestPostgresServer } from '../../support/harness/postgres-server.ts';
import { runTypescript } from '../../support/harness/run-typescript.ts';
import { waitUntil } from '../../support/wait.ts';

interface Entry {
  readonly seq: number;
  readonly instance: string;
  readonly event: 'begins' | 'leads' | 'ends';
}

const THREE = ['a', 'b', 'c'];
const TWO = ['a', 'b'];
/** Short times, so that tests detect silence soon. */
const QUICK: LeadTimes = { retryMs: 100, heartbeatMs: 200, answerTimeoutMs: 1000, silenceTimeoutMs: 1500 };

let server: TestPostgresServer;
let url: string;
let processes: ReadonlyMap<string, Child>;

beforeAll(async () => {
  server = await TestPostgresServer.start();
});
afterAll(() => server.stop());
afterEach(async () => {
  for (const child of processes.values()) child.signal('SIGKILL');
  await Promise.all([...processes.values()].map(({ exited }) => exited));
});

async function start(instances: readonly string[], times?: LeadTimes): Promise<void> {
  url = await server.createDatabase();
  await server.query(
    url,
    'create table leader_log (seq bigint generated always as identity, instance text, event text)',
  );
  const run = (instance: string) => runTypescript('store-leader.ts', { url, instance, times });
  processes = new Map(instances.map((instance) => [instance, run(instance)]));
}

async function log(): Promise<readonly Entry[]> {
  const rows = await server.query(url, 'select seq, instance, event from leader_log order by seq');
  return rows.map(({ seq, instance, event }) => ({ seq: Number(seq), instance, event }));
}

/** Waits until an instance outside `before` leads and has done so for a while. */
async function nextLeader(...before: readonly string[]): Promise<string> {
  let found: string | undefined;
  await waitUntil(async () => {
    const entries = await log();
    found = entries.findLast(
      ({ event, instance }) => event === 'begins' && !before.includes(instance),
    )?.instance;
    return entries.filter(({ instance, event }) => instance === found && event === 'leads').length > 20;
  });
  if (found === undefined) throw new Error('no instance leads');
  return found;
}

/** The writers, in the order of their terms. */
function termsOf(entries: readonly Entry[]): readonly string[] {
  return entries.flatMap(({ instance }, at) => (entries[at - 1]?.instance === instance ? [] : [instance]));
}

function child(instance: string): Child {
  const found = processes.get(instance);
  if (found === undefined) throw new Error(`no process ${instance}`);
  return found;
}

it('one of three leads at any time; kill -9 makes another follow, until none is left', async () => {
  await start(THREE);
  const leaders: string[] = [];
  for (const _ of THREE) {
    const leader = await nextLeader(...leaders);
    leaders.push(leader);
    child(leader).signal('SIGKILL');
    await child(leader).exited;
  }
  // Terms do not interleave: each instance wrote its lines without interruption.
  const entries = await log();
  expect(termsOf(entries)).toEqual(leaders);
  expect(entries.filter(({ event }) => event === 'begins')).toHaveLength(THREE.length);
});

it('a leader whose connection is cut ends its work, and somebody leads again', async () => {
  await start(TWO);
  const leader = await nextLeader();
  await server.query(
    url,
    "select pg_terminate_backend(pid) from pg_locks where locktype = 'advisory' and granted and database = (select oid from pg_database where datname = current_database())",
  );
  await waitUntil(async () => {
    const entries = await log();
    return entries.some(({ instance, event }) => instance === leader && event === 'ends');
  });
  await waitUntil(async () => (await log()).filter(({ event }) => event === 'begins').length === 2);
  expect((await log()).filter(({ event }) => event === 'ends')).toHaveLength(1);
});

it('a frozen leader loses the lock within 5 s', () => {
  // The server ends the frozen session, then the next attempt takes the lock.
  expect(LEAD_TIMES.silenceTimeoutMs + LEAD_TIMES.retryMs).toBeLessThanOrEqual(5000);
  // A running leader sends several heartbeats within that time.
  expect(LEAD_TIMES.heartbeatMs * 2).toBeLessThan(LEAD_TIMES.silenceTimeoutMs);
});

it.each([
  ['short times', QUICK],
  ['the times as shipped', LEAD_TIMES],
])('a frozen leader is followed, and ends its work when it thaws: %s', async (_, times) => {
  await start(TWO, times);
  const frozen = await nextLeader();
  child(frozen).signal('SIGSTOP');
  const next = await nextLeader(frozen);
  const writtenByFrozen = async () => (await log()).filter(({ instance }) => instance === frozen).length;
  const before = await writtenByFrozen();
  child(frozen).signal('SIGCONT');
  await waitUntil(async () => {
    const entries = await log();
    return entries.some(({ instance, event }) => instance === frozen && event === 'ends');
  });
  // At most the write in progress and the end of the term: it detects the lost connection in its first turn.
  expect((await writtenByFrozen()) - before).toBeLessThanOrEqual(3);
  // From then on only the other instance writes.
  const end = (await log()).findLast(({ instance, event }) => instance === frozen && event === 'ends');
  const later = async () => (await log()).filter(({ seq }) => seq > (end?.seq ?? 0));
  await waitUntil(async () => (await later()).length > 20);
  expect(termsOf(await later())).toEqual([next]);
});
