/** Tests `proofgate control rotate-master-key` as a process: beside running Controls, and on the embedded database. */
import { randomBytes } from 'node:crypto';
import { chmod, mkdir, mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, afterEach, beforeAll, beforeEach, expect, it } from '@jest/globals';
import { LAUNCHER } from '../../support/cli/compiled-cli.ts';
import { type CliRun, expectCliError, runCli } from '../../support/cli/run-cli.ts';
import { created, makeSite, SITE } from '../../support/control/control-configuration.ts';
import { postgresDatabase, sqliteDatabase } from '../../support/control/control-database.ts';
import {
  type ControlProgram,
  readBootstrapToken,
  startControlProgram,
} from '../../support/control/control-program.ts';
import { TestPostgresServer } from '../../support/harness/postgres-server.ts';
import { waitFor } from '../../support/wait.ts';
import { POSTGRES_TABLES, SQLITE_TABLES, storedSecrets, tablesOf } from './stored-secrets.ts';

let server: TestPostgresServer;
let folder = '';
let data = '';
let env: Record<string, string> = {};
const running: ControlProgram[] = [];
const NEW = randomBytes(32).toString('base64url');

beforeAll(async () => {
  server = await TestPostgresServer.start();
});
afterAll(async () => {
  await server.stop();
});
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'proofgate-master-key-'));
  data = join(folder, 'data');
  await mkdir(data);
  env = {};
});
afterEach(async () => {
  await Promise.all(running.splice(0).map(({ child }) => child.stop()));
  await rm(folder, { recursive: true });
});

async function start(): Promise<ControlProgram> {
  const program = await startControlProgram({ launcher: LAUNCHER, dataDirectory: data, env });
  running.push(program);
  return program;
}

async function restart(program: ControlProgram): Promise<ControlProgram> {
  expect(await program.child.stop()).toEqual({ code: 0, signal: null });
  return start();
}

const readKey = async () => (await readFile(join(data, 'master-key'), 'utf8')).trim();
const writeKeys = (...lines: readonly string[]) => writeFile(join(data, 'master-key'), lines.join('\n'));
const rotate = (...flags: readonly string[]): Promise<CliRun> =>
  runCli(LAUNCHER, ['control', 'rotate-master-key', '--data-dir', data, ...flags], { cwd: folder, env });

it('beside two Controls that go on signing and publishing', async () => {
  const url = await server.createDatabase();
  env = { PROOFGATE_DATABASE_URL: url };
  const database = postgresDatabase(server, url);
  let [one, two] = [await start(), await start()];
  const token = await readBootstrapToken(data);
  const old = await readKey();
  await makeSite(one, token);
  const post = (program: ControlProgram, path: string, body: object) =>
    program.call({ method: 'POST', path, token, body });
  const target = await post(one, `/v1/sites/${SITE}/targets`, { name: 'gateway' });
  const revisionAt = async (program: ControlProgram) => {
    const call = { path: '/v1/targets/self/bundle', token: String(target.body.token) };
    const { status, body } = await program.call(call);
    return status === 200 ? Number(body.revision) : 0;
  };
  let clients = 0;
  /** A change through one instance that the other one serves. */
  const publishes = async (by: ControlProgram, to: ControlProgram) => {
    const before = await revisionAt(to);
    const id = `client-${++clients}`;
    const client = { client_id: id, subject: `client:${id}`, context: {} };
    created(await post(by, `/v1/sites/${SITE}/clients`, client), 'client_id');
    await waitFor('the next revision', async () => (await revisionAt(to)) > before || undefined);
  };
  await publishes(one, two);
  const tables = await tablesOf(database, POSTGRES_TABLES);
  expect(await storedSecrets(database, tables, old)).toHaveLength(3);

  await writeKeys(NEW, old);
  one = await restart(one);
  await publishes(one, two);
  two = await restart(two);
  // New secrets are still encrypted with the old key, so that an instance without the new one could read them.
  created(await post(two, `/v1/sites/${SITE}/signing-keys/rotate`, { purpose: 'bundle' }), 'signing_key_id');
  expect(await storedSecrets(database, tables, old)).toHaveLength(4);
  const publishing = (async () => {
    for (let i = 0; i < 5; i++) await publishes(i % 2 === 0 ? one : two, i % 2 === 0 ? two : one);
  })();
  const run = await rotate('--output', 'json');
  await publishing;
  expect(run).toMatchObject({ exitCode: 0, stderr: '' });
  expect(JSON.parse(run.stdout)).toEqual({
    signing_keys: { changed: 4, unchanged: 0 },
    sign_ins: { changed: 0, unchanged: 0 },
  });
  expect(await storedSecrets(database, tables, old)).toEqual([]);
  created(
    await post(one, `/v1/sites/${SITE}/signing-keys/rotate`, { purpose: 'freshness' }),
    'signing_key_id',
  );
  expect(await storedSecrets(database, tables, old)).toEqual([]);
  expect(await storedSecrets(database, tables, NEW)).toHaveLength(5);

  await writeKeys(NEW);
  one = await restart(one);
  two = await restart(two);
  await publishes(one, two);
  const { body } = await one.call({ path: '/v1/audit-events?limit=200', token });
  const kinds = (body.items as { kind: string }[]).map(({ kind }) => kind.replace('proofgate.control.', ''));
  expect(kinds.filter((kind) => kind.startsWith('master_key.'))).toEqual([
    'master_key.finish_rotation',
    'master_key.rotate',
    'master_key.register',
  ]);
  const outputs = [run.stdout, JSON.stringify(body), ...running.flatMap(({ child }) => child.stderrLines)];
  for (const key of [old, NEW]) expect(outputs.join('\n')).not.toContain(key);
});

it('on the embedded database, while Control is stopped', async () => {
  let program = await start();
  const token = await readBootstrapToken(data);
  const old = await readKey();
  await makeSite(program, token);
  await writeKeys(NEW, old);
  expectCliError(await rotate(), 'database_unavailable', 5);
  await program.child.stop();
  const database = sqliteDatabase(data);
  const tables = await tablesOf(database, SQLITE_TABLES);
  expect(await storedSecrets(database, tables, old)).toHaveLength(3);
  const run = await rotate();
  expect(run).toMatchObject({ exitCode: 0, stderr: '' });
  expect(run.stdout).toContain('signing keys: 3 encrypted again, 0 already\n');
  expect(await storedSecrets(database, tables, old)).toEqual([]);
  expect(await storedSecrets(database, tables, NEW)).toHaveLength(3);
  await writeKeys(NEW);
  program = await start();
  expect(await program.call({ path: `/v1/sites/${SITE}`, token })).toMatchObject({ status: 200 });
});

it('rejects a key file that it cannot use, and creates nothing', async () => {
  const file = join(data, 'master-key');
  await writeFile(file, `${NEW}\n${NEW}`, { mode: 0o600 });
  expectCliError(await rotate(), 'master_keys_equal', 2);
  await chmod(file, 0o640);
  expectCliError(await rotate(), 'file_permissions', 2);
  await chmod(file, 0o600);
  await writeKeys(NEW, randomBytes(32).toString('base64url'));
  expectCliError(await rotate(), 'database_empty', 2);
  expectCliError(await rotate('--master-key-file', data), 'file_is_directory', 2);
  expect(await readdir(data)).toEqual(['master-key']);
});
