/** Bundle endpoints: who may serve a bundle, and which bundle replaces the last good one. */
import { afterAll, beforeAll, beforeEach, describe, expect, test } from '@jest/globals';
import { parseIssuerNetwork } from '../../src/process/outbound-fetch/address-policy.ts';
import { type BundleEndpoint, BundleEndpointFollower } from '../../src/spiffe/bundles/bundle-endpoint.ts';
import { BundleStore } from '../../src/spiffe/bundles/bundle-store.ts';
import { FakeBundleEndpoint } from '../support/fakes/bundle-endpoint.ts';
import { SpiffeAuthority } from '../support/fakes/spiffe-authority.ts';

const DAY_MS = 24 * 3_600_000;
const HOST = 'bundles.example';
const SERVER_ID = 'spiffe://shop.example/spire/server';
const loopback = parseIssuerNetwork('127.0.0.0/8');

const shop = SpiffeAuthority.create('shop.example');
/** The next authority of the same trust domain. */
const rotated = SpiffeAuthority.create('shop.example');
const partner = SpiffeAuthority.create('partner.example');
const webCa = SpiffeAuthority.create('web.example');
const serverSvid = (authority: SpiffeAuthority, id = SERVER_ID) =>
  authority.issueSvid(id, { dnsNames: [HOST] });

let server: FakeBundleEndpoint;
let store: BundleStore;
let nowMs: number;
let problems: string[];
beforeAll(async () => {
  server = await FakeBundleEndpoint.start(serverSvid(shop));
});
afterAll(() => server.close());
beforeEach(() => {
  server.present(serverSvid(shop));
  server.document = shop.bundleDocument();
  server.redirectTo = undefined;
  server.requests = 0;
  store = new BundleStore();
  nowMs = Date.now();
  problems = [];
});

type Profile =
  | { readonly profile: 'https_web' }
  | { readonly profile: 'https_spiffe'; readonly endpointId: string };

function follower(profile: Profile, opened = [loopback]): BundleEndpointFollower {
  const endpoint: BundleEndpoint = { trustDomain: 'shop.example', url: server.url(HOST), ...profile };
  return new BundleEndpointFollower({
    endpoint,
    update: store.addSource(['shop.example']),
    bundles: store,
    fetch: {
      openedNetworks: opened.filter((network) => network !== undefined),
      privateCa: [webCa.pem],
      resolveName: () => Promise.resolve(['127.0.0.1']),
    },
    nowMs: () => nowMs,
    onProblem: ({ code }) => problems.push(code),
    onRefreshed: () => problems.push('refreshed'),
  });
}
const web = () => {
  server.present(serverSvid(webCa, 'spiffe://web.example/x'));
  return follower({ profile: 'https_web' });
};
const spiffe = (endpointId = SERVER_ID) => {
  const followed = follower({ profile: 'https_spiffe', endpointId });
  followed.adopt({ kind: 'bundle', sequence: undefined, refreshHintSeconds: undefined, ...shop.bundle });
  return followed;
};
const authorityOf = () => store.bundleOf('shop.example')?.x509Authorities[0]?.der;

describe('https_web', () => {
  test('takes the bundle of a server whose certificate is for its name', async () => {
    await web().refresh();
    expect(problems).toEqual(['refreshed']);
    expect(authorityOf()).toEqual(shop.certificateDer);
    expect(store.bundleOf('shop.example')?.jwtAuthorities[0]?.kid).toBe(shop.kid);
  });

  test('refuses a certificate of an unknown CA, although it is an SVID of the trust domain', async () => {
    await follower({ profile: 'https_web' }).refresh();
    expect(problems).toEqual(['tls_failed']);
    expect([authorityOf(), server.requests]).toEqual([undefined, 0]);
  });

  test('follows no redirect', async () => {
    server.redirectTo = server.url(HOST);
    await web().refresh();
    expect([problems, server.requests]).toEqual([['redirect_refused'], 1]);
  });

  test('connects to no private address that was not opened', async () => {
    await follower({ profile: 'https_web' }, []).refresh();
    expect([problems, server.requests]).toEqual([['address_forbidden'], 0]);
  });
});

