/** Tests the shipped `proofgate broker` as operators run it: trust domains, replicas, a Unix socket, audit file, certificate. */
import { readFile, rename, rm } from 'node:fs/promises';
import { request } from 'node:http';
import { join } from 'node:path';
import { expect, it } from '@jest/globals';
import { softwareKeyProof, softwareKeysYaml } from '../../support/broker/broker-callers.ts';
import { type BrokerProgram, Caller, startBrokerProgram } from '../../support/broker/broker-program.ts';
import { SpiffeAuthority } from '../../support/fakes/spiffe-authority.ts';
import { newSigningKey } from '../../support/fixtures/bundle-content.ts';
import { makeCertificates } from '../../support/harness/certificates.ts';
import {
  authority,
  callers,
  callerWith,
  eventually,
  folder,
  jwksOf,
  ORDERS,
  running,
  start,
  workload,
} from './broker-process-fixture.ts';

it('takes a changed TLS certificate', async () => {
  const { url } = await start();
  const other = await makeCertificates('localhost', 'spiffe://nobody.example/x', ['127.0.0.1']);
  try {
    await folder.putCertificate(other.server);
    const caller = new Caller(other.ca.cert);
    callers.push(caller);
    await eventually('the certificate', async () => (await caller.call(url, '/jwks.json')).status === 200);
  } finally {
    await other.remove();
  }
});

it('signs with the key of each trust domain, and for no other one', async () => {
  await folder.rotate('bank.example');
  const bank = SpiffeAuthority.create('bank.example');
  const bankBundle = await folder.put('bank.pem', bank.pem);
  const broker = await start('--spiffe-bundle', `bank.example=${bankBundle}`);
  const { keys } = await jwksOf(broker);
  for (const [of, trustDomain] of [
    [authority, 'shop.example'],
    [bank, 'bank.example'],
  ] as const) {
    const { body } = await workload(of).passport(broker.url);
    const kid = keys.find((key) => key.trust_domain === trustDomain)?.kid;
    expect([body.trust_domain, body.key_id]).toEqual([trustDomain, kid]);
  }
  await rm(join(folder.keyDir, 'bank.example'), { recursive: true });
  await eventually('the key to go', async () => (await jwksOf(broker)).keys.length === 1);
  const { status, body } = await workload(bank).passport(broker.url);
  expect([status, body.code]).toEqual([403, 'trust_domain_not_served']);
});

it('accepts the challenges of its replicas, also while they change the key', async () => {
  const [old, next] = ['a', 'b'].map((letter) => letter.repeat(44));
  const key = newSigningKey();
  const softwareKeys = await folder.put('software-keys.yaml', softwareKeysYaml(key));
  const flags = (name: string) => [
    '--software-keys',
    softwareKeys,
    '--challenge-key-file',
    join(folder.path, name),
  ];
  await folder.put('before', `${old}\n`);
  await folder.put('during', `${next}\n${old}\n`);
  const [before, during, alone] = [
    await start(...flags('before')),
    await start(...flags('during')),
    await start('--software-keys', softwareKeys),
  ];
  const ask = async (from: BrokerProgram, at: BrokerProgram) => {
    // Replicas have one public URL; these have one each.
    const { body } = await callerWith().call(from.url, '/v1/challenges', null);
    const proof = softwareKeyProof(String(body.challenge), key, undefined, { brokerUrl: at.url });
    const answer = await callerWith().call(at.url, '/v1/passports', {
      audience: 'https://api.shop.example',
      proof,
    });
    return answer.body.code ?? answer.status;
  };
  expect(await ask(before, before)).toBe(200);
  expect(await ask(during, during)).toBe(200);
  expect(await ask(alone, alone)).toBe(200);
  expect(await ask(before, alone)).toBe('challenge_invalid');
});

it('serves plain HTTP on a Unix socket, where the operating system says who may connect', async () => {
  const socketPath = join(folder.path, 'broker.sock');
  const broker = await startBrokerProgram(folder, { socketPath });
  running.push(broker);
  const status = await new Promise((resolve, reject) => {
    const asked = request({ socketPath, path: '/jwks.json', agent: false }, (response) =>
      resolve(response.statusCode),
    );
    asked.on('error', reject);
    asked.end();
  });
  expect(status).toBe(200);
  expect(await broker.child.stop()).toEqual({ code: 0, signal: null });
});

it('writes one audit event for each answer, and follows its file at SIGHUP', async () => {
  const auditFile = join(folder.path, 'audit.jsonl');
  const { url, child } = await start('--audit', 'required', '--audit-file', auditFile);
  await workload().passport(url);
  await rename(auditFile, `${auditFile}.1`);
  child.signal('SIGHUP');
  await child.waitForLine(/audit file reopened/);
  await callerWith().passport(url);
  const events = await Promise.all([`${auditFile}.1`, auditFile].map((file) => readFile(file, 'utf8')));
  expect(events.map((text) => JSON.parse(text))).toEqual([
    expect.objectContaining({ event: 'proofgate.broker', outcome: 'issued', subject: ORDERS }),
    expect.objectContaining({
      event: 'proofgate.broker',
      outcome: 'refused',
      code: 'client_certificate_missing',
    }),
  ]);
});
