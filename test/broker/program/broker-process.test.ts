/** Tests the shipped `proofgate broker`: mutual TLS, rotation of keys, reload of files, shutdown. */
import { execFileSync } from 'node:child_process';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, expect, it } from '@jest/globals';
import { readSigningKeyFile } from '../../../src/process/files/key-files.ts';
import { parsePassport } from '../../../src/protocol/passport.ts';
import { softwareKeyProof, softwareKeysYaml } from '../../support/broker/broker-callers.ts';
import type { Caller } from '../../support/broker/broker-program.ts';
import { SpiffeAuthority } from '../../support/fakes/spiffe-authority.ts';
import { newSigningKey } from '../../support/fixtures/bundle-content.ts';
import {
  authority,
  callerWith,
  eventually,
  folder,
  jwksOf,
  ORDERS,
  running,
  start,
  workload,
} from './broker-process-fixture.ts';

describe('mutual TLS', () => {
  it('issues a passport for the key of the SVID, with the key in use', async () => {
    const { keys } = await jwksOf(await start('--passport-ttl', '90s'));
    const [broker] = running;
    const svid = authority.issueSvid('/orders');
    const { status, body } = await callerWith(svid.pem).passport(broker?.url ?? '');
    expect([status, body]).toEqual([
      200,
      expect.objectContaining({ subject: ORDERS, key_binding: 'attested_workload' }),
    ]);
    const passport = parsePassport(String(body.passport));
    expect(passport?.claims).toMatchObject({
      issuer: broker?.url,
      subject: ORDERS,
      trustDomain: 'shop.example',
    });
    expect(body.key_id).toBe(keys[0]?.kid);
  });

  it('refuses a caller without a certificate, and one of another authority', async () => {
    const { url } = await start();
    const anonymous = await callerWith().passport(url);
    expect([anonymous.status, anonymous.body.code]).toEqual([401, 'client_certificate_missing']);
    const stranger = await workload(SpiffeAuthority.create('shop.example')).passport(url);
    expect(stranger.status).toBe(401);
    const unknown = await workload(SpiffeAuthority.create('other.example')).passport(url);
    expect([unknown.status, unknown.body.code]).toEqual([403, 'trust_domain_unknown']);
  });

  it('closes a connection when its SVID ends, and takes the next SVID', async () => {
    const { url } = await start();
    const short = workload(authority, { notAfterMs: Date.now() + 2_500 });
    expect((await short.passport(url)).status).toBe(200);
    expect(short.connections).toBe(1);
    await eventually('the connection to close', async () => short.connections === 0);
    await eventually('the end', async () => (await short.passport(url)).body.code === 'svid_expired');
    expect((await workload().passport(url)).status).toBe(200);
  });

  it('closes connections when the trust bundle changes, and refuses SVIDs of the old authority', async () => {
    const broker = await start();
    const old = workload();
    const anonymous = callerWith();
    expect((await old.passport(broker.url)).status).toBe(200);
    expect((await anonymous.call(broker.url, '/jwks.json')).status).toBe(200);
    const next = SpiffeAuthority.create('shop.example');
    await folder.put('bundle.pem', next.pem);
    await eventually('the connection to close', async () => old.connections === 0);
    expect(anonymous.connections).toBe(1);
    expect(await broker.metric('proofgate_broker_connections_closed_total{cause="bundles_changed"}')).toBe(1);
    expect((await old.passport(broker.url)).status).toBe(401);
    expect((await workload(next).passport(broker.url)).status).toBe(200);
  });
});

it('rotates its key without a gap: published, used, removed', async () => {
  const broker = await start();
  const caller = workload();
  const keyId = async () => (await caller.passport(broker.url)).body.key_id;
  const published = async () => (await jwksOf(broker)).keys.map(({ kid }) => kid).sort();
  const first = String(await keyId());
  const { keyId: next } = await folder.rotate('shop.example');
  await eventually('the next key', async () => (await published()).length === 2);
  expect(await keyId()).toBe(first);
  await folder.rotate('shop.example', { activate: next });
  await eventually('its use', async () => (await keyId()) === next);
  expect(await published()).toEqual([first, next].sort());
  await folder.rotate('shop.example', { remove: first });
  await eventually('the end of the old key', async () => (await published()).length === 1);
  expect(await keyId()).toBe(next);
});

it('takes changed files, and keeps good ones while a changed one is faulty', async () => {
  const key = newSigningKey();
  const softwareKeys = await folder.put('software-keys.yaml', 'keys: []');
  const denyFile = await folder.put('deny.yaml', '{}');
  const broker = await start('--software-keys', softwareKeys, '--deny-file', denyFile);
  const caller = callerWith();
  const ask = async () => {
    const { body } = await caller.call(broker.url, '/v1/challenges', null);
    const proof = softwareKeyProof(String(body.challenge), key, undefined, { brokerUrl: broker.url });
    return caller.call(broker.url, '/v1/passports', { audience: 'https://api.shop.example', proof });
  };
  const code = async () => {
    const { status, body } = await ask();
    return status === 200 ? body.subject : body.code;
  };
  expect(await code()).toBe('key_not_registered');
  await folder.put('software-keys.yaml', softwareKeysYaml(key, 'ci:deploy'));
  await eventually('the key', async () => (await code()) === 'ci:deploy');
  await folder.put('software-keys.yaml', softwareKeysYaml(key, ORDERS));
  await eventually('the warning', async () => {
    const { checks } = await broker.readiness();
    return checks.some(
      ({ name, warning }) => name === 'software_keys' && /software_keys_invalid/.test(warning ?? ''),
    );
  });
  expect(await code()).toBe('ci:deploy');
  await folder.put('deny.yaml', 'subjects: [ "ci:deploy" ]');
  await eventually('the denial', async () => (await code()) === 'caller_denied');
  expect(await broker.metric('proofgate_broker_reloads_total{file="software_keys",outcome="failed"}')).toBe(
    1,
  );
});

