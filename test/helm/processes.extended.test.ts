/** Runs the rendered containers as processes, each with the arguments, files and modes of its pod, and calls their probes. */
import { execFile } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { readFile, stat } from 'node:fs/promises';
import { connect } from 'node:net';
import { promisify } from 'node:util';
import { afterAll, afterEach, beforeAll, beforeEach, expect, it } from '@jest/globals';
import { stringify } from 'yaml';
import {
  type Container,
  containersOf,
  describeChart,
  podsOf,
  type Rendered,
  render,
} from '../support/chart/chart.ts';
import {
  makePodFolder,
  type PodFolder,
  runContainer,
  type StartedContainer,
  startContainer,
} from '../support/chart/pod-process.ts';
import { runInProcess } from '../support/cli/in-process.ts';
import { callApi } from '../support/control/control-program.ts';
import { bundleContent, edited, newTestKeys } from '../support/fixtures/bundle-content.ts';
import { makeCertificates, type TestCertificates } from '../support/harness/certificates.ts';
import { TestPostgresServer } from '../support/harness/postgres-server.ts';
import { runProofgate } from '../support/harness/proofgate-command.ts';
import { TestRedisServer } from '../support/harness/redis-server.ts';
import { httpGet } from '../support/wait.ts';
import { makeParentChart } from './parent-chart.ts';

let certificates: TestCertificates;
let pod: PodFolder;
const running: StartedContainer[] = [];
/** Dependencies, which end after the containers. */
const ended: (() => Promise<unknown>)[] = [];
const started = (container: StartedContainer) => {
  running.push(container);
  return container;
};

beforeAll(async () => {
  certificates = await makeCertificates('rel-proofgate-control.gateway.svc', 'spiffe://x/y', ['127.0.0.1']);
});
afterAll(() => certificates.remove());
beforeEach(async () => {
  pod = await makePodFolder(['/var/lib/proofgate', '/run/proofgate/secrets', '/run/proofgate']);
});
afterEach(async () => {
  await Promise.all(running.splice(0).map(({ service }) => service.stop()));
  for (const end of ended.splice(0)) await end();
  await pod.remove();
});

function containerOf(objects: readonly Rendered[], name: string): Container {
  const found = podsOf(objects)
    .flatMap(({ spec }) => containersOf(spec))
    .find((container) => container.name === name);
  if (found === undefined) throw new Error(`no container ${name}`);
  return found;
}

/** Writes the chart's ConfigMap of keys to its mount path. */
async function putTrust(objects: readonly Rendered[]): Promise<void> {
  const trust = objects.find(({ metadata }) => metadata.name === 'rel-proofgate-verifier-trust');
  for (const [name, content] of Object.entries(trust?.data ?? {})) {
    await pod.put(`/etc/proofgate/trust/${name}`, content, 0o644);
  }
}

async function putTls(): Promise<void> {
  await pod.put('/etc/proofgate/tls/tls.crt', certificates.server.cert);
  await pod.put('/etc/proofgate/tls/tls.key', certificates.server.key);
}

/** Signs a bundle into the volume. @returns the public key, for the values */
async function putBundle(singleVerifier: boolean): Promise<string> {
  const [key, publicKey, source] = ['/signer.pem', '/signer.jwk.json', '/bundle.yaml'].map(pod.at);
  const setBySigning = [{ at: '/revision' }, { at: '/issued_at' }, { at: '/expires_at' }];
  const content = { ...bundleContent(newTestKeys()), single_verifier: singleVerifier };
  await pod.put('/bundle.yaml', stringify(edited(content, ...setBySigning)));
  await runInProcess(['keygen', '--out', `${key}`, '--public-out', `${publicKey}`]);
  const signed = await runInProcess([
    ...['bundle', 'sign', `${source}`, '--key', `${key}`, '--out', pod.at('/etc/proofgate/bundle')],
  ]);
  expect(signed).toMatchObject({ exitCode: 0, stderr: '' });
  return readFile(`${publicKey}`, 'utf8');
}

/** Starts a sidecar with a bundle from a volume instead of Control, and its own Redis. */
async function startSidecar(renderWith: (also: object) => readonly Rendered[]): Promise<StartedContainer> {
  const redis = await TestRedisServer.start('--maxmemory-policy', 'noeviction');
  ended.push(() => redis.stop());
  const bundleKeys = { 'bundle-1.jwk.json': await putBundle(false) };
  const source = { control: { url: '' }, volume: { emptyDir: {} } };
  const objects = renderWith({ verifier: { trust: { bundleKeys }, source } });
  await putTrust(objects);
  // A chart that depends on this one renders a gateway with the patch.
  const gateways = objects.filter(({ kind }) => kind === 'Deployment');
  const container = containerOf(gateways.length > 0 ? gateways : objects, 'proofgate');
  return started(await startContainer(container, pod, { PROOFGATE_REPLAY: redis.url }));
}

async function expectListening(address: string): Promise<void> {
  const [host = '', port] = address.split(':');
  const socket = connect({ host, port: Number(port) });
  await once(socket, 'connect');
  socket.destroy();
}

