/** Tests which rows of a site its bundle contains, and which changes are rejected. */
import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import { ApiProblem } from '../../../src/control/domain/api-problem.ts';
import { PolicyDraft } from '../../../src/control/publishing/policy-draft.ts';
import { createSiteCheck } from '../../../src/control/publishing/site-check.ts';
import { derivedKeyContent } from '../../../src/control/publishing/stored-site-content.ts';
import { newSigningKey } from '../../support/fixtures/bundle-content.ts';
import { ControlWorld, ISSUER_URL, ORDERS_READ, ORIGIN, SITE, TRUST_DOMAIN } from './publishing-fixture.ts';

let world: ControlWorld;
beforeEach(async () => {
  world = await ControlWorld.open();
});
afterEach(() => world.close());

const policy = async () => {
  const site = await world.site();
  return world.read(async (tx) => (await PolicyDraft.read(tx, site)).policy(tx, site));
};

/** @returns code and text of the rejection, or undefined */
const problem = (): Promise<string | undefined> =>
  world
    .read((tx) => createSiteCheck()(tx, SITE))
    .then(
      () => undefined,
      (error: unknown) => (error instanceof ApiProblem ? `${error.code} ${error.message}` : String(error)),
    );

describe('content', () => {
  it('is settings, clients with their grants, and routes that have sources', async () => {
    await world.putClient('billing', { orders: 'write', stock: 'read' });
    await world.putRoute(ORDERS_READ);
    await world.change((tx) =>
      tx.routes.add({
        siteId: SITE,
        routeId: 'without-sources',
        definition: '{}',
        version: 1,
        createdAtMs: 0,
        updatedAtMs: 0,
      }),
    );
    expect(await policy()).toEqual({
      format: 'proofgate.bundle/v1',
      auth_site: SITE,
      skew_seconds: 5,
      origins: [ORIGIN],
      single_verifier: true,
      trust_anchor_sources: [],
      issuers: [],
      clients: [
        {
          client_id: 'billing',
          issuer: ISSUER_URL,
          trust_domain: TRUST_DOMAIN,
          subject: 'client:billing',
          context: { environment: 'production' },
          grants: [
            { resource: 'orders', access: 'write' },
            { resource: 'stock', access: 'read' },
          ],
        },
      ],
      routes: [ORDERS_READ],
      route_sources: [
        {
          route_id: 'orders-read',
          allowed_sources: [
            {
              issuer: ISSUER_URL,
              trust_domain: TRUST_DOMAIN,
              subject_exact: 'client:billing',
              required_key_binding: 'software',
            },
          ],
        },
      ],
    });
    expect(await problem()).toBeUndefined();
  });

  it('lists a source once, by the revision that is being published', async () => {
    const first = await world.addSource(1, 'active');
    await world.addSource(2, 'publishing', first);
    const second = await world.addSource(3, 'suspended');
    await world.addSource(1, 'retired');
    await world.addSource(1, 'validated');
    await world.addSource(4, 'active', second);
    const third = await world.addSource(1, 'publishing');
    await world.addSource(2, 'active', third);
    const expected = [
      { id: first, revision: 2, fingerprint: 'fingerprint-2' },
      { id: second, revision: 4, fingerprint: 'fingerprint-4' },
      { id: third, revision: 1, fingerprint: 'fingerprint-1' },
    ];
    expect((await policy()).trust_anchor_sources).toEqual(
      expected.toSorted((a, b) => (a.id < b.id ? -1 : 1)),
    );
    expect(await problem()).toBeUndefined();
  });

  it('of a derived key says where it comes from, in words that a bundle can hold', () => {
    const { publicKey } = newSigningKey();
    const row = {
      ...world.keyRow('billing', publicKey, 60),
      listedEverywhereAtMs: null,
      revokedEverywhereAtMs: null,
      provenance: JSON.stringify({
        'kubernetes.pod.name': 'billing-1',
        source: 'not the real one',
        empty: '',
        spaced: 'a b',
        long: 'x'.repeat(513),
        ...Object.fromEntries(Array.from({ length: 40 }, (_, index) => [`extra-${index}`, 'x'])),
      }),
    };
    const content = derivedKeyContent(row);
    expect(content).toMatchObject({
      key_id: row.keyId,
      client_id: 'billing',
      jwk: publicKey.jwk,
      status: 'active',
      expires_at: '2026-11-21T04:01:00Z',
    });
    const provenance = content.provenance ?? {};
    expect(provenance).toMatchObject({
      enrollment_policy: 'ep_1',
      source: 'tas_1',
      verified_issuer: 'https://oidc.example',
      verified_subject: 'system:serviceaccount:prod:billing',
      'kubernetes.pod.name': 'billing-1',
    });
    expect(Object.keys(provenance)).toHaveLength(32);
    for (const name of ['empty', 'spaced', 'long']) expect(provenance).not.toHaveProperty(name);
  });
});

describe('the check', () => {
  it('names the route whose template no request could match', async () => {
    await world.putRoute({ ...ORDERS_READ, path_template: '/v1//orders' });
    expect(await problem()).toMatch(/^definition_invalid route orders-read: \/path_template: /);
  });

  it('names the broker that would be able to mint a client', async () => {
    await world.putClient('billing');
    const broker = newSigningKey().publicKey;
    const entry = {
      issuer: ISSUER_URL,
      trust_domain: TRUST_DOMAIN,
      subject_prefixes: ['spiffe://shop.example/'],
      key_binding: 'attested_workload',
      keys: [{ kid: 'broker-1', alg: 'Ed25519', jwk: broker.jwk }],
    };
    await world.change((tx) =>
      tx.brokers.add({
        siteId: SITE,
        issuer: ISSUER_URL,
        trustDomain: TRUST_DOMAIN,
        keyPins: '{}',
        definition: JSON.stringify(entry),
        version: 1,
        createdAtMs: 0,
        updatedAtMs: 0,
      }),
    );
    expect(await problem()).toMatch(
      new RegExp(`^definition_invalid broker ${ISSUER_URL} ${TRUST_DOMAIN}: /issuer: `),
    );
  });

  it('refuses a definition that is no route at all', async () => {
    await world.putRoute({ ...ORDERS_READ, freshness_class: 'bounded' });
    await world.change(async (tx) => {
      const row = await tx.routes.find(SITE, 'orders-read');
      if (row !== undefined) await tx.routes.change(row, { definition: '{"method":1}' }, 0);
    });
    expect(await problem()).toMatch(/^definition_invalid route orders-read: /);
  });

  it('refuses a site that is not there', async () => {
    await expect(world.read((tx) => createSiteCheck()(tx, 'other'))).rejects.toMatchObject({
      code: 'not_found',
    });
  });
});