describe('https_spiffe', () => {
  test('takes the bundle of the server with the configured SPIFFE ID', async () => {
    server.document = rotated.bundleDocument();
    await spiffe().refresh();
    expect(problems).toEqual(['refreshed']);
    expect(authorityOf()).toEqual(rotated.certificateDer);
  });

  test('authenticates the next refresh with the bundle of the last one', async () => {
    server.document = rotated.bundleDocument();
    const followed = spiffe();
    await followed.refresh();
    await followed.refresh();
    server.present(serverSvid(rotated));
    await followed.refresh();
    expect(problems).toEqual(['refreshed', 'tls_failed', 'refreshed']);
  });

  test.each([
    ['another SPIFFE ID of the trust domain', () => serverSvid(shop, 'spiffe://shop.example/orders')],
    ['the same SPIFFE ID by another authority', () => serverSvid(partner)],
    [
      'a certificate of a public CA for its name',
      () => webCa.issueSvid('/x', { dnsNames: [HOST], uris: [] }),
    ],
    ['an SVID that has ended', () => shop.issueSvid(SERVER_ID, { notAfterMs: Date.now() - 5_000 })],
  ])('refuses %s, and sends nothing', async (_name, svid) => {
    const followed = spiffe();
    server.present(svid());
    await followed.refresh();
    expect([problems, server.requests]).toEqual([['tls_failed'], 0]);
    expect(authorityOf()).toEqual(shop.certificateDer);
  });

  test('refuses any server while there is no bundle to authenticate it', async () => {
    await follower({ profile: 'https_spiffe', endpointId: SERVER_ID }).refresh();
    expect(problems).toEqual(['tls_failed']);
  });

  test("with an ID of another trust domain uses that one's bundle", async () => {
    const endpointId = 'spiffe://partner.example/bundles';
    server.present(serverSvid(partner, endpointId));
    const followed = follower({ profile: 'https_spiffe', endpointId });
    await followed.refresh();
    store.addSource(['partner.example'])([partner.bundle]);
    await followed.refresh();
    expect(problems).toEqual(['tls_failed', 'refreshed']);
  });
});

