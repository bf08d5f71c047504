/**
 * Kills `proofgate control rotate-master-key` at random moments, on both databases: every secret stays usable, each key file
 * works as documented, and a second run finishes. `PROOFGATE_TEST_KILLS` sets the number of kills (`make soak`).
 */
import { randomBytes } from 'node:crypto';
import { mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { SiteSigningKeys } from '../../../src/control/publishing/bundle-signing-keys.ts';
import { MasterKeys } from '../../../src/control/secrets/master-keys.ts';
import type { ControlStore } from '../../../src/control/store/port.ts';
import { openPostgresStore } from '../../../src/control/store/postgres.ts';
import { openSqliteStore } from '../../../src/control/store/sqlite.ts';
import { LAUNCHER } from '../../support/cli/compiled-cli.ts';
import { runInProcess } from '../../support/cli/in-process.ts';
import { type CliRun, runCli } from '../../support/cli/run-cli.ts';
import { created, makeSite, SITE } from '../../support/control/control-configuration.ts';
import { postgresDatabase, sqliteDatabase } from '../../support/control/control-database.ts';
import {
  type ControlProgram,
  readBootstrapToken,
  startControlProgram,
} from '../../support/control/control-program.ts';
import { addGround } from '../../support/control/store-rows.ts';
import { startChild } from '../../support/harness/child.ts';
import { TestPostgresServer } from '../../support/harness/postgres-server.ts';
import { waitFor } from '../../support/wait.ts';
import { starts } from '../secrets/master-key-start.ts';
import { POSTGRES_TABLES, SQLITE_TABLES, storedSecrets, tablesOf } from './stored-secrets.ts';

const KILLS = Number(process.env.PROOFGATE_TEST_KILLS ?? 3);
const TIMEOUT_MS = 300_000 + KILLS * 30_000;
/** Enough that a rotation takes a while. */
const SITES = 60;
const PURPOSES = ['bundle', 'freshness', 'receipt'] as const;

let server: TestPostgresServer;
let folder = '';
beforeAll(async () => {
  server = await TestPostgresServer.start();
  folder = await mkdtemp(join(tmpdir(), 'proofgate-master-key-'));
});
afterAll(async () => {
  await server.stop();
  await rm(folder, { recursive: true });
});

const keysOf = (...lines: readonly string[]) => MasterKeys.parse(lines.join('\n'));

describe.each(['sqlite', 'postgres'] as const)('on %s', (name) => {
  it(
    'a killed rotation loses nothing, and a second run finishes it',
    async () => {
      const nowMs = Date.now;
      const data = join(folder, name);
      await mkdir(data);
      const url = name === 'postgres' ? await server.createDatabase() : '';
      const env: Record<string, string> = url === '' ? {} : { PROOFGATE_DATABASE_URL: url };
      const open = () =>
        url === '' ? openSqliteStore({ dataDirectory: data, nowMs }) : openPostgresStore({ url, nowMs });
      const database = url === '' ? sqliteDatabase(data) : postgresDatabase(server, url);
      const control = () => startControlProgram({ launcher: LAUNCHER, dataDirectory: data, env });
      const writeKeys = (...lines: readonly string[]) =>
        writeFile(join(data, 'master-key'), lines.join('\n'));
      const args = ['control', 'rotate-master-key', '--data-dir', data, '--output', 'json'];

      // With PostgreSQL, a Control that has both keys runs all the time.
      let program: ControlProgram | undefined = await control();
      const token = await readBootstrapToken(data);
      let current = (await readFile(join(data, 'master-key'), 'utf8')).trim();
      let next = randomBytes(32).toString('base64url');
      await makeSite(program, token);
      const target = { method: 'POST', path: `/v1/sites/${SITE}/targets`, token, body: { name: 'gateway' } };
      const targetToken = String((await program.call(target)).body.token);
      await program.child.stop();
      await writeKeys(next, current);
      program = name === 'postgres' ? await control() : undefined;
      const siteIds: string[] = [];
      const filling = await open();
      for (let i = 0; i < SITES; i++) {
        const { siteId } = await addGround(filling);
        const signing = new SiteSigningKeys(keysOf(current));
        await filling.writeUnaudited({ kind: 'installation' }, (tx) => signing.create(tx, siteId, nowMs()));
        siteIds.push(siteId);
      }
      await filling.close();
      const tables = await tablesOf(database, url === '' ? SQLITE_TABLES : POSTGRES_TABLES);
      const secrets = (SITES + 1) * PURPOSES.length;

      async function usable(store: ControlStore, ...lines: readonly string[]): Promise<number> {
        const signing = new SiteSigningKeys(keysOf(...lines));
        let found = 0;
        for (const siteId of [SITE, ...siteIds]) {
          for (const purpose of PURPOSES) {
            found += (await store.read((tx) => signing.signers(tx, siteId, purpose, nowMs()))).length;
          }
        }
        return found;
      }
      let changes = 0;
      async function publishes({ call }: ControlProgram): Promise<void> {
        const revision = async () => {
          const { status, body } = await call({ path: '/v1/targets/self/bundle', token: targetToken });
          return status === 200 ? Number(body.revision) : 0;
        };
        const before = await revision();
        const id = `client-${++changes}`;
        const body = { client_id: id, subject: `client:${id}`, context: {} };
        created(await call({ method: 'POST', path: `/v1/sites/${SITE}/clients`, token, body }), 'client_id');
        await waitFor('the next revision', async () => (await revision()) > before || undefined);
      }
      async function rotateWhole(run: CliRun) {
        expect(run).toMatchObject({ exitCode: 0, stderr: '' });
        return JSON.parse(run.stdout).signing_keys as { changed: number; unchanged: number };
      }

      const outcomes = { before: 0, between: 0, finished: 0 };
      let delayMs = 0;
      for (let kill = 0; kill < KILLS; kill++) {
        await writeKeys(next, current);
        if (delayMs === 0) {
          const startedMs = performance.now();
          await rotateWhole(await runCli(LAUNCHER, args, { cwd: data, env }));
          delayMs = performance.now() - startedMs;
          [current, next] = [next, current];
          await writeKeys(next, current);
        }
        const child = startChild({ command: process.execPath, args: [LAUNCHER, ...args], env });
        await pause(delayMs * (0.8 + 0.4 * Math.random()));
        child.signal('SIGKILL');
        await child.exited;

        const store = await open();
        const kept = await store.read((tx) => tx.operators.masterKey());
        const hasBegun = kept?.id === keysOf(next).all[0].id;
        const isFinished = hasBegun && kept.replacing === undefined;
        const outcome = isFinished ? 'finished' : hasBegun ? 'between' : 'before';
        outcomes[outcome] += 1;
        // Most of the time goes into starting Node.js: aims at the rotation itself, on a machine of any speed.
        delayMs *= { before: 1.08, between: 1, finished: 0.92 }[outcome];
        expect(await starts(store, next, current)).toBe('starts');
        expect(await starts(store, current)).toBe(hasBegun ? 'master_key_mismatch' : 'starts');
        expect(await starts(store, next)).toBe(isFinished ? 'starts' : 'master_key_mismatch');
        expect(await usable(store, next, current)).toBe(secrets);
        await store.close();
        if (program !== undefined) await publishes(program);

        const { changed, unchanged } = await rotateWhole(await runInProcess(args, env));
        expect(changed + unchanged).toBe(secrets);
        expect(await storedSecrets(database, tables, current)).toEqual([]);
        expect(await storedSecrets(database, tables, next)).toHaveLength(secrets);
        [current, next] = [next, current];
      }
      process.stderr.write(`${name}: kills ${JSON.stringify(outcomes)}\n`);
      // At random moments: some kills must hit the rotation itself.
      if (KILLS >= 25) expect(outcomes.between).toBeGreaterThan(0);
      await program?.child.stop();
      await writeKeys(current);
      const last = await control();
      await publishes(last);
      await last.child.stop();
    },
    TIMEOUT_MS,
  );
});
