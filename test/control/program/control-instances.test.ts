/**
 * Tests several `proofgate control` processes on one PostgreSQL: they share one set of secrets, each answers requests, and one
 * runs each job.
 */
import { copyFile, mkdir, mkdtemp, readdir, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, afterEach, beforeAll, beforeEach, expect, it } from '@jest/globals';
import { LAUNCHER } from '../../support/cli/compiled-cli.ts';
import { makeSite, SITE } from '../../support/control/control-configuration.ts';
import {
  type ControlProgram,
  readBootstrapToken,
  startControlProgram,
} from '../../support/control/control-program.ts';
import { TestPostgresServer } from '../../support/harness/postgres-server.ts';
import { httpGet, waitFor } from '../../support/wait.ts';

let server: TestPostgresServer;
let folder = '';
let databaseUrl = '';
const running: ControlProgram[] = [];

beforeAll(async () => {
  server = await TestPostgresServer.start();
});
afterAll(async () => {
  await server.stop();
});
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'proofgate-control-'));
  databaseUrl = await server.createDatabase();
});
afterEach(async () => {
  await Promise.all(running.splice(0).map(({ child }) => child.stop()));
  await rm(folder, { recursive: true });
});

async function dataDirectory(name: string): Promise<string> {
  const path = join(folder, name);
  await mkdir(path);
  return path;
}

/** Passes the database URL in a variable, so that no process argument contains the password. */
async function start(data: string, flags: readonly string[] = []): Promise<ControlProgram> {
  const env = { PROOFGATE_DATABASE_URL: databaseUrl };
  const program = await startControlProgram({ launcher: LAUNCHER, dataDirectory: data, env, flags });
  running.push(program);
  return program;
}

it('share the master key and the token that the first one made', async () => {
  const [one, two] = [await dataDirectory('one'), await dataDirectory('two')];
  const first = await start(one);
  await expect(start(two)).rejects.toThrow(/error: master_key_missing: /);
  expect(await readdir(two)).toEqual([]);
  await copyFile(join(one, 'master-key'), join(two, 'master-key'));
  const second = await start(two);
  expect(await readdir(two)).toEqual(['master-key']);

  const token = await readBootstrapToken(one);
  await makeSite(first, token);
  expect(await second.call({ path: `/v1/sites/${SITE}`, token })).toMatchObject({ status: 200 });
  await first.call({ method: 'DELETE', path: '/v1/bootstrap-token', token });
  expect(await second.call({ path: `/v1/sites/${SITE}`, token })).toMatchObject({ status: 401 });
});

it('that begin at the same time agree, when they have the same files', async () => {
  const shared = await dataDirectory('shared');
  const programs = await Promise.all(Array.from({ length: 3 }, () => start(shared)));
  expect((await readdir(shared)).sort()).toEqual(['bootstrap-token', 'master-key']);
  const token = await readBootstrapToken(shared);
  for (const program of programs) {
    expect(await program.call({ path: '/v1/session', token })).toMatchObject({ status: 200 });
  }
  const { body } = await (programs[0] as ControlProgram).call({ path: '/v1/audit-events', token });
  const kinds = (body.items as { kind: string }[]).map(({ kind }) => kind);
  expect(kinds.filter((kind) => kind === 'proofgate.control.bootstrap_token.create')).toHaveLength(1);
});

it('go on publishing when one is killed, and wait for a database that is away', async () => {
  const shared = await dataDirectory('shared');
  const [first, second] = [await start(shared), await start(shared)];
  const token = await readBootstrapToken(shared);
  await makeSite(first, token);
  const target = await second.call({
    method: 'POST',
    path: `/v1/sites/${SITE}/targets`,
    token,
    body: { name: 'gateway' },
  });
  const targetToken = String(target.body.token);
  const revisionAt = async (program: ControlProgram) => {
    const { status, body } = await program.call({ path: '/v1/targets/self/bundle', token: targetToken });
    return status === 200 ? Number(body.revision) : 0;
  };
  const before = await waitFor('a first bundle', async () => (await revisionAt(second)) || undefined);
  first.child.signal('SIGKILL');
  await first.child.exited;
  const client = { client_id: 'shipping', subject: 'client:shipping', context: {} };
  expect(
    await second.call({ method: 'POST', path: `/v1/sites/${SITE}/clients`, token, body: client }),
  ).toMatchObject({ status: 201 });
  await waitFor('the next revision', async () => (await revisionAt(second)) > before || undefined);

  await server.kill('SIGINT');
  await waitFor('readiness to fail', async () => {
    return (await httpGet(`${second.adminUrl}/readyz`)).status === 503 || undefined;
  });
  expect(await second.call({ path: `/v1/sites/${SITE}`, token })).toMatchObject({
    status: 503,
    body: { code: 'unavailable' },
    headers: { 'retry-after': expect.stringMatching(/^[0-9]+$/) },
  });
  await server.startAgain();
  await waitFor('readiness to return', async () => {
    return (await httpGet(`${second.adminUrl}/readyz`)).status === 200 || undefined;
  });
  expect(await second.call({ path: `/v1/sites/${SITE}`, token })).toMatchObject({ status: 200 });
  const said = second.child.stderrLines.join('\n');
  expect(said).not.toContain(new URL(databaseUrl).password);
});
