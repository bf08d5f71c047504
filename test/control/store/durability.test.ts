/** Checks that acknowledged writes survive kill -9 of the writing process and of the database server. */
import { execFile } from 'node:child_process';
import { mkdtemp, rm, stat } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { afterAll, beforeAll, expect, it } from '@jest/globals';
import type { ControlStore } from '../../../src/control/store/port.ts';
import { openPostgresStore } from '../../../src/control/store/postgres.ts';
import { DATABASE_FILE, openSqliteSnapshots, openSqliteStore } from '../../../src/control/store/sqlite.ts';
import { addGround } from '../../support/control/store-rows.ts';
import { checkoutPath } from '../../support/harness/checkout.ts';
import type { Child } from '../../support/harness/child.ts';
import { TestPostgresServer } from '../../support/harness/postgres-server.ts';
import { runTypescript } from '../../support/harness/run-typescript.ts';
import type { WriterSettings } from '../../support/harness/store-writer.ts';
import { waitUntil } from '../../support/wait.ts';
import { NOW_MS } from './databases.ts';

const run = promisify(execFile);
const ROUNDS = 2;
const ROWS_A_ROUND = 100;

let server: TestPostgresServer;
let dataDirectory: string;
beforeAll(async () => {
  server = await TestPostgresServer.start();
  dataDirectory = await mkdtemp(join(tmpdir(), 'proofgate-durability-'));
});
afterAll(async () => {
  await server.stop();
  await rm(dataDirectory, { recursive: true });
});

const acknowledged = (child: Child): readonly string[] =>
  child.stdoutLines.flatMap((line) => /^acknowledged (\S+)$/.exec(line)?.[1] ?? []);

async function writeUntilKilled(settings: WriterSettings, kill: (child: Child) => Promise<void>) {
  const child = runTypescript('store-writer.ts', settings);
  try {
    await child.waitForLine(/^ready$/);
    await waitUntil(() => acknowledged(child).length >= ROWS_A_ROUND);
    await kill(child);
  } finally {
    child.signal('SIGKILL');
    await child.exited;
  }
  return acknowledged(child);
}

/** Expects each row with its audit row, and no audit row without its row. */
async function expectAllThere(store: ControlStore, siteId: string, names: readonly string[]): Promise<void> {
  const all = { after: undefined, limit: 100_000 };
  const [clients, trail] = await store.read(async (tx) => [
    await tx.clients.list({ siteId }, all),
    await tx.audit.list({ reach: { kind: 'everything' }, siteId, limit: 100_000 }),
  ]);
  const there = clients.map(({ clientId }) => clientId);
  expect(names.filter((name) => !there.includes(name))).toEqual([]);
  expect(trail.map(({ resourceId }) => resourceId).sort()).toEqual([...there].sort());
}

it('SQLite: the process is killed while it writes', async () => {
  const open = () => openSqliteStore({ dataDirectory, nowMs: () => NOW_MS });
  const first = await open();
  const { siteId } = await addGround(first);
  await first.close();
  const names: string[] = [];
  for (let round = 0; round < ROUNDS; round++) {
    const database = { kind: 'sqlite', dataDirectory } as const;
    names.push(
      ...(await writeUntilKilled({ database, siteId, prefix: `r${round}`, concurrency: 4 }, async (child) => {
        // The running process holds the lock on the file.
        await expect(open()).rejects.toMatchObject({
          name: 'StoreUnavailableError',
          message: expect.stringContaining('another process uses it'),
        });
        child.signal('SIGKILL');
      })),
    );
    const store = await open();
    await expectAllThere(store, siteId, names);
    await store.close();
  }
});

it('SQLite: the file is for its owner alone', async () => {
  expect((await stat(join(dataDirectory, DATABASE_FILE))).mode & 0o777).toBe(0o600);
});

it('PostgreSQL: the process is killed while it writes, and in the end the server too', async () => {
  const url = await server.createDatabase();
  const store = await openPostgresStore({ url, nowMs: () => NOW_MS });
  const { siteId } = await addGround(store);
  const names: string[] = [];
  for (let round = 0; round < ROUNDS; round++) {
    const isLast = round === ROUNDS - 1;
    const database = { kind: 'postgres', url } as const;
    const settings = { database, siteId, prefix: `r${round}`, concurrency: 4 };
    names.push(
      ...(await writeUntilKilled(settings, async (child) => {
        if (isLast) await server.kill();
        else child.signal('SIGKILL');
      })),
    );
    if (isLast) await server.startAgain();
    await expectAllThere(store, siteId, names);
  }
  await store.close();
});

it('SQLite: another process opens and closes the file, as a backup does', async () => {
  const folder = await mkdtemp(join(tmpdir(), 'proofgate-locks-'));
  const file = join(folder, DATABASE_FILE);
  const store = await openSqliteStore({ dataDirectory: folder, nowMs: () => NOW_MS });
  // The thread that compares declarations opens it once more.
  const snapshots = openSqliteSnapshots(folder);
  const text = `const database = new (require('libsql'))(process.argv[1]);
    console.log(database.prepare('select count(*) as sites from site').get().sites);
    database.close();`;
  const sites = async () => (await run(process.execPath, ['-e', text, file], { cwd: checkoutPath() })).stdout;
  try {
    await addGround(store);
    expect(await sites()).toBe('1\n');
    await addGround(store);
    expect(await sites()).toBe('2\n');
  } finally {
    await snapshots.close();
    await store.close();
    await rm(folder, { recursive: true });
  }
});
