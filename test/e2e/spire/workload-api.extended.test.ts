/** Our Workload API client against a real SPIRE agent. */
import { afterAll, beforeAll, expect, it } from '@jest/globals';
import { parseIssuerNetwork } from '../../../src/process/outbound-fetch/address-policy.ts';
import { readBundleText } from '../../../src/spiffe/bundles/bundle-document.ts';
import { BundleEndpointFollower } from '../../../src/spiffe/bundles/bundle-endpoint.ts';
import { BundleStore } from '../../../src/spiffe/bundles/bundle-store.ts';
import { followWorkloadBundles } from '../../../src/spiffe/bundles/workload-api-bundles.ts';
import { verifyJwtSvid } from '../../../src/spiffe/jwt-svid.ts';
import { fetchJwtSvids } from '../../../src/spiffe/workload-api/jwt-svids.ts';
import type { WorkloadApiError } from '../../../src/spiffe/workload-api/workload-api.ts';
import { watchX509Svids, type X509SvidUpdate } from '../../../src/spiffe/workload-api/x509-svids.ts';
import { verifyX509Svid } from '../../../src/spiffe/x509-svid.ts';
import { machineSlowness, waitFor } from '../../support/wait.ts';
import { authorityOf } from './spire-agent.ts';
import { type StartedSpire, useSpire } from './spire-fixture.ts';
import { describeWithSpire } from './spire-programs.ts';

