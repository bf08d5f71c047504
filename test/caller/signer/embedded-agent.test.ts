/** The signer as its own agent: with a fake Control, and with a fake broker. */
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, it } from '@jest/globals';
import pino from 'pino';
import { type RunningSigner, startSigner } from '../../../src/caller/signer/program/signer-process.ts';
import { SIGNER_SETTINGS } from '../../../src/caller/signer/program/signer-settings.ts';
import { settingValues } from '../../../src/process/settings/settings.ts';
import { newEd25519Key, profileDocument, routeDocument } from '../../support/caller/signing.ts';
import { FakeBroker, ISSUER } from '../../support/fakes/broker.ts';
import { FakeControl, POLICY } from '../../support/fakes/control-enrollment.ts';
import { httpGet, waitFor } from '../../support/wait.ts';

let folder = '';
const closers: (() => Promise<unknown>)[] = [];

beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'embedded-agent-'));
  await mkdir(join(folder, 'keys'));
});
afterEach(async () => {
  for (const close of closers.splice(0).reverse()) await close();
  await rm(folder, { recursive: true, force: true });
});

async function start(texts: Readonly<Record<string, string>>): Promise<RunningSigner> {
  const given = {
    'private-key-out': join(folder, 'keys', 'key.pem'),
    'admin-listen': '127.0.0.1:0',
    'api-listen': `unix:${join(folder, 'api.sock')}`,
    ...texts,
  };
  const values = new Map(Object.entries(given).map(([flag, text]) => [flag, [text]]));
  const signer = await startSigner(settingValues(SIGNER_SETTINGS, values), {}, pino({ level: 'silent' }));
  closers.push(() => signer.stop());
  return signer;
}

function get(signer: RunningSigner, path: string) {
  return httpGet(`http://${signer.addresses.admin_listen}${path}`);
}

const ready = (signer: RunningSigner) =>
  waitFor('the signer to be ready', async () => (await get(signer, '/readyz')).status === 200);

it('enrolls, and signs with the key', async () => {
  const control = await FakeControl.start({ approval: 'manual' });
  closers.push(() => control.close());
  await writeFile(join(folder, 'token'), await control.token());
  const signer = await start({
    ...{ 'control-url': control.url, policy: POLICY, 'proof-file': join(folder, 'token') },
    'poll-interval': '20ms',
  });
  await waitFor('it to wait for approval', async () => {
    const { status, text } = await get(signer, '/readyz');
    return status === 503 && text.includes('enrollment_pending');
  });
  control.approveAll();
  await ready(signer);
  const { text } = await get(signer, '/metrics');
  expect(text).toMatch(/^proofgate_signer_identity_expires_at_seconds [0-9]{10}$/m);
  expect(text).toMatch(/^proofgate_agent_enrollments_total\{outcome="enrolled"\} 1$/m);
});

it('gets passports from a broker', async () => {
  const broker = await FakeBroker.start();
  closers.push(() => broker.close());
  const registered = newEd25519Key();
  const pem = registered.privateKey.export({ type: 'pkcs8', format: 'pem' });
  await writeFile(join(folder, 'registered.pem'), pem, { mode: 0o600 });
  broker.softwareKeys.set(registered.publicKey.thumbprint, 'job:nightly');
  const { key_id: _none, ...document } = profileDocument({
    ...{ issuer: ISSUER, subject: 'job:nightly', profiles: [routeDocument()] },
  });
  broker.profiles = [document];
  const signer = await start({ 'broker-url': broker.url, key: join(folder, 'registered.pem') });
  await ready(signer);
  const { text } = await get(signer, '/metrics');
  expect(text).toMatch(/^proofgate_signer_identity_expires_at_seconds [0-9]{10}$/m);
});

it.each([
  [{ policy: POLICY, 'private-key-out': '' }, 'private_key_out_required'],
  [{ 'private-key-out': '' }, 'flag_required'],
  [{}, 'control_url_and_policy_required'],
])('%p: %s', async (texts, code) => {
  const given = Object.entries({ 'private-key-out': join(folder, 'keys', 'key.pem'), ...texts });
  const values = new Map(given.filter(([, text]) => text !== '').map(([flag, text]) => [flag, [text]]));
  const settings = settingValues(SIGNER_SETTINGS, values);
  const opening = startSigner({ ...settings, apiListen: 'unix:/nowhere' }, {}, pino({ level: 'silent' }));
  await expect(opening).rejects.toMatchObject({ code });
});
