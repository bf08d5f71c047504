/** The Workload API client: updates, errors, restarts. test/e2e/spire/ has the same with a real agent. */
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { status } from '@grpc/grpc-js';
import { afterEach, beforeEach, describe, expect, test } from '@jest/globals';
import { BundleStore } from '../../src/spiffe/bundles/bundle-store.ts';
import { followWorkloadBundles } from '../../src/spiffe/bundles/workload-api-bundles.ts';
import { fetchJwtSvids } from '../../src/spiffe/workload-api/jwt-svids.ts';
import type { WorkloadApiError } from '../../src/spiffe/workload-api/workload-api.ts';
import { workloadSocketTarget } from '../../src/spiffe/workload-api/workload-socket.ts';
import {
  watchX509Svids,
  type X509SvidUpdate,
  type X509SvidWatch,
} from '../../src/spiffe/workload-api/x509-svids.ts';
import { SpiffeAuthority } from '../support/fakes/spiffe-authority.ts';
import { FakeWorkloadApi, type ServedSvid, x509SvidResponse } from '../support/fakes/workload-api.ts';
import { machineSlowness, waitFor } from '../support/wait.ts';

const authority = SpiffeAuthority.create('shop.example');
const partner = SpiffeAuthority.create('partner.example');
const served = (path: string, hint?: string): ServedSvid => ({
  spiffeId: `spiffe://shop.example${path}`,
  svid: authority.issueIntermediate().issueSvid(path),
  authority,
  ...(hint === undefined ? {} : { hint }),
});
const orders = served('/orders', 'internal');
const billing = served('/billing');

let directory: string;
let agent: FakeWorkloadApi;
let stop: AbortController;
let updates: X509SvidUpdate[];
let errors: WorkloadApiError[];
beforeEach(async () => {
  directory = await mkdtemp(join(tmpdir(), 'pg-workload-'));
  agent = await new FakeWorkloadApi(join(directory, 'a.sock')).start();
  stop = new AbortController();
  updates = [];
  errors = [];
});
afterEach(async () => {
  stop.abort();
  await agent.stop();
  await rm(directory, { recursive: true });
});

function watch(changes: Partial<X509SvidWatch> = {}): Promise<void> {
  const { signal } = stop;
  const onError = (error: WorkloadApiError) => void errors.push(error);
  const onUpdate = (update: X509SvidUpdate) => void updates.push(update);
  return watchX509Svids(agent.address, { onUpdate, onError, signal, ...changes });
}
const until = (what: string, isSo: () => boolean) => waitFor(what, async () => isSo() || undefined);

