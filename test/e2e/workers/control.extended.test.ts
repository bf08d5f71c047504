/** Tests workers whose primary follows Control: every worker takes what the primary takes, and not before it. */
import { mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, it } from '@jest/globals';
import type { BundleContent } from '../../../src/bundle/format/schema.ts';
import { passportSha256 } from '../../../src/protocol/passport.ts';
import { formatTime } from '../../../src/protocol/rfc3339.ts';
import { newJti, signPassport, signTranscript } from '../../../src/protocol/signing.ts';
import { keyNamed } from '../../bundle/deltas.ts';
import {
  AUTH_SITE,
  bundleContent,
  CLIENT_ISSUER,
  newSigningKey,
  newTestKeys,
  ORIGIN,
  TRUST_DOMAIN,
} from '../../fakes/bundle-content.ts';
import { type CheckClient, openCheckClient, outcomeOfResponse } from '../../fakes/check-client.ts';
import { rawCheckRequest } from '../../fakes/check-request.ts';
import { type FakeControl, startFakeControl } from '../../fakes/control-distribution.ts';
import { TestRedisServer } from '../../fakes/redis-server.ts';
import { type Service, startProofgate } from '../harness/sidecar.ts';
import { httpGet, waitFor } from '../harness/wait.ts';
import { childrenOf } from './worker-fixture.ts';

const WORKERS = 3;
const WAIT_MS = 60_000;
const TOKEN = 'target-token';
const keys = newTestKeys();
const enrolled = newSigningKey();
const nowSeconds = () => Math.floor(Date.now() / 1000);

let redis: TestRedisServer;
let control: FakeControl;
let folder: string;
let service: Service;
let admin: string;
let clients: readonly CheckClient[] = [];

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'pg-workers-control-'));
  await mkdir(join(folder, 'state'));
  await writeFile(join(folder, 'token'), TOKEN);
  await writeFile(join(folder, 'key.jwk.json'), JSON.stringify(keys.bundle.publicKey.jwk));
  redis = await TestRedisServer.start();
  control = await startFakeControl({ authSite: AUTH_SITE, signer: keys.bundle, nowSeconds, token: TOKEN });
  control.publishWhole(siteContent());
  await start();
}, 120_000);
afterAll(async () => {
  for (const client of clients) client.close();
  await service?.stop(30_000);
  await control?.close();
  await redis?.stop();
  await rm(folder, { recursive: true, force: true });
}, 60_000);

function siteContent(): Omit<BundleContent, 'revision' | 'previous_head'> {
  const { revision: _, derived_keys: __, ...content } = bundleContent(keys);
  return {
    ...content,
    issued_at: formatTime(nowSeconds()),
    expires_at: formatTime(nowSeconds() + 3600),
    skew_seconds: 1,
  };
}

const keyEntry = (status: 'active' | 'revoked') =>
  keyNamed('dk_enrolled', 'billing', enrolled.publicKey.jwk, {
    status,
    expires_at: formatTime(nowSeconds() + 3600),
  });

async function start(): Promise<void> {
  service = await startProofgate(
    [
      ...['verifier', '--auth-site', AUTH_SITE, '--bundle-key', join(folder, 'key.jwk.json')],
      ...['--state-dir', join(folder, 'state'), '--workers', String(WORKERS), '--redis-timeout', '2s'],
      ...['--listen', '127.0.0.1:0', '--admin-listen', '127.0.0.1:0'],
      ...['--audit-file', join(folder, 'audit.jsonl')],
      ...['--control-url', control.url, '--control-token-file', join(folder, 'token')],
    ],
    {
      env: { PROOFGATE_REPLAY: redis.url },
      readyTimeoutMs: WAIT_MS,
      readyUrl: (lines) => {
        const line = lines.find((candidate) => candidate.includes('"msg":"listening"'));
        return line === undefined ? undefined : `http://${JSON.parse(line).admin_listen}/readyz`;
      },
    },
  );
  const line = service.stderrLines.find((candidate) => candidate.includes('"msg":"listening"')) ?? '{}';
  const { admin_listen, listen } = JSON.parse(line);
  admin = `http://${admin_listen}`;
  clients = Array.from({ length: WORKERS }, () => openCheckClient(listen));
}

