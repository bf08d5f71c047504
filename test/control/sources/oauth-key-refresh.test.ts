/** OAuth issuers of a site, with an authorization server over real TLS: what bundles hold of them, and when. */
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from '@jest/globals';
import { Brokers } from '../../../src/control/configuration/brokers.ts';
import { OAuthIssuers } from '../../../src/control/configuration/oauth-issuers.ts';
import type { OAuthIssuerDefinition } from '../../../src/control/contract/oauth-issuers-contract.ts';
import { createSiteCheck } from '../../../src/control/publishing/site-check.ts';
import { SitePublisher } from '../../../src/control/publishing/site-publisher.ts';
import { refreshOAuthKeys } from '../../../src/control/sources/oauth-key-refresh.ts';
import { UnknownOAuthKeys } from '../../../src/control/sources/unknown-oauth-keys.ts';
import type { JsonFetcher } from '../../../src/process/outbound-fetch/outbound-fetch.ts';
import { IssuerEnvironment } from '../../support/control/issuers-fixture.ts';
import type { ServiceAccountIssuer } from '../../support/fakes/service-account-issuer.ts';
import { newSigningKey } from '../../support/fixtures/bundle-content.ts';
import { addTarget } from '../publishing/control-server.ts';
import { Follower } from '../publishing/follower.ts';
import { ControlWorld, ISSUER_URL, SITE, TestClock, TRUST_DOMAIN } from '../publishing/publishing-fixture.ts';
import { databaseKinds } from '../store/databases.ts';

const HOUR_MS = 3_600_000;
const INTERVAL_MS = 300_000;
/** Minimum time between fetches. */
const REPORTED_MS = 10_000;
const DEFINITION: OAuthIssuerDefinition = { trust_domain: TRUST_DOMAIN };
const operation = { actor: 'bootstrap', requestId: 'req_1' };