describe('a refresh', () => {
  test.each([
    ['a lower sequence', { spiffe_sequence: 6 }, 'bundle_rolled_back'],
    ['no sequence', { spiffe_sequence: undefined }, 'bundle_rolled_back'],
    [
      'other keys under the same sequence',
      { spiffe_sequence: 7, keys: rotated.bundleDocument().keys },
      'bundle_changed',
    ],
    ['fewer keys under the same sequence', { spiffe_sequence: 7, keys: onlyX509(shop) }, 'bundle_changed'],
    ['no keys', { spiffe_sequence: 8, keys: [] }, 'bundle_empty'],
    [
      'only keys of an unknown use',
      { spiffe_sequence: 8, keys: [{ use: 'wit-svid', kty: 'EC' }] },
      'bundle_empty',
    ],
    [
      'a broken certificate',
      { spiffe_sequence: 8, keys: [{ use: 'x509-svid', x5c: ['AAAA'] }] },
      'bundle_unreadable',
    ],
    [
      'a JWT key without a kid',
      { spiffe_sequence: 8, keys: [{ use: 'jwt-svid', kty: 'EC' }] },
      'bundle_unreadable',
    ],
    ['a sequence beyond 2^53', { spiffe_sequence: 2 ** 53 }, 'bundle_unreadable'],
    ['a negative sequence', { spiffe_sequence: -1 }, 'bundle_unreadable'],
    ['no list of keys', { keys: {} }, 'bundle_unreadable'],
  ])('with %s keeps the last good bundle', async (_name, members, code) => {
    const followed = web();
    server.document = shop.bundleDocument({ spiffe_sequence: 7 });
    await followed.refresh();
    const { generation } = store;
    server.document = { ...shop.bundleDocument(), ...members };
    await followed.refresh();
    expect(problems).toEqual(['refreshed', code]);
    expect([authorityOf(), store.generation]).toEqual([shop.certificateDer, generation]);
  });

  test('with the same keys under the same sequence, or others under a higher one, succeeds', async () => {
    const followed = web();
    await followed.refresh();
    await followed.refresh();
    expect(store.generation).toBe(1);
    server.document = rotated.bundleDocument({ spiffe_sequence: 2 });
    await followed.refresh();
    expect([problems, store.generation]).toEqual([['refreshed', 'refreshed', 'refreshed'], 2]);
    expect(authorityOf()).toEqual(rotated.certificateDer);
  });

  test.each([
    ['a failing server', undefined],
    ['an empty set', shop.bundleDocument({ keys: [], spiffe_sequence: 9 })],
  ])(
    'of %s keeps the last good bundle for a day, and the next good one comes back',
    async (_name, document) => {
      const followed = web();
      await followed.refresh();
      server.document = document;
      await followed.refresh();
      nowMs += DAY_MS - 1;
      await followed.refresh();
      expect(authorityOf()).toEqual(shop.certificateDer);
      nowMs += 1;
      await followed.refresh();
      expect(store.bundleOf('shop.example')).toBeUndefined();
      server.document = shop.bundleDocument();
      await followed.refresh();
      expect(authorityOf()).toEqual(shop.certificateDer);
    },
  );

  test('may begin with a lower sequence after the bundle was withdrawn', async () => {
    server.document = shop.bundleDocument({ spiffe_sequence: 7 });
    const followed = web();
    await followed.refresh();
    server.document = rotated.bundleDocument({ spiffe_sequence: 1 });
    await followed.refresh();
    nowMs += DAY_MS - 1;
    await followed.refresh();
    expect([problems, authorityOf()]).toEqual([
      ['refreshed', 'bundle_rolled_back', 'bundle_rolled_back'],
      shop.certificateDer,
    ]);
    nowMs += 1;
    await followed.refresh();
    expect([problems.at(-1), authorityOf()]).toEqual(['refreshed', rotated.certificateDer]);
  });

  test('authenticates https_spiffe even after the bundle was withdrawn', async () => {
    const lasting = SpiffeAuthority.create('shop.example', { notAfterMs: Date.now() + 3 * DAY_MS });
    const followed = follower({ profile: 'https_spiffe', endpointId: SERVER_ID });
    followed.adopt({ kind: 'bundle', sequence: undefined, refreshHintSeconds: undefined, ...lasting.bundle });
    server.present(lasting.issueSvid(SERVER_ID, { notAfterMs: Date.now() + 2 * DAY_MS }));
    server.document = undefined;
    await followed.refresh();
    nowMs += DAY_MS;
    await followed.refresh();
    expect([problems, authorityOf()]).toEqual([['http_status', 'http_status'], undefined]);
    server.document = lasting.bundleDocument();
    await followed.refresh();
    expect(authorityOf()).toEqual(lasting.certificateDer);
  });

  test.each([
    [undefined, 300],
    [1, 60],
    [90, 90],
    [86_400, 3_600],
  ])('with hint %p comes after %d seconds', async (spiffe_refresh_hint, seconds) => {
    const followed = web();
    expect(followed.refreshSeconds).toBe(60);
    server.document = shop.bundleDocument({ spiffe_refresh_hint });
    await followed.refresh();
    expect(followed.refreshSeconds).toBe(seconds);
  });
});

test("an operator's bundle replaces the latest, whatever its sequence", async () => {
  server.document = shop.bundleDocument({ spiffe_sequence: 7 });
  const followed = web();
  await followed.refresh();
  followed.adopt({ kind: 'bundle', sequence: 1, refreshHintSeconds: undefined, ...rotated.bundle });
  expect(authorityOf()).toEqual(rotated.certificateDer);
  await followed.refresh();
  expect([problems, authorityOf()]).toEqual([['refreshed', 'refreshed'], shop.certificateDer]);
});

function onlyX509(authority: SpiffeAuthority) {
  const { keys } = authority.bundleDocument();
  return Array.isArray(keys) ? keys.slice(0, 1) : [];
}
