/** Tests workers whose primary follows Control: every worker takes what the primary takes, and not before it. */
import { mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, it } from '@jest/globals';
import { type FakeControl, startFakeControl } from '../../support/fakes/control-distribution.ts';
import { AUTH_SITE } from '../../support/fixtures/bundle-content.ts';
import { newEnrolledSite, wallClockSeconds } from '../../support/fixtures/enrolled-site.ts';
import type { CheckClient } from '../../support/harness/check-client.ts';
import { TestRedisServer } from '../../support/harness/redis-server.ts';
import { waitFor } from '../../support/wait.ts';
import { type RunningVerifier, startVerifier } from './worker-fixture.ts';

const WORKERS = 3;
const TOKEN = 'target-token';
const site = newEnrolledSite();
const { keyEntry } = site;

let redis: TestRedisServer;
let control: FakeControl;
let folder: string;
let verifier: RunningVerifier;
let clients: readonly CheckClient[] = [];

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'pg-workers-control-'));
  await mkdir(join(folder, 'state'));
  await writeFile(join(folder, 'token'), TOKEN);
  await writeFile(join(folder, 'key.jwk.json'), JSON.stringify(site.signer.publicKey.jwk));
  redis = await TestRedisServer.start();
  control = await startFakeControl({
    authSite: AUTH_SITE,
    signer: site.signer,
    nowSeconds: wallClockSeconds,
    token: TOKEN,
  });
  control.publishWhole(site.content());
  const args = [
    ...['verifier', '--auth-site', AUTH_SITE, '--bundle-key', join(folder, 'key.jwk.json')],
    ...['--state-dir', join(folder, 'state'), '--workers', String(WORKERS), '--redis-timeout', '2s'],
    ...['--listen', '127.0.0.1:0', '--audit-file', join(folder, 'audit.jsonl')],
    ...['--control-url', control.url, '--control-token-file', join(folder, 'token')],
  ];
  verifier = await startVerifier(args, { redisUrl: redis.url });
  clients = Array.from({ length: WORKERS }, () => verifier.connect());
});
afterAll(async () => {
  for (const client of clients) client.close();
  await verifier?.service.stop();
  await control?.close();
  await redis?.stop();
  await rm(folder, { recursive: true, force: true });
});

/** Checks every connection, and so every worker. */
async function allBecome(wanted: RegExp): Promise<void> {
  await waitFor(`all to say ${wanted}`, async () => {
    const outcomes = await Promise.all(clients.map((client) => site.outcome(client).catch(() => '')));
    return outcomes.every((said) => wanted.test(said)) || undefined;
  });
}

async function revisions(): Promise<ReadonlyMap<string, number>> {
  const { text } = await verifier.get('/metrics');
  const found = text.matchAll(/^proofgate_bundle_revision\{worker="([^"]+)"\} (\d+)$/gm);
  return new Map([...found].map(([, worker = '', revision]) => [worker, Number(revision)]));
}

async function allAt(revision: number): Promise<void> {
  await waitFor(`all at revision ${revision}`, async () => {
    const at = await revisions();
    return (at.size === WORKERS + 1 && [...at.values()].every((value) => value === revision)) || undefined;
  });
}

it('all take a key as it is enrolled, its revocation, and Control hears of each once', async () => {
  await allBecome(/key_unknown/);
  control.publishDelta({ keys_put: [keyEntry('active')] });
  await allBecome(/^allowed$/);
  const { revision } = control.publishDelta({ keys_put: [keyEntry('revoked')] });
  await allBecome(/key_revoked/);
  await allAt(revision);
  await waitFor('the acknowledgement', async () => acknowledged(revision) > 0 || undefined);
  expect(acknowledged(revision)).toBe(1);
});

function acknowledged(of: number): number {
  return control.acknowledgements.filter(
    ({ outcome: what, revision }) => revision === of && what === 'accepted',
  ).length;
}

it('a whole bundle, with a link or without, and statements', async () => {
  control.publishDelta({ keys_put: [keyEntry('active')] });
  const linked = control.publishLinked(site.content({ derived_keys: [keyEntry('active')] }));
  await allAt(linked.revision);
  await allBecome(/^allowed$/);
  const after = control.publishDelta({ keys_put: [keyEntry('revoked')] });
  await allBecome(/key_revoked/);
  const whole = control.publishWhole(site.content({ derived_keys: [keyEntry('active')] }));
  expect(whole.revision).toBeGreaterThan(after.revision);
  await allBecome(/^allowed$/);
  await allAt(whole.revision);
  await waitFor('all to be fresh', async () => {
    control.freshen();
    const { text } = await verifier.get('/metrics');
    const ages = [...text.matchAll(/^proofgate_bundle_age_seconds\{[^}]*\} (\d+)$/gm)].map(([, age]) =>
      Number(age),
    );
    return (ages.length === WORKERS + 1 && ages.every((age) => age <= 2)) || undefined;
  });
});

it('many deltas reach all, and a worker that is killed meanwhile comes back to where they are', async () => {
  const [pid = 0] = verifier.workerPids();
  let last = 0;
  for (let i = 0; i < 60; i++) {
    last = control.publishDelta({ keys_put: [keyEntry(i % 2 === 0 ? 'revoked' : 'active')] }).revision;
    if (i === 20) process.kill(pid, 'SIGKILL');
    if (i % 10 === 9) await allAt(last);
  }
  await allAt(last);
  await allBecome(/^allowed$/);
  const mark = JSON.parse(await readFile(join(folder, 'state', 'high-water-mark.json'), 'utf8'));
  expect(mark.revision).toBe(last);
  const { text } = await verifier.get('/readyz');
  expect(JSON.parse(text).status).toBe('ready');
});

it('Control hears of a revision only when a worker that hangs has ended', async () => {
  const [pid = 0] = verifier.workerPids();
  process.kill(pid, 'SIGSTOP');
  const { revision } = control.publishDelta({ keys_put: [keyEntry('active')] });
  await waitFor('the others', async () => {
    const at = [...(await revisions()).values()];
    return at.length === WORKERS && at.every((value) => value === revision);
  });
  expect(acknowledged(revision)).toBe(0);
  process.kill(pid, 'SIGKILL');
  await waitFor('the acknowledgement', async () => acknowledged(revision) > 0 || undefined);
  await allAt(revision);
  expect(acknowledged(revision)).toBe(1);
});

it('goes on without Control', async () => {
  await control.close();
  await allBecome(/^allowed$/);
  const { status, text } = await waitFor('the warning', async () => {
    const answer = await verifier.get('/readyz');
    return answer.text.includes('control_unreachable') ? answer : undefined;
  });
  expect(status).toBe(200);
  expect(JSON.parse(text).checks).toContainEqual(
    expect.objectContaining({
      name: 'control',
      ok: true,
      warning: expect.stringMatching(/^primary: control_unreachable/),
    }),
  );
});