describeChart('as processes', () => {
  it('one verifier without Redis gets ready, over TLS', async () => {
    const bundleKeys = { 'bundle-1.jwk.json': await putBundle(true) };
    const objects = render({ file: 'verifier-memory', also: { verifier: { trust: { bundleKeys } } } });
    await putTrust(objects);
    await putTls();
    const { address } = started(await startContainer(containerOf(objects, 'verifier'), pod));
    // `degraded`, since its bundle is too old for realtime routes.
    const { status, text } = await httpGet(`http://${address(9192)}/readyz`);
    expect(status).toBe(200);
    expect(text).toContain('"tls"');
  });

  it('a sidecar gets ready on its socket, with the Redis that its Secret names', async () => {
    await startSidecar((also) => render({ file: 'sidecar', also }));
    expect((await stat(pod.at('/run/proofgate/verifier.sock'))).isSocket()).toBe(true);
  });

  it('a sidecar on loopback listens there, and has no socket', async () => {
    const { address } = await startSidecar((also) => render({ file: 'sidecar-loopback', also }));
    await expectListening(address(9191));
    await expect(stat(pod.at('/run/proofgate/verifier.sock'))).rejects.toThrow('ENOENT');
  });

  // sidecar.extended.test.ts shows that the pods of such a chart have the same sidecar, on loopback as well.
  it('a sidecar in the pod of a chart that depends on this one gets ready', async () => {
    const parent = makeParentChart();
    try {
      await startSidecar((also) => parent.render('sidecar', also));
      expect((await stat(pod.at('/run/proofgate/verifier.sock'))).isSocket()).toBe(true);
    } finally {
      parent.remove();
    }
  });

  it('a sidecar whose Secret says `memory` in place of a Redis does not start: each would remember its own proofs', async () => {
    const sidecar = containerOf(render({ file: 'sidecar' }), 'proofgate');
    const { exitCode, stderr } = await runContainer(sidecar, pod, { PROOFGATE_REPLAY: 'memory' });
    expect([exitCode, stderr]).toEqual([2, expect.stringContaining('error: redis_setting_unused: ')]);
  });

  it('one Control on SQLite gets ready, makes its master key, and speaks TLS', async () => {
    await putTls();
    const container = containerOf(render({ file: 'control-sqlite' }), 'control');
    const { address } = started(await startContainer(container, pod));
    expect((await stat(pod.at('/var/lib/proofgate/master-key'))).mode & 0o777).toBe(0o600);
    const ca = certificates.ca.cert;
    expect(await callApi(`https://${address(9193)}`, { path: '/openapi.json', ca })).toMatchObject({
      status: 200,
    });
  });

  it('several Controls share a PostgreSQL, a master key and the bootstrap token of a Secret', async () => {
    const database = await TestPostgresServer.start();
    const [objects, token] = [
      render({ file: 'control-postgresql' }),
      `pgb_${randomBytes(32).toString('base64url')}`,
    ];
    const others = await makePodFolder(['/var/lib/proofgate', '/run/proofgate/secrets']);
    try {
      const url = await database.createDatabase();
      const [masterKey, ca] = [randomBytes(32).toString('base64url'), certificates.ca.cert];
      for (const own of [pod, others]) {
        await own.put('/etc/proofgate/database/url', `${url}\n`);
        await own.put('/etc/proofgate/tls/tls.crt', certificates.server.cert);
        await own.put('/etc/proofgate/tls/tls.key', certificates.server.key);
        await own.put('/mnt/secrets/master-key', masterKey);
        await own.put('/mnt/secrets/bootstrap-token', token);
        await runOwnSecrets(objects, own);
        const { address } = started(await startContainer(containerOf(objects, 'control'), own));
        const session = { path: '/v1/session', token, ca };
        expect(await callApi(`https://${address(9193)}`, session)).toMatchObject({ status: 200 });
      }
      await Promise.all(running.splice(0).map(({ service }) => service.stop()));
    } finally {
      await others.remove();
      await database.stop();
    }
  });

  it('a master key as a Secret is mounted would end Control: hence the copies', async () => {
    await pod.put('/run/proofgate/secrets/master-key', randomBytes(32).toString('base64url'), 0o440);
    const flags = [
      '--data-dir',
      pod.at('/var/lib/proofgate'),
      '--listen',
      '127.0.0.1:0',
      '--admin-listen',
      '127.0.0.1:0',
    ];
    const masterKey = [
      '--public-url',
      'https://x.example',
      '--master-key-file',
      pod.at('/run/proofgate/secrets/master-key'),
    ];
    const { exitCode, stderr } = await runProofgate(['control', ...flags, ...masterKey]);
    expect([exitCode, stderr]).toEqual([2, expect.stringContaining('error: file_permissions: ')]);
  });
});

/** Runs twice, as after a restart of the node. */
async function runOwnSecrets(objects: readonly Rendered[], { at }: PodFolder): Promise<void> {
  const { args, command } = containerOf(objects, 'own-secrets');
  const [, flag = '', script = ''] = command;
  const here = script.replaceAll('`/', `\`${at('/')}`);
  for (let time = 0; time < 2; time += 1) await promisify(execFile)(process.execPath, [flag, here, ...args]);
  for (const name of args) {
    expect((await stat(at(`/run/proofgate/secrets/${name}`))).mode & 0o777).toBe(0o600);
  }
}
