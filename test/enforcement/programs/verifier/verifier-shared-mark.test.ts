/** Tests the high-water mark that verifiers share in a real Redis: one writes it, the next obeys it, an operator resets it. */
import { cp, mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, it } from '@jest/globals';
import { stringify } from 'yaml';
import { createRedisSharedMark } from '../../../../src/verifier/redis/redis-shared-mark.ts';
import { runInProcess, startInProcess } from '../../../support/cli/in-process.ts';
import { AUTH_SITE, bundleContent, edited, newTestKeys } from '../../../support/fixtures/bundle-content.ts';
import { freePort } from '../../../support/harness/free-port.ts';
import { TestRedisServer } from '../../../support/harness/redis-server.ts';
import { waitFor } from '../../../support/wait.ts';

const written = edited(
  bundleContent(newTestKeys()),
  { at: '/revision' },
  { at: '/issued_at' },
  { at: '/expires_at' },
);

let folder = '';
let redis: TestRedisServer;
const at = (name: string) => join(folder, name);

beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'proofgate-shared-mark-'));
  redis = await TestRedisServer.start();
  await writeFile(at('bundle.yaml'), stringify(written));
  await runInProcess(['keygen', '--out', at('key.pem'), '--public-out', at('key.jwk.json')]);
  const sign = ['bundle', 'sign', at('bundle.yaml'), '--key', at('key.pem')];
  expect((await runInProcess([...sign, '--out', at('first')])).exitCode).toBe(0);
  await cp(at('first'), at('second'), { recursive: true });
  const next = await runInProcess([...sign, '--previous', at('second'), '--out', at('second')]);
  expect(next.exitCode).toBe(0);
  for (const state of ['a', 'b', 'c', 'd']) await mkdir(at(state));
});
afterEach(async () => {
  await redis.stop();
  await rm(folder, { recursive: true, force: true });
});

/** Runs a verifier for the duration of `use`, which gets a function that reads a check of `/readyz`. */
async function withVerifier(
  state: string,
  bundle: string,
  use: (problemOf: (check: string) => Promise<string | undefined>) => Promise<void>,
): Promise<void> {
  const admin = `127.0.0.1:${await freePort()}`;
  const running = startInProcess(
    [
      ...['verifier', '--auth-site', AUTH_SITE, '--state-dir', at(state), '--log-level', 'silent'],
      ...['--bundle', at(bundle), '--bundle-key', at('key.jwk.json'), '--audit-file', at(`${state}.jsonl`)],
      ...['--listen', `unix:${at(`${state}.sock`)}`, '--admin-listen', admin],
    ],
    { PROOFGATE_REPLAY: redis.url },
  );
  const readyz = async (): Promise<string | undefined> =>
    fetch(`http://${admin}/readyz`).then(
      (response) => response.text(),
      () => undefined,
    );
  try {
    await waitFor('/readyz to answer', readyz);
    await use(async (check) => (await readyz())?.split('\n').find((line) => line.includes(check)));
  } finally {
    process.emit('SIGTERM', 'SIGTERM');
    const { exitCode, stderr } = await running.ended;
    expect([exitCode, stderr]).toEqual([0, '']);
  }
}

async function sharedRevision(): Promise<number | undefined> {
  const shared = createRedisSharedMark({ url: redis.url });
  try {
    return (await shared.read(AUTH_SITE, 2000))?.revision;
  } finally {
    await shared.close();
  }
}

const reset = (state: string, ...more: string[]) =>
  runInProcess(['bundle', 'reset-mark', AUTH_SITE, '--state-dir', at(state), '--yes', ...more], {
    PROOFGATE_REDIS: redis.url,
  });

it('is written by one verifier, binds the next that has none, and is reset on the record', async () => {
  await withVerifier('a', 'second', async () => {
    expect(await waitFor('the shared revision', sharedRevision)).toBe(2);
    expect((await reset('a')).stderr).toMatch(/^error: state_dir_in_use: /);
  });
  await withVerifier('b', 'first', async (problemOf) => {
    await waitFor('revision_lower', async () => (await problemOf('bundle'))?.includes('revision_lower'));
  });
  const { exitCode, stdout } = await reset('b', '--output', 'json');
  expect([exitCode, JSON.parse(stdout)]).toMatchObject([0, { own_mark: null, shared_mark: { revision: 2 } }]);
  expect(await readFile(at('b/mark-resets.jsonl'), 'utf8')).toContain('"shared_mark":{"revision":2,');
  expect(await sharedRevision()).toBeUndefined();
  await withVerifier('c', 'first', async () => {
    expect(await waitFor('the shared revision', sharedRevision)).toBe(1);
  });
});

it('that cannot be asked for lets a newcomer load nothing, until Redis is back; and cannot be reset', async () => {
  await redis.kill();
  const { exitCode, stderr } = await reset('d');
  expect([exitCode, stderr.split(': ')[1]]).toEqual([5, 'shared_mark_unavailable']);
  await withVerifier('d', 'first', async (problemOf) => {
    await waitFor('mark_unavailable', async () => (await problemOf('bundle'))?.includes('mark_unavailable'));
    await redis.startAgain();
    expect(await waitFor('the shared revision', sharedRevision)).toBe(1);
    await waitFor('the mark', async () => !(await problemOf('bundle'))?.includes('mark_unavailable'));
  });
});
