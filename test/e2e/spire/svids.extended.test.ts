/**
 * SVIDs and bundles of real SPIRE pass our checks, and each SVID only with the bundle of its own trust domain.
 * Source: docs/operate/broker.md "Proofs".
 */
import { X509Certificate } from 'node:crypto';
import { once } from 'node:events';
import { connect } from 'node:tls';
import { beforeAll, expect, it } from '@jest/globals';
import { readBundleText } from '../../../src/spiffe/bundles/bundle-document.ts';
import { BundleStore } from '../../../src/spiffe/bundles/bundle-store.ts';
import { verifyJwtSvid } from '../../../src/spiffe/jwt-svid.ts';
import type { TrustBundles } from '../../../src/spiffe/trust-bundles.ts';
import { verifyX509Svid } from '../../../src/spiffe/x509-svid.ts';
import { type StartedSpire, useSpire } from './spire-fixture.ts';
import { describeWithSpire } from './spire-programs.ts';
import type { SpireServer } from './spire-server.ts';

const CHECKOUT = '/ns/prod/sa/checkout';
const AUDIENCE = 'https://broker.shop.example#jkt=x';

describeWithSpire('SVIDs of SPIRE', () => {
  const spire = useSpire();
  let own: StartedSpire;
  let other: StartedSpire;

  beforeAll(async () => {
    own = await spire.start([{ path: CHECKOUT }]);
    other = await spire.start([{ path: CHECKOUT }], { trustDomain: 'partner.example' });
  });

  async function chainOf({ agent, server }: StartedSpire): Promise<readonly Uint8Array[]> {
    const { chain } = await agent.x509Svid(server.id(CHECKOUT));
    return [...chain.matchAll(/-----BEGIN[\s\S]*?END CERTIFICATE-----/g)].map(
      ([pem]) => new X509Certificate(pem).raw,
    );
  }

  it.each(['pem', 'spiffe'] as const)('verify with the bundle of their server (%s)', async (format) => {
    const bundles = await bundlesOf([[own.server, own.server, format]]);
    expect(verifyX509Svid(await chainOf(own), bundles, Date.now())).toMatchObject({
      kind: 'svid',
      spiffeId: `spiffe://shop.example${CHECKOUT}`,
      trustDomain: 'shop.example',
    });
  });

  it('are those of a workload alone: not of SPIRE itself', async () => {
    const bundles = await bundlesOf([[own.server, own.server, 'pem']]);
    const chain = await shownBy(own.server);
    expect(verifyX509Svid(chain, bundles, Date.now())).toMatchObject({ code: 'svid_reserved_id' });
  });

  it('of another trust domain verify with its bundle alone', async () => {
    const chain = await chainOf(other);
    const both = await bundlesOf([
      [own.server, own.server, 'pem'],
      [other.server, other.server, 'pem'],
    ]);
    expect(verifyX509Svid(chain, both, Date.now())).toMatchObject({ trustDomain: 'partner.example' });
    const ownAlone = await bundlesOf([[own.server, own.server, 'pem']]);
    expect(verifyX509Svid(chain, ownAlone, Date.now())).toMatchObject({ code: 'trust_domain_unknown' });
    const exchanged = await bundlesOf([[other.server, own.server, 'pem']]);
    expect(verifyX509Svid(chain, exchanged, Date.now())).toMatchObject({ code: 'svid_untrusted' });
  });

  it('verify as JWT-SVIDs, for their one audience', async () => {
    const token = await own.agent.jwtSvid(own.server.id(CHECKOUT), AUDIENCE);
    const expected = { bundles: await bundlesOf([[own.server, own.server, 'spiffe']]), nowMs: Date.now() };
    expect(await verifyJwtSvid(token, { ...expected, audience: AUDIENCE })).toMatchObject({
      kind: 'svid',
      spiffeId: own.server.id(CHECKOUT),
    });
    const elsewhere = { ...expected, audience: 'https://broker.elsewhere.example#jkt=x' };
    expect(await verifyJwtSvid(token, elsewhere)).toMatchObject({ code: 'jwt_svid_audience' });
  });
});

/** The server's own SVID, `/spire/server`, of the same authority. */
async function shownBy({ port }: SpireServer): Promise<readonly Uint8Array[]> {
  const socket = connect({ host: '127.0.0.1', port, rejectUnauthorized: false });
  try {
    await once(socket, 'secureConnect');
    const certificate = socket.getPeerX509Certificate();
    return certificate === undefined ? [] : [certificate.raw];
  } finally {
    socket.destroy();
  }
}

/** @param entries for the trust domain of the first server, the bundle of the second one */
async function bundlesOf(
  entries: readonly (readonly [SpireServer, SpireServer, 'pem' | 'spiffe'])[],
): Promise<TrustBundles> {
  const store = new BundleStore();
  const update = store.addSource();
  update(
    await Promise.all(
      entries.map(async ([{ trustDomain }, source, format]) => {
        const bundle = readBundleText(await source.bundle(format));
        if (bundle.kind !== 'bundle') throw new Error(bundle.text);
        return { ...bundle, trustDomain };
      }),
    ),
  );
  return store;
}