it('warns of a software key whose trust domain has no signing key, and of its own certificate that ends', async () => {
  const key = softwareKeysYaml(newSigningKey(), 'ci:deploy').replaceAll('shop.example', 'bank.example');
  const softwareKeys = await folder.put('software-keys.yaml', key);
  const ending = authority.issueSvid('/broker', { notAfterMs: Date.now() + 3_600_000 }).pem;
  await folder.put('tls.crt', ending.cert);
  await folder.put('tls.key', ending.key);
  const broker = await start('--software-keys', softwareKeys);
  await broker.child.waitForLine(/"event":"certificate_ends"/);
  const warning = async () =>
    (await broker.readiness()).checks.find(({ name }) => name === 'software_key_domains')?.warning;
  expect(await warning()).toMatch(/bank\.example/);
  await folder.rotate('bank.example');
  await eventually('the key', async () => (await warning()) === undefined);
});

it('signs for a software key over its own TLS connection, and for no other', async () => {
  const [certFile, keyFile] = [join(folder.path, 'ci.crt'), join(folder.path, 'ci.key')];
  const files = ['-subj', '/CN=ci', '-days', '1', '-keyout', keyFile, '-out', certFile];
  execFileSync('openssl', ['req', '-x509', '-newkey', 'ed25519', '-nodes', ...files], { stdio: 'ignore' });
  const key = await readSigningKeyFile(keyFile);
  const softwareKeys = await folder.put('software-keys.yaml', softwareKeysYaml(key));
  const broker = await start('--software-keys', softwareKeys, '--serve-proofs');
  const svid = { cert: await readFile(certFile, 'utf8'), key: await readFile(keyFile, 'utf8') };
  const audience = 'https://api.shop.example';
  const ask = async (caller: Caller) => {
    const { body } = await caller.call(broker.url, '/v1/challenges', null);
    const edits = { operation: 'proof', audience, brokerUrl: broker.url } as const;
    const proof = softwareKeyProof(String(body.challenge), key, undefined, edits);
    const request = { method: 'GET', url: `${audience}/v1/orders`, headers: [] };
    return caller.call(broker.url, '/v1/proofs', {
      ...{ auth_site: 'shop-eu-1', route_id: 'orders-read', audience, proof, request },
    });
  };
  expect(await ask(callerWith(svid))).toMatchObject({
    status: 200,
    body: { headers: { Authorization: expect.stringMatching(/^Passport /) } },
  });
  for (const other of [callerWith(), workload()]) {
    expect(await ask(other)).toMatchObject({ status: 403, body: { code: 'connection_not_direct' } });
  }
});

it('serves the signing profiles that fit the caller', async () => {
  const profile = (subject: string) => `auth_site: shop-eu-1
issuer: https://broker.shop.example
trust_domain: shop.example
subject: ${subject}
key_binding: attested_workload
profiles:
  - { route_id: r, method: GET, path_template: /v1/orders, audience: https://api.shop.example, origins: [ "https://api.shop.example" ] }
`;
  await folder.put('mine.yaml', profile(ORDERS));
  await folder.put('other.yaml', profile('spiffe://shop.example/billing'));
  const broker = await start('--profiles', folder.path, '--issuer', 'https://broker.shop.example');
  const { status, body } = await workload().call(broker.url, '/v1/profiles', { proof: { kind: 'mtls' } });
  expect([status, body]).toEqual([
    200,
    { profiles: [expect.objectContaining({ subject: ORDERS, auth_site: 'shop-eu-1' })] },
  ]);
});

it('drains at SIGTERM: answers what is in progress, and closes idle connections', async () => {
  const broker = await start();
  const caller = workload();
  const idle = callerWith();
  await idle.call(broker.url, '/jwks.json');
  const answers = Array.from({ length: 20 }, () => caller.passport(broker.url));
  await answers[0];
  const stopped = broker.child.stop();
  const statuses = await Promise.allSettled(answers);
  expect(statuses[0]).toMatchObject({ status: 'fulfilled', value: { status: 200 } });
  expect(await stopped).toEqual({ code: 0, signal: null });
  expect(broker.child.stderrLines.at(-1)).toContain('"stopped"');
  const log = [...broker.child.stdoutLines, ...broker.child.stderrLines].join('\n');
  expect(log).not.toMatch(/PRIVATE KEY|eyJ/);
});