describe('X.509-SVIDs', () => {
  test('arrive with hint, chain, key and all bundles', async () => {
    agent.serveSvids([orders, billing], [partner]);
    void watch();
    await until('an update', () => updates.length > 0);
    const [first, second] = updates[0]?.svids ?? [];
    expect(first).toMatchObject({
      spiffeId: 'spiffe://shop.example/orders',
      trustDomain: 'shop.example',
      hint: 'internal',
      chainDer: orders.svid.chainDer,
    });
    expect(first?.privateKey.equals(orders.svid.privateKey)).toBe(true);
    expect(first?.notAfterMs).toBeGreaterThan(Date.now());
    expect(second).toMatchObject({ spiffeId: 'spiffe://shop.example/billing', hint: undefined });
    expect(updates[0]?.bundles.map(({ trustDomain }) => trustDomain)).toEqual([
      'shop.example',
      'partner.example',
    ]);
  });

  test('are replaced by each message', async () => {
    agent.serveSvids([orders, billing]);
    void watch();
    await until('an update', () => updates.length === 1);
    agent.serveSvids([served('/orders')]);
    await until('a second update', () => updates.length === 2);
    expect(updates[1]?.svids.map(({ spiffeId }) => spiffeId)).toEqual(['spiffe://shop.example/orders']);
    expect(errors).toEqual([]);
  });

  test('arrive again soon after a restart of the agent', async () => {
    agent.serveSvids([orders]);
    void watch();
    await until('an update', () => updates.length === 1);
    await agent.stop();
    await until('many failures', () => errors.length >= 5);
    expect(new Set(errors.map(({ code }) => code))).toEqual(new Set(['workload_api_unavailable']));
    await agent.start();
    const startMs = Date.now();
    await until('an update', () => updates.length === 2);
    // A second at most, and the rest for a busy machine.
    expect(Date.now() - startMs).toBeLessThan(5_000 * machineSlowness());
  });

  test('are asked for again when there is no identity yet', async () => {
    agent.fail(status.PERMISSION_DENIED);
    void watch();
    await until('errors', () => errors.length >= 2);
    expect(errors[0]?.code).toBe('workload_api_no_identity');
    agent.serveSvids([orders]);
    await until('an update', () => updates.length === 1);
  });

  test.each([status.INVALID_ARGUMENT, status.UNIMPLEMENTED])(
    'are asked for again slowly after status %d',
    async (code) => {
      agent.fail(code);
      const refusedRetryMs = 500;
      void watch({ refusedRetryMs });
      await until('an error', () => errors.length === 1);
      const startMs = Date.now();
      await until('another error', () => errors.length === 2);
      expect(Date.now() - startMs).toBeGreaterThan(refusedRetryMs / 2 - 20);
      expect(errors.map((error) => error.code)).toEqual(['workload_api_refused', 'workload_api_refused']);
      agent.serveSvids([orders]);
      await until('an update', () => updates.length === 1);
    },
  );

  test('are followed on after an unforeseen error', async () => {
    agent.serveSvids([orders]);
    let faults = 1;
    void watch({
      onUpdate: (update) => {
        faults -= 1;
        if (faults === 0) throw new TypeError('a defect');
        updates.push(update);
      },
    });
    await until('an error', () => errors.length === 1);
    expect(errors[0]).toMatchObject({
      code: 'workload_api_malformed',
      message: expect.stringMatching(/TypeError/),
    });
    agent.serveSvids([orders]);
    await until('an update', () => updates.length === 1);
    expect(agent.calls).toBe(1);
  });

  test.each([
    ['broken', { 'spiffe://bank.example': Buffer.alloc(3) }, /bank\.example/],
    ['of no trust domain', { bank: partner.certificateDer }, /invalid trust domain/],
  ])('arrive without a federated bundle that is %s', async (_name, broken, text) => {
    const { federated_bundles, svids } = x509SvidResponse([orders], [partner]);
    agent.serve({ x509Svids: { svids, federated_bundles: { ...federated_bundles, ...broken } } });
    void watch();
    await until('an error', () => errors.length === 1);
    expect(errors[0]).toMatchObject({ code: 'workload_api_malformed', message: expect.stringMatching(text) });
    const known = ['shop.example', 'partner.example'];
    expect(updates[0]?.bundles.map(({ trustDomain }) => trustDomain)).toEqual(known);
  });

  const [message] = x509SvidResponse([orders]).svids;
  test.each([
    ['without an SVID', { svids: [] }],
    ['with an SVID of another ID', { svids: [{ ...message, spiffe_id: 'spiffe://shop.example/admin' }] }],
    [
      'with an ID of another spelling',
      { svids: [{ ...message, spiffe_id: 'spiffe://shop.example/a/../b' }] },
    ],
    ["with another SVID's key", { svids: [{ ...message, ...onlyKey(billing) }] }],
    ['without a key', { svids: [{ ...message, x509_svid_key: Buffer.alloc(0) }] }],
    ['without a chain', { svids: [{ ...message, x509_svid: Buffer.alloc(0) }] }],
    ['with a broken chain', { svids: [{ ...message, x509_svid: Buffer.from('3003020101', 'hex') }] }],
    ['without a bundle', { svids: [{ ...message, bundle: Buffer.alloc(0) }] }],
    ['with a broken bundle of its own', { svids: [{ ...message, bundle: Buffer.alloc(3) }] }],
  ])('of a message %s are ignored, and the stream goes on', async (_name, x509Svids) => {
    agent.serve({ x509Svids });
    void watch();
    await until('an error', () => errors.length === 1);
    expect(errors[0]?.code).toBe('workload_api_malformed');
    agent.serveSvids([orders]);
    await until('an update', () => updates.length === 1);
    expect(agent.calls).toBe(1);
  });
});

function onlyKey({ svid }: ServedSvid) {
  return { x509_svid_key: svid.privateKey.export({ type: 'pkcs8', format: 'der' }) };
}

describe('JWT-SVIDs', () => {
  test('are fetched for one audience and one ID', async () => {
    agent.serveSvids([orders, billing]);
    const { spiffeId } = orders;
    const svids = await fetchJwtSvids(agent.address, { audience: 'a', spiffeId, signal: stop.signal });
    expect(svids).toMatchObject([{ spiffeId, hint: 'internal' }]);
  });

  test.each([
    [status.PERMISSION_DENIED, 'workload_api_no_identity'],
    [status.INVALID_ARGUMENT, 'workload_api_refused'],
    [status.UNAVAILABLE, 'workload_api_unavailable'],
  ])('fail after status %d with %s', async (code, expected) => {
    agent.fail(code);
    const fetching = fetchJwtSvids(agent.address, { audience: 'a', signal: stop.signal });
    await expect(fetching).rejects.toMatchObject({ code: expected });
  });

  test('fail without an agent', async () => {
    await agent.stop();
    const fetching = fetchJwtSvids(agent.address, { audience: 'a', signal: stop.signal });
    await expect(fetching).rejects.toMatchObject({ code: 'workload_api_unavailable' });
  });
});