async function outcome(client: CheckClient): Promise<string> {
  const issuedAtSeconds = nowSeconds();
  const identity = { issuer: CLIENT_ISSUER, subject: 'client:billing', audience: ORIGIN };
  const times = { issuedAtSeconds, expiresAtSeconds: issuedAtSeconds + 60 };
  const caller = { ...identity, ...times, keyId: 'dk_enrolled' };
  const passport = signPassport(
    { ...caller, trustDomain: TRUST_DOMAIN, keyBinding: 'software', holderJwk: enrolled.publicKey.jwk },
    enrolled,
  );
  const bound = {
    method: 'GET',
    scheme: 'https' as const,
    authority: 'api.shop.example',
    target: '/v1/orders/17',
  };
  const rest = { routeId: 'orders-read', jti: newJti(), contentSha256: '-', headers: [] };
  const passportHash = passportSha256(passport);
  const proof = signTranscript(
    { ...caller, ...bound, ...rest, authSite: AUTH_SITE, passportSha256: passportHash },
    enrolled,
  );
  const headers = [
    { name: 'authorization', value: `Passport ${passport}` },
    { name: 'x-proofgate-transcript', value: proof.transcript },
    { name: 'x-proofgate-signature', value: proof.signature },
  ];
  return outcomeOfResponse(
    await client.check(rawCheckRequest({ ...bound, headers, body: { kind: 'none' } })),
  );
}

/** Checks every connection, and so every worker. */
async function allBecome(wanted: RegExp): Promise<void> {
  await waitFor(`all to say ${wanted}`, WAIT_MS, async () => {
    const outcomes = await Promise.all(clients.map((client) => outcome(client).catch(() => '')));
    return outcomes.every((said) => wanted.test(said)) || undefined;
  });
}

async function revisions(): Promise<ReadonlyMap<string, number>> {
  const { text } = await httpGet(`${admin}/metrics`);
  const found = text.matchAll(/^proofgate_bundle_revision\{worker="([^"]+)"\} (\d+)$/gm);
  return new Map([...found].map(([, worker = '', revision]) => [worker, Number(revision)]));
}

async function allAt(revision: number): Promise<void> {
  await waitFor(`all at revision ${revision}`, WAIT_MS, async () => {
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
  await waitFor('the acknowledgement', WAIT_MS, async () => acknowledged(revision) > 0 || undefined);
  expect(acknowledged(revision)).toBe(1);
}, 120_000);

function acknowledged(of: number): number {
  return control.acknowledgements.filter(
    ({ outcome: what, revision }) => revision === of && what === 'accepted',
  ).length;
}

it('a whole bundle, with a link or without, and statements', async () => {
  control.publishDelta({ keys_put: [keyEntry('active')] });
  const linked = control.publishLinked({ ...siteContent(), derived_keys: [keyEntry('active')] });
  await allAt(linked.revision);
  await allBecome(/^allowed$/);
  const after = control.publishDelta({ keys_put: [keyEntry('revoked')] });
  await allBecome(/key_revoked/);
  const whole = control.publishWhole({ ...siteContent(), derived_keys: [keyEntry('active')] });
  expect(whole.revision).toBeGreaterThan(after.revision);
  await allBecome(/^allowed$/);
  await allAt(whole.revision);
  await waitFor('all to be fresh', WAIT_MS, async () => {
    control.freshen();
    const { text } = await httpGet(`${admin}/metrics`);
    const ages = [...text.matchAll(/^proofgate_bundle_age_seconds\{[^}]*\} (\d+)$/gm)].map(([, age]) =>
      Number(age),
    );
    return (ages.length === WORKERS + 1 && ages.every((age) => age <= 2)) || undefined;
  });
}, 120_000);

it('many deltas reach all, and a worker that is killed meanwhile comes back to where they are', async () => {
  const [pid = 0] = childrenOf(service.pid);
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
  const { text } = await httpGet(`${admin}/readyz`);
  expect(JSON.parse(text).status).toBe('ready');
}, 120_000);

it('goes on without Control', async () => {
  await control.close();
  await allBecome(/^allowed$/);
  const { status, text } = await waitFor('the warning', WAIT_MS, async () => {
    const answer = await httpGet(`${admin}/readyz`);
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
}, 120_000);