describe.each(databaseKinds())('$name', (kind) => {
  let environment: IssuerEnvironment;
  let server: ServiceAccountIssuer;
  let world: ControlWorld;
  let issuers: OAuthIssuers;
  let publisher: SitePublisher;
  const outcomes: string[] = [];
  beforeAll(async () => {
    await kind.start();
    environment = await IssuerEnvironment.start();
  });
  afterAll(async () => {
    await environment.close();
    await kind.stop();
  });
  beforeEach(async () => {
    outcomes.length = 0;
    server = await environment.issuer({ path: '/realms/shop' });
    const clock = new TestClock();
    const open = await kind.fresh();
    const [opened] = await ControlWorld.instances([await open({ nowMs: clock.nowMs })], clock);
    if (opened === undefined) throw new Error('no world');
    world = opened;
    const { signingKeys, store } = world;
    issuers = new OAuthIssuers(deps());
    publisher = new SitePublisher(SITE, { store, signingKeys, nowMs: clock.nowMs });
  });
  afterEach(() => world.close());

  const deps = () => ({ store: world.store, nowMs: world.clock.nowMs, siteCheck: createSiteCheck() });
  const name = () => ({ siteId: SITE, issuer: server.issuer });
  const put = (definition = DEFINITION, version?: number) =>
    issuers.put(operation, name(), version, definition);
  const view = () => issuers.get(SITE, server.issuer);

  const fail = (error: unknown) => {
    throw error;
  };
  const refresh = (fetcher: JsonFetcher = environment.fetcher(), report: (error: unknown) => void = fail) =>
    refreshOAuthKeys({
      ...{ store: world.store, nowMs: world.clock.nowMs, fetcher },
      onFetched: (_row, outcome) => outcomes.push(outcome),
      report,
    });

  /** By issuer, the kids in the newest bundle. */
  async function published(): Promise<Readonly<Record<string, readonly string[]>>> {
    for (;;) {
      const outcome = await publisher.publishChanges();
      if (outcome === 'done') break;
      if (outcome === 'whole_needed') await publisher.publishWhole();
    }
    const { oauthIssuers } = await new Follower(world).follow();
    return Object.fromEntries([...oauthIssuers].map(([issuer, { keys }]) => [issuer, [...keys.keys()]]));
  }

  const faultOf = async (work: Promise<unknown>) =>
    work.then(
      () => 'none',
      (error: { readonly code?: string }) => error.code,
    );

  it('a server is published with its keys, and again only when they change', async () => {
    await put();
    expect(await published()).toEqual({});
    await refresh();
    const [first] = [server.signer.kid];
    expect(await published()).toEqual({ [server.issuer]: [first] });
    expect(await view()).toMatchObject({ published: true, version: 1, keys: [{ kid: first, alg: 'ES256' }] });
    const { revision } = await world.site();
    await refresh();
    expect(outcomes).toEqual(['refreshed']);
    world.clock.ms += INTERVAL_MS;
    await refresh();
    await published();
    expect([outcomes.length, (await world.site()).revision]).toEqual([2, revision]);
    const { kid: second } = server.rotate();
    world.clock.ms += INTERVAL_MS;
    await refresh();
    expect(await published()).toEqual({ [server.issuer]: [first, second].sort() });
    server.dropOldKeys();
    world.clock.ms += INTERVAL_MS;
    await refresh();
    expect(await published()).toEqual({ [server.issuer]: [second] });
    const audited = await world.read((tx) =>
      tx.audit.list({ resourceId: server.issuer, reach: { kind: 'everything' }, limit: 9 }),
    );
    expect(audited.map(({ actor, kind: what }) => `${actor} ${what}`)).toEqual([
      ...Array.from({ length: 3 }, () => 'control proofgate.control.oauth_issuer.change_keys'),
      'bootstrap proofgate.control.oauth_issuer.create',
    ]);
  });

  describe('a report of an unknown key', () => {
    let reported: UnknownOAuthKeys;
    beforeEach(async () => {
      reported = new UnknownOAuthKeys({ store: world.store, nowMs: world.clock.nowMs });
      await put();
      await refresh();
      world.clock.ms += REPORTED_MS;
    });

    const report = (kid: string, { issuer = server.issuer, siteId = SITE, targetId = 'edge' } = {}) =>
      reported.report({ siteId, targetId }, [{ issuer, kid }]);

    it('makes Control fetch before its schedule, and publish the key', async () => {
      const [first, { kid }] = [server.signer, server.rotate()];
      await refresh();
      expect(outcomes).toHaveLength(1);
      await report(kid);
      await refresh();
      expect(outcomes).toHaveLength(2);
      expect(await published()).toEqual({ [server.issuer]: [first.kid, kid].sort() });
    });

    it.each<[string, () => Promise<void>]>([
      ['a key that Control has', () => report(server.signer.kid)],
      ['an issuer that it does not know', () => report('made-up', { issuer: 'https://evil.example' })],
      ['an issuer of another site', () => report('made-up', { siteId: 'other' })],
    ])('of %s fetches nothing', async (_, work) => {
      await work();
      await refresh();
      expect(outcomes).toHaveLength(1);
    });

    it('never makes the fetches more frequent than the limit, also while they fail', async () => {
      server.setFault('keys', { kind: 'status', status: 500 });
      for (let seconds = 0; seconds < 60; seconds++) {
        for (const targetId of ['edge', 'west']) await report(`made-up-${seconds}`, { targetId });
        await refresh();
        world.clock.ms += 1000;
      }
      expect(outcomes).toHaveLength(1 + 6);
    });

    it('is limited by target, and limits no other target', async () => {
      for (let post = 0; post < 256; post++) await report('made-up');
      expect(await faultOf(report('made-up'))).toBe('rate_limited');
      await report('made-up', { targetId: 'west' });
    });

    it('counts after the limit if it comes before it', async () => {
      await report('made-up');
      await refresh();
      await report(server.rotate().kid);
      await refresh();
      expect(outcomes).toHaveLength(2);
      world.clock.ms += REPORTED_MS;
      await refresh();
      expect(outcomes).toHaveLength(3);
    });

    it('brings no fetch forward a second time', async () => {
      world.clock.ms -= REPORTED_MS;
      const forward = INTERVAL_MS - REPORTED_MS;
      for (let instances = 0; instances < 2; instances++) {
        await world.store.writeUnaudited(undefined, (tx) =>
          tx.oauthIssuers.bringForward(SITE, server.issuer, forward, world.clock.ms),
        );
      }
      world.clock.ms += REPORTED_MS - 1;
      await refresh();
      expect(outcomes).toHaveLength(1);
    });
  });

  it('keys outlast failures for a day, and come back', async () => {
    await put();
    await refresh();
    server.setFault('discovery', { kind: 'status', status: 500 });
    server.setFault('metadata', { kind: 'status', status: 500 });
    world.clock.ms += 24 * HOUR_MS;
    await refresh();
    expect(await view()).toMatchObject({ published: true, failure: 'http_status' });
    world.clock.ms += 1;
    await refresh();
    expect(await published()).toEqual({});
    expect(await view()).toMatchObject({ published: false, keys: [] });
    const [oldest] = await world.read((tx) => tx.oauthIssuers.oldestFetches());
    expect(world.clock.ms - (oldest?.fetchedAtMs ?? 0)).toBe(24 * HOUR_MS + 1);
    server.setFault('discovery', undefined);
    world.clock.ms += INTERVAL_MS;
    await refresh();
    expect(await published()).toEqual({ [server.issuer]: [server.signer.kid] });
    expect(await view()).not.toHaveProperty('failure');
  });

  it('a definition that this version cannot read keeps no keys of others', async () => {
    await put();
    await refresh();
    const { createdAtMs, updatedAtMs } = await world.site();
    const unreadable = {
      ...{ siteId: SITE, issuer: 'https://a.example', definition: '{"newer":1}', keys: '[]', version: 1 },
      ...{ fetchedAtMs: 1, attemptedAtMs: null, failureCode: null, createdAtMs, updatedAtMs },
    };
    await world.store.writeUnaudited({ kind: 'site', siteId: SITE }, (tx) => tx.oauthIssuers.add(unreadable));
    server.setFault('keys', { kind: 'status', status: 500 });
    world.clock.ms += 24 * HOUR_MS + 1;
    const errors: unknown[] = [];
    await refresh(undefined, (error) => errors.push(error));
    expect([(await view()).published, errors.length]).toEqual([false, 2]);
  });

  it('a server that withdraws all its keys has none', async () => {
    await put();
    await refresh();
    server.dropAllKeys();
    world.clock.ms += INTERVAL_MS;
    await refresh();
    expect([await published(), outcomes]).toEqual([{}, ['refreshed', 'key_set_no_usable_key']]);
  });

  it('a change fetches again, and keys of another key set do not stay', async () => {
    const { jwksUri: jwks_url } = server;
    await put();
    await refresh();
    await put({ ...DEFINITION, max_token_ttl_seconds: 60 }, 1);
    expect((await view()).published).toBe(true);
    await put({ ...DEFINITION, jwks_url }, 2);
    expect((await view()).published).toBe(false);
    expect(await published()).toEqual({});
    await refresh();
    expect(await published()).toEqual({ [server.issuer]: [server.signer.kid] });
    expect(server.requests).toMatchObject({ discovery: 1, keys: 2 });
    await issuers.remove(operation, name(), 3);
    expect(await published()).toEqual({});
  });

  it('what was fetched for an earlier definition does not count', async () => {
    await put();
    const fetcher = environment.fetcher();
    await refresh({
      fetchJson: async (url) => {
        const fetched = await fetcher.fetchJson(url);
        if (url === server.jwksUri) await put({ ...DEFINITION, jwks_url: `${server.issuer}/others` }, 1);
        return fetched;
      },
    });
    expect(await view()).toMatchObject({ published: false, version: 2 });
    await refresh();
    expect(outcomes).toEqual(['refreshed', 'http_status']);
  });

  it('what was fetched before a server was removed does not count for one of the same issuer', async () => {
    await put();
    const fetcher = environment.fetcher();
    await refresh({
      fetchJson: async (url) => {
        const fetched = await fetcher.fetchJson(url);
        if (url === server.jwksUri) {
          await issuers.remove(operation, name(), 1);
          await put({ ...DEFINITION, jwks_url: `${server.issuer}/others` });
        }
        return fetched;
      },
    });
    expect(await view()).toMatchObject({ published: false, version: 1 });
    await refresh();
    expect(outcomes).toEqual(['refreshed', 'http_status']);
  });

  it('no server has the issuer of clients or a broker, also before its keys are known', async () => {
    const brokers = new Brokers(deps());
    const { jwk, algorithm: alg } = newSigningKey().publicKey;
    const keys = [{ kid: 'broker-1', alg, jwk }];
    const definition = { trust_domain: TRUST_DOMAIN, subject_prefixes: [''], keys };
    const broker = { definition: { ...definition, key_binding: 'software' as const } };
    const putBroker = (issuer: string) =>
      brokers.put(operation, { siteId: SITE, issuer, trustDomain: TRUST_DOMAIN }, undefined, broker);
    await put();
    expect(await faultOf(putBroker(server.issuer))).toBe('definition_invalid');
    const other = 'https://broker.shop.example';
    await putBroker(other);
    for (const issuer of [other, ISSUER_URL, 'http://login.example', 'https://login.example/?x']) {
      const given = issuers.put(operation, { siteId: SITE, issuer }, undefined, DEFINITION);
      expect([issuer, await faultOf(given)]).toEqual([issuer, 'definition_invalid']);
    }
    for (const faulty of [
      { ...DEFINITION, jwks_url: 'http://login.example/keys' },
      { ...DEFINITION, subject_claim: 'azp' },
      { ...DEFINITION, not_before: '2026-02-31T00:00:00Z' },
    ]) {
      expect(await faultOf(put(faulty, 1))).toBe('definition_invalid');
    }
    await refresh();
    expect(Object.keys(await published())).toEqual([server.issuer]);
  });

  it('is refused while a verifier would reject it', async () => {
    await addTarget(world);
    expect(await faultOf(put())).toBe('target_too_old');
  });
});