describeWithSpire('the Workload API client with real SPIRE', () => {
  const spire = useSpire();
  const stop = new AbortController();
  const updates: X509SvidUpdate[] = [];
  const errors: WorkloadApiError[] = [];
  const store = new BundleStore();
  let started: StartedSpire;

  const latest = () => updates.at(-1);
  const svidOf = (path: string) =>
    latest()?.svids.find(({ spiffeId }) => spiffeId === started.server.id(path));

  beforeAll(async () => {
    started = await spire.start([{ path: '/orders', hint: 'internal' }, { path: '/billing' }], {
      svidTtlSeconds: 20,
    });
    const { signal } = stop;
    const address = started.agent.endpoint;
    const onError = (error: WorkloadApiError) => void errors.push(error);
    const onUpdate = (update: X509SvidUpdate) => void updates.push(update);
    void watchX509Svids(address, { onUpdate, onError, signal });
    const update = store.addSource();
    void followWorkloadBundles({ address, update, withJwt: true, onError, signal, nowMs: Date.now });
    await waitFor('SVIDs and bundles', async () => {
      const bundle = store.bundleOf('shop.example');
      return (svidOf('/orders') && bundle?.jwtAuthorities.length) || undefined;
    });
  });
  afterAll(() => stop.abort());

  it('gets every SVID with its hint, and each verifies against the bundle', () => {
    expect(
      latest()
        ?.svids.map(({ hint, spiffeId }) => [spiffeId, hint])
        .sort(),
    ).toEqual([
      [started.server.id('/billing'), undefined],
      [started.server.id('/orders'), 'internal'],
    ]);
    for (const { chainDer, notAfterMs, spiffeId } of latest()?.svids ?? []) {
      expect(verifyX509Svid(chainDer, store, Date.now())).toMatchObject({
        kind: 'svid',
        spiffeId,
        notAfterMs,
      });
    }
  });

  it('gets a JWT-SVID that verifies against the JWT bundle', async () => {
    const audience = 'https://broker.example#jkt=x';
    const spiffeId = started.server.id('/orders');
    const [svid] = await fetchJwtSvids(started.agent.endpoint, { audience, spiffeId, signal: stop.signal });
    const verified = await verifyJwtSvid(svid?.token ?? '', { audience, bundles: store, nowMs: Date.now() });
    expect(verified).toMatchObject({ kind: 'svid', spiffeId });
  });

  it('gets a new key when the SVID is rotated', async () => {
    const before = svidOf('/orders')?.chainDer[0]?.toString('hex');
    await waitFor('rotation', async () => {
      const now = svidOf('/orders')?.chainDer[0]?.toString('hex');
      return (now !== undefined && now !== before) || undefined;
    });
    expect(verifyX509Svid(svidOf('/orders')?.chainDer ?? [], store, Date.now())).toMatchObject({
      kind: 'svid',
    });
  });

  it('comes back soon after the agent', async () => {
    errors.length = 0;
    await started.agent.stop();
    // Long enough for any backoff to have reached its maximum.
    await waitFor('failures', async () => errors.length > 5 || undefined);
    expect(errors[0]?.code).toBe('workload_api_unavailable');
    const count = updates.length;
    await started.agent.startAgain();
    const readyMs = Date.now();
    await waitFor('an update', async () => updates.length > count || undefined);
    // A second at most, and the rest for a busy machine.
    expect(Date.now() - readyMs).toBeLessThan(5_000 * machineSlowness());
  });

  it('takes the bundle from the bundle endpoint of the server, and from no other SPIFFE ID', async () => {
    const network = parseIssuerNetwork('127.0.0.0/8');
    const read = readBundleText(await started.server.bundle('spiffe'));
    if (network === undefined || read.kind !== 'bundle') throw new Error('unreadable');
    const outcomes: string[] = [];
    const refresh = async (path: string) => {
      const fetched = new BundleStore();
      const follower = new BundleEndpointFollower({
        endpoint: {
          trustDomain: 'shop.example',
          url: `${started.server.bundleEndpoint}/`,
          profile: 'https_spiffe',
          endpointId: started.server.id(path),
        },
        update: fetched.addSource(['shop.example']),
        bundles: fetched,
        fetch: { openedNetworks: [network] },
        nowMs: Date.now,
        onProblem: ({ code }) => outcomes.push(code),
        onRefreshed: () => outcomes.push('refreshed'),
      });
      follower.adopt({ ...read, sequence: undefined });
      await follower.refresh();
    };
    await refresh('/spire/server');
    await refresh('/orders');
    expect(outcomes).toEqual(['refreshed', 'tls_failed']);
  });

  it('follows a prepared, activated, tainted and revoked authority', async () => {
    const { active } = await started.server.authorities();
    const prepared = await started.server.prepareAuthority();
    await waitFor(
      'two authorities',
      async () => store.bundleOf('shop.example')?.x509Authorities.length === 2 || undefined,
    );
    const old = svidOf('/orders')?.chainDer ?? [];
    const formerAuthority = authorityOf(await started.agent.ownSvid());
    await started.server.changeAuthority('activate', prepared);
    await started.server.changeAuthority('taint', active);
    await waitFor('an SVID of the new authority', async () => {
      const chain = svidOf('/orders')?.chainDer ?? [];
      return verifyX509Svid(chain, newest(store), Date.now()).kind === 'svid' || undefined;
    });
    await started.agent.waitForOwnSvidAfter(formerAuthority);
    const generation = store.generation;
    await started.server.changeAuthority('revoke', active);
    await waitFor(
      'one authority',
      async () => store.bundleOf('shop.example')?.x509Authorities.length === 1 || undefined,
    );
    expect(store.generation).toBeGreaterThan(generation);
    expect(verifyX509Svid(svidOf('/orders')?.chainDer ?? [], store, Date.now())).toMatchObject({
      kind: 'svid',
    });
    const nowMs = Date.now();
    expect(verifyX509Svid(old, store, nowMs)).toMatchObject({ kind: 'problem' });
  });

  it('tells that the identity has gone when its entries are deleted', async () => {
    errors.length = 0;
    for (const id of started.entryIds) await started.server.deleteEntry(id);
    await waitFor(
      'no identity',
      async () => errors.some(({ code }) => code === 'workload_api_no_identity') || undefined,
    );
  });
});

/** Only the newest authority of the bundle. */
function newest(store: BundleStore) {
  const bundle = store.bundleOf('shop.example');
  const only = new BundleStore();
  if (bundle !== undefined) {
    const sorted = [...bundle.x509Authorities].sort((a, b) => b.notBeforeMs - a.notBeforeMs);
    only.addSource()([{ ...bundle, x509Authorities: sorted.slice(0, 1) }]);
  }
  return only;
}
