/** Tests where the shipped `proofgate broker` has its trust bundles from: a Workload API, a bundle endpoint. */
import { join } from 'node:path';
import { status } from '@grpc/grpc-js';
import { afterEach, beforeEach, expect, it } from '@jest/globals';
import {
  type BrokerFolder,
  type BrokerProgram,
  Caller,
  makeBrokerFolder,
  startBrokerProgram,
} from '../../support/broker/broker-program.ts';
import { FakeBundleEndpoint } from '../../support/fakes/bundle-endpoint.ts';
import { SpiffeAuthority } from '../../support/fakes/spiffe-authority.ts';
import { FakeWorkloadApi } from '../../support/fakes/workload-api.ts';
import { waitFor } from '../../support/wait.ts';

const bank = SpiffeAuthority.create('bank.example');

let folder: BrokerFolder;
let closing: (() => unknown)[];
beforeEach(async () => {
  folder = await makeBrokerFolder(SpiffeAuthority.create('shop.example'));
  await folder.rotate('bank.example');
  closing = [];
});
afterEach(async () => {
  for (const close of closing.reverse()) await close();
  await folder.remove();
});

async function start(flags: readonly string[], readyStatus: 200 | 503 = 200): Promise<BrokerProgram> {
  const broker = await startBrokerProgram(folder, { flags, readyStatus });
  closing.push(() => broker.child.stop());
  return broker;
}

function workloadOf(authority: SpiffeAuthority): Caller {
  const caller = new Caller(folder.tls.ca.cert, authority.issueSvid('/orders').pem);
  closing.push(() => caller.close());
  return caller;
}

async function warningOf(broker: BrokerProgram, name: string): Promise<string | undefined> {
  return (await broker.readiness()).checks.find((check) => check.name === name)?.warning;
}

function eventually(what: string, probe: () => Promise<boolean>): Promise<unknown> {
  return waitFor(what, async () => ((await probe()) ? true : undefined));
}

it('follows the Workload API: not ready before it, new authorities, and its absence', async () => {
  const agent = await new FakeWorkloadApi(join(folder.path, 'agent.sock')).start();
  closing.push(() => agent.stop());
  const next = SpiffeAuthority.create('bank.example');
  const serve = (authority: SpiffeAuthority) =>
    agent.serveSvids([
      { spiffeId: 'spiffe://bank.example/broker', svid: authority.issueSvid('/broker'), authority },
    ]);
  agent.fail(status.PERMISSION_DENIED);
  const broker = await start(['--spiffe-socket', agent.address], 503);
  const { checks } = await broker.readiness();
  expect(checks.flatMap(({ name, ok }) => (ok ? [] : name))).toEqual(['workload_api']);
  serve(bank);
  await eventually('readiness', async () => (await broker.readiness()).status === 'ready');

  const caller = workloadOf(bank);
  expect((await caller.passport(broker.url)).status).toBe(200);
  serve(next);
  await eventually('the connection to close', async () => caller.connections === 0);
  expect((await caller.passport(broker.url)).body.code).toBe('svid_untrusted');
  expect((await workloadOf(next).passport(broker.url)).status).toBe(200);

  await agent.stop();
  await eventually('the warning', async () =>
    /workload_api_unavailable/.test((await warningOf(broker, 'workload_api')) ?? ''),
  );
  expect((await workloadOf(next).passport(broker.url)).status).toBe(200);
});

it('follows a bundle endpoint, which the first bundle authenticates', async () => {
  const serverId = 'spiffe://bank.example/spire/server';
  const endpoint = await FakeBundleEndpoint.start(bank.issueSvid(serverId));
  closing.push(() => endpoint.close());
  const rotated = SpiffeAuthority.create('bank.example');
  endpoint.document = rotated.bundleDocument();
  const bundleFile = await folder.put('bank.pem', bank.pem);
  const flags = ['--spiffe-bundle-endpoint', `bank.example=${endpoint.url()},https_spiffe,${serverId}`];
  const broker = await start([
    ...flags,
    '--spiffe-bundle',
    `bank.example=${bundleFile}`,
    '--spiffe-bundle-network',
    '127.0.0.0/8',
  ]);
  await eventually('the newer bundle', async () => {
    const { status: answered } = await workloadOf(rotated).passport(broker.url);
    return answered === 200;
  });
  expect((await workloadOf(bank).passport(broker.url)).body.code).toBe('svid_untrusted');
  expect(await warningOf(broker, 'bundle_endpoint:bank.example')).toBeUndefined();
});

it('is ready without an endpoint of another trust domain, and refuses its callers alone', async () => {
  const broker = await start([
    '--spiffe-bundle-endpoint',
    'bank.example=https://127.0.0.1:1/bundle,https_web',
  ]);
  await eventually('the warning', async () =>
    /no trust bundle/.test((await warningOf(broker, 'bundle_endpoint:bank.example')) ?? ''),
  );
  expect((await workloadOf(bank).passport(broker.url)).body.code).toBe('trust_domain_unknown');
  expect(await broker.child.stop()).toEqual({ code: 0, signal: null });
});
