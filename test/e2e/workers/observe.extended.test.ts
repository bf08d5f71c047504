/** Tests an observed route at workers, as docs/operate/observe.md promises it: each worker, each restart, each clock. */
import { mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, it } from '@jest/globals';
import { formatTime } from '../../../src/protocol/rfc3339.ts';
import { LATCH_FILE } from '../../../src/verifier/observation/latch-file.ts';
import { type FakeControl, startFakeControl } from '../../support/fakes/control-distribution.ts';
import { AUTH_SITE } from '../../support/fixtures/bundle-content.ts';
import { newEnrolledSite, wallClockSeconds } from '../../support/fixtures/enrolled-site.ts';
import type { CheckClient } from '../../support/harness/check-client.ts';
import { TestRedisServer } from '../../support/harness/redis-server.ts';
import { waitFor } from '../../support/wait.ts';
import { FakeClock } from '../replay/fake-clock.ts';
import { type RunningVerifier, runToEnd, startVerifier } from './worker-fixture.ts';

const WORKERS = 2;
const TOKEN = 'target-token';
const ROUTE = 'orders-read';
const END = wallClockSeconds() + 1800;
/** The key of the request is never enrolled: an allowed request is an observed one. */
const OBSERVED = /^allowed$/;
const DENIED = /key_unknown/;
const site = newEnrolledSite();

let redis: TestRedisServer;
let control: FakeControl;
let clock: FakeClock;
let folder: string;
let verifier: RunningVerifier;
let clients: readonly CheckClient[] = [];

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'pg-workers-observe-'));
  await mkdir(join(folder, 'state'));
  await writeFile(join(folder, 'token'), TOKEN);
  await writeFile(join(folder, 'key.jwk.json'), JSON.stringify(site.signer.publicKey.jwk));
  redis = await TestRedisServer.start();
  clock = await FakeClock.create();
  control = await startFakeControl({
    ...{ authSite: AUTH_SITE, signer: site.signer, nowSeconds: wallClockSeconds, token: TOKEN },
  });
  control.publishWhole(observing());
  await start(END);
});
afterAll(async () => {
  await stop();
  await control?.close();
  await redis?.stop();
  await clock?.remove();
  await rm(folder, { recursive: true, force: true });
});

const observing = () => {
  const content = site.content();
  const until = { enforcement: 'observe' as const, observe_until: formatTime(END + 600) };
  const routes = content.routes.map((route) => (route.route_id === ROUTE ? { ...route, ...until } : route));
  return { ...content, routes };
};

const verifierArgs = () => [
  ...['verifier', '--auth-site', AUTH_SITE, '--bundle-key', join(folder, 'key.jwk.json')],
  ...['--state-dir', join(folder, 'state'), '--workers', String(WORKERS), '--redis-timeout', '2s'],
  ...['--listen', '127.0.0.1:0', '--audit-file', join(folder, 'audit.jsonl')],
  ...['--control-url', control.url, '--control-token-file', join(folder, 'token')],
];

async function start(allowedUntil: number): Promise<void> {
  const flags = ['--allow-observe', `${ROUTE}=${formatTime(allowedUntil)}`];
  verifier = await startVerifier([...verifierArgs(), ...flags], { redisUrl: redis.url, env: clock.env });
  clients = Array.from({ length: WORKERS }, () => verifier.connect());
}

async function stop(): Promise<void> {
  for (const client of clients) client.close();
  await verifier?.service.stop();
}

/** Checks every connection, and so every worker. */
async function allBecome(wanted: RegExp): Promise<void> {
  await waitFor(`all to say ${wanted}`, async () => {
    const outcomes = await Promise.all(clients.map((client) => site.outcome(client).catch(() => '')));
    return outcomes.every((said) => wanted.test(said)) || undefined;
  });
}

async function replaceWorker(): Promise<void> {
  const [pid = 0] = verifier.workerPids();
  process.kill(pid, 'SIGKILL');
  await waitFor('another worker', () => {
    const pids = verifier.workerPids();
    return pids.length === WORKERS && !pids.includes(pid);
  });
  await verifier.becomes(200);
}

const observationCheck = async () => {
  const { checks } = JSON.parse((await verifier.get('/readyz')).text);
  return checks.find(({ name }: { readonly name: string }) => name === 'observation');
};

it('every worker observes, and the one that replaces it', async () => {
  await allBecome(OBSERVED);
  expect(await observationCheck()).toMatchObject({
    ok: true,
    routes: [ROUTE],
    warning: expect.stringMatching(/^primary: denied requests pass without identity/),
  });
  await replaceWorker();
  await allBecome(OBSERVED);
});

it('after the end all enforce, without Control, without requests, and with a clock that goes back', async () => {
  await control.close();
  await clock.put(1900);
  await waitFor('the primary to close the latch', async () =>
    (await readFile(join(folder, 'state', LATCH_FILE), 'utf8')).includes('"closed":true'),
  );
  await clock.put(0);
  await allBecome(DENIED);
  await replaceWorker();
  await allBecome(DENIED);
  expect(await observationCheck()).toMatchObject({
    warning: expect.stringContaining('it was enforced here under this --allow-observe'),
  });
});

it('another flag begins again, and a bundle that enforces ends it for all workers', async () => {
  await stop();
  await control.listen(control.port);
  await start(END + 60);
  await allBecome(OBSERVED);
  control.publishWhole(site.content());
  await allBecome(DENIED);
  const { revision } = control.publishWhole(observing());
  await waitFor('all to hold it', () => control.acknowledgements.some((ack) => ack.revision === revision));
  for (const client of clients) expect(await site.outcome(client)).toMatch(DENIED);
});

it('the file of unmatched paths needs one process', async () => {
  const args = [...verifierArgs(), '--observe-paths-file', join(folder, 'paths.json')];
  const { code, stderr } = await runToEnd(args, redis.url);
  expect([code, stderr]).toEqual([2, [expect.stringMatching(/^error: observe_with_workers: /)]]);
});
