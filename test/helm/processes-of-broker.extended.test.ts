/** Runs the broker as the chart renders it, with Secrets as the kubelet mounts them, and changes one while it runs. */
import { generateKeyPairSync } from 'node:crypto';
import { once } from 'node:events';
import { rename, symlink } from 'node:fs/promises';
import type { IncomingMessage } from 'node:http';
import { type RequestOptions, request } from 'node:https';
import { text } from 'node:stream/consumers';
import { afterEach, beforeEach, expect, it } from '@jest/globals';
import { containersOf, describeChart, podsOf, render } from '../support/chart/chart.ts';
import {
  makePodFolder,
  type PodFolder,
  type StartedContainer,
  startContainer,
} from '../support/chart/pod-process.ts';
import { SpiffeAuthority } from '../support/fakes/spiffe-authority.ts';
import { makeCertificates, type TestCertificates } from '../support/harness/certificates.ts';
import { waitFor } from '../support/wait.ts';

const SUBJECT = 'spiffe://shop.example/ns/prod/sa/billing';
const authority = SpiffeAuthority.create('shop.example');

let certificates: TestCertificates;
let pod: PodFolder;
let broker: StartedContainer | undefined;

/** A volume of a Secret: a symlink for each file, and one to the version, which is replaced at once. */
async function mountSecret(path: string, version: string, files: Readonly<Record<string, string>>) {
  const isNew = version === '1';
  for (const [name, content] of Object.entries(files)) {
    await pod.put(`${path}/..version-${version}/${name}`, content);
    if (isNew || name === 'next.pem') await symlink(`..data/${name}`, pod.at(`${path}/${name}`));
  }
  await symlink(`..version-${version}`, pod.at(`${path}/..data_tmp`));
  await rename(pod.at(`${path}/..data_tmp`), pod.at(`${path}/..data`));
}

function newSigningKey(): string {
  return generateKeyPairSync('ed25519').privateKey.export({ type: 'pkcs8', format: 'pem' }).toString();
}

const ONE_BUNDLE = {
  broker: {
    publicUrl: 'https://broker.shop.example',
    issuer: '',
    signingKeys: [{ trustDomain: 'shop.example', secretName: 'broker-keys' }],
    spiffe: {
      workloadApi: { enabled: false },
      bundles: [{ trustDomain: 'shop.example', configMap: 'shop-bundle', key: 'shop.json' }],
      bundleEndpoints: [],
      endpointCa: { configMap: '' },
    },
    softwareKeys: { configMap: '' },
    denyList: { configMap: '' },
  },
};

beforeEach(async () => {
  certificates = await makeCertificates('broker.shop.example', SUBJECT);
  pod = await makePodFolder(['/etc/proofgate/profiles', '/etc/proofgate/keys/shop.example']);
  await pod.put('/etc/proofgate/tls/tls.crt', certificates.server.cert);
  await pod.put('/etc/proofgate/tls/tls.key', certificates.server.key);
  await pod.put('/etc/proofgate/challenge-key/challenge-key', Buffer.alloc(32, 'k').toString('base64'));
  const bundle = JSON.stringify(authority.bundleDocument());
  await pod.put('/etc/proofgate/bundles/shop.example/bundle.json', bundle, 0o644);
});
afterEach(async () => {
  await broker?.service.stop();
  await Promise.all([pod.remove(), certificates.remove()]);
});

/** @param svid whether to show an X.509-SVID */
async function ask(path: string, svid: boolean, body?: object): Promise<{ status?: number; json: unknown }> {
  const [host, port] = broker?.address(9196).split(':') ?? [];
  const { cert, key } = authority.issueSvid(SUBJECT).pem;
  const options: RequestOptions = {
    ...{ host, port, path, servername: 'broker.shop.example', ca: certificates.ca.cert, agent: false },
    ...(svid ? { cert, key } : {}),
    ...(body === undefined ? {} : { method: 'POST', headers: { 'content-type': 'application/json' } }),
  };
  const sent = request(options).end(body === undefined ? undefined : JSON.stringify(body));
  const [answer]: IncomingMessage[] = await once(sent, 'response');
  if (answer === undefined) throw new Error('no answer');
  return { status: answer.statusCode ?? 0, json: JSON.parse(await text(answer)) };
}

describeChart('as the chart starts it', () => {
  it('the broker gives a workload a passport, and publishes the next key of a changed Secret', async () => {
    const first = { 'first.pem': newSigningKey(), current: 'first\n' };
    await mountSecret('/etc/proofgate/keys/shop.example', '1', first);
    const [container] = podsOf(render({ file: 'broker-federated', also: ONE_BUNDLE })).flatMap(({ spec }) =>
      containersOf(spec),
    );
    if (container === undefined) throw new Error('no container');
    broker = await startContainer(container, pod);

    const wanted = { audience: 'orders', proof: { kind: 'mtls' } };
    expect(await ask('/v1/passports', true, wanted)).toMatchObject({
      status: 200,
      json: { key_id: 'first', subject: SUBJECT, key_binding: 'attested_workload' },
    });
    expect((await ask('/v1/passports', false, wanted)).status).toBeGreaterThanOrEqual(400);

    await mountSecret('/etc/proofgate/keys/shop.example', '2', { ...first, 'next.pem': newSigningKey() });
    await waitFor('the next key to be published', async () => {
      const { json } = await ask('/jwks.json', false);
      return JSON.stringify(json).includes('"next"');
    });
  });
});