describe('bundles', () => {
  const follow = (store: BundleStore, withJwt: boolean, nowMs = Date.now) =>
    followWorkloadBundles({
      ...{ address: agent.address, update: store.addSource(), withJwt, nowMs, signal: stop.signal },
      onError: (error) => void errors.push(error),
    });

  test('of X.509 and JWT authorities are joined by trust domain', async () => {
    agent.serveSvids([orders], [partner]);
    const store = new BundleStore();
    void follow(store, true);
    await until('bundles', () => store.bundleOf('partner.example')?.jwtAuthorities.length === 1);
    await until('bundles', () => store.bundleOf('partner.example')?.x509Authorities.length === 1);
    expect(store.bundleOf('shop.example')?.jwtAuthorities[0]?.kid).toBe(authority.kid);
  });

  test('of a trust domain that a message leaves out are dropped', async () => {
    agent.serveSvids([orders], [partner]);
    const store = new BundleStore();
    void follow(store, false);
    await until('bundles', () => store.bundleOf('partner.example') !== undefined);
    agent.serveSvids([orders]);
    await until('one bundle', () => store.bundleOf('partner.example') === undefined);
    expect(store.bundleOf('shop.example')?.jwtAuthorities).toEqual([]);
  });

  test('that cannot be used are left out alone', async () => {
    agent.serveSvids([orders], [partner]);
    const store = new BundleStore();
    const problems: (string | undefined)[] = [];
    const update = store.addSource();
    void followWorkloadBundles({
      ...{ address: agent.address, withJwt: true, nowMs: Date.now, signal: stop.signal },
      update: (bundles, problem) => {
        update(bundles);
        problems.push(problem?.code);
      },
      onError: (error) => void errors.push(error),
    });
    await until('all bundles', () => problems.length === 2);
    expect(problems).toEqual([undefined, undefined]);
    const withBroken = (own: Buffer) => ({
      bundles: { 'spiffe://shop.example': own, 'spiffe://partner.example': Buffer.from('broken') },
    });
    agent.serve({
      x509Bundles: withBroken(authority.certificateDer),
      jwtBundles: withBroken(Buffer.from(JSON.stringify(authority.bundleDocument()))),
    });
    await until('no bundle', () => store.bundleOf('partner.example') === undefined);
    expect(store.bundleOf('shop.example')?.jwtAuthorities).toHaveLength(1);
    expect([problems.at(-1), errors]).toEqual(['workload_api_malformed', []]);
  });

  test('stay while the agent is away, but not for more than a day', async () => {
    agent.serveSvids([orders]);
    const store = new BundleStore();
    let nowMs = 0;
    void follow(store, false, () => nowMs);
    await until('bundles', () => store.bundleOf('shop.example') !== undefined);
    await agent.stop();
    await until('an error', () => errors.length > 1);
    nowMs = 24 * 3_600_000 - 1;
    const count = errors.length;
    await until('an error', () => errors.length > count + 1);
    expect(store.bundleOf('shop.example')).toBeDefined();
    nowMs += 1;
    await until('no bundle', () => store.bundleOf('shop.example') === undefined);
  });
});

test.each([
  ['unix:///run/a.sock', 'unix:/run/a.sock'],
  ['unix:/run/a.sock', 'unix:/run/a.sock'],
  ['tcp://127.0.0.1:8000', 'ipv4:127.0.0.1:8000'],
  ['tcp://[::1]:8000', 'ipv6:[::1]:8000'],
  ['unix://run/a.sock', undefined],
  ['unix:a.sock', undefined],
  ['unix:///run/', undefined],
  ['unix:///run/a.sock?x', undefined],
  [`unix:///${'a'.repeat(107)}`, undefined],
  ['tcp://localhost:8000', undefined],
  ['tcp://127.0.0.1:8000/x', undefined],
  ['tcp://127.0.0.1:0', undefined],
  ['tcp://127.0.0.1:65536', undefined],
  ['/run/a.sock', undefined],
  ['http://127.0.0.1:8000', undefined],
  ['', undefined],
])('the address %j is %j for gRPC', (address, target) => {
  expect(workloadSocketTarget(address)).toBe(target);
});
