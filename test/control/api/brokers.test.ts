/** Brokers, one for each issuer and trust domain, and the path that names one by its issuer, for ctl up to 0.3.0. */
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { ApiFixture, itemsOf } from '../../support/control/api-fixture.ts';
import { newSigningKey } from '../../support/fixtures/bundle-content.ts';
import { databaseKinds } from '../store/databases.ts';

const ISSUER = 'https://broker.shop.example';
const encoded = encodeURIComponent;

function keyEntry(kid: string, publicKey = newSigningKey().publicKey) {
  return { kid, alg: publicKey.algorithm, jwk: publicKey.jwk };
}

function definitionFor(trustDomain: string, ...keys: readonly ReturnType<typeof keyEntry>[]) {
  return {
    trust_domain: trustDomain,
    subject_prefixes: [`spiffe://${trustDomain}/`],
    key_binding: 'attested_workload',
    keys,
  };
}

describe.each(databaseKinds())('$name', (kind) => {
  let fixture: ApiFixture;
  let names = 0;

  beforeAll(async () => {
    await kind.start();
    const open = await kind.fresh();
    fixture = await ApiFixture.open({ openStore: (nowMs) => open({ nowMs }) });
  });
  afterAll(async () => {
    await fixture.close();
    await kind.stop();
  });

  async function newSite() {
    const { siteId } = await fixture.shop(`brokered-${++names}`);
    const brokers = `/v1/sites/${siteId}/brokers`;
    return {
      siteId,
      brokers,
      byIssuer: `${brokers}/${encoded(ISSUER)}`,
      of: (trustDomain: string) => `${brokers}/${encoded(ISSUER)}/${trustDomain}`,
    };
  }

  const put = (path: string, body: object, ifMatch?: number) =>
    fixture.call('PUT', path, { body, ...(ifMatch === undefined ? {} : { ifMatch }) });
  const pointersOf = (answer: { readonly json: { readonly errors?: unknown } }) =>
    (Array.isArray(answer.json.errors) ? answer.json.errors : []).map(({ pointer }) => pointer);

  test('are created, changed and removed, each trust domain of an issuer by itself', async () => {
    const { brokers, of } = await newSite();
    const definition = definitionFor('shop.example', keyEntry('broker-1'));
    const made = await put(of('shop.example'), { definition, url: 'https://broker.shop.example:8443/b' });
    expect(made.status).toBe(201);
    expect(made.json).toMatchObject({
      issuer: ISSUER,
      trust_domain: 'shop.example',
      url: 'https://broker.shop.example:8443/b',
      definition,
      published: true,
      version: 1,
    });
    const partner = definitionFor('partner.example', keyEntry('broker-2'));
    expect((await put(of('partner.example'), { definition: partner })).status).toBe(201);
    expect((await put(of('shop.example'), { definition })).code).toBe('precondition_required');
    const shorter = { ...definition, max_passport_ttl_seconds: 60 };
    const changed = await put(of('shop.example'), { definition: shorter }, 1);
    expect(changed.status).toBe(200);
    // A replacement: what it leaves out is removed.
    expect(changed.json).not.toHaveProperty('url');
    const pages = [
      await fixture.expect(200, 'GET', `${brokers}?limit=1`),
      await fixture.expect(200, 'GET', brokers),
    ];
    const cursor = encoded(String(pages[0]?.json.next_cursor));
    const next = await fixture.expect(200, 'GET', `${brokers}?limit=1&cursor=${cursor}`);
    expect([pages[0], next].flatMap((page) => (page ? itemsOf(page) : []))).toEqual(
      pages[1] && itemsOf(pages[1]),
    );
    await fixture.expect(204, 'DELETE', of('shop.example'), { ifMatch: 2 });
    expect((await fixture.call('GET', of('shop.example'))).code).toBe('not_found');
    await fixture.expect(200, 'GET', of('partner.example'));
    expect((await put(of('shop.example'), { definition }, 2)).code).toBe('precondition_failed');
  });

  test('date each key from when it was pinned, not from the last change', async () => {
    const { of } = await newSite();
    const [first, second] = [keyEntry('first'), keyEntry('second')];
    await put(of('shop.example'), { definition: definitionFor('shop.example', first) });
    const before = await fixture.expect(200, 'GET', of('shop.example'));
    fixture.ms += 3_600_000;
    const after = await put(
      of('shop.example'),
      { definition: definitionFor('shop.example', first, second) },
      1,
    );
    const [kept, added] = after.json.keys as readonly { readonly pinned_at: string }[];
    expect(kept).toEqual((before.json.keys as readonly object[])[0]);
    expect(Date.parse(String(added?.pinned_at)) - Date.parse(String(kept?.pinned_at))).toBe(3_600_000);
  });

  test('a kid is unique in a site, also between trust domains, and is never like a derived key’s ID', async () => {
    const { of } = await newSite();
    await put(of('shop.example'), { definition: definitionFor('shop.example', keyEntry('same')) });
    const again = await put(of('partner.example'), {
      definition: definitionFor('partner.example', keyEntry('same')),
    });
    expect(again).toMatchObject({ status: 422, code: 'definition_invalid' });
    expect(String(again.json.detail)).toContain('occurs twice');
    const derived = await put(of('partner.example'), {
      definition: definitionFor('partner.example', keyEntry('dk_06cz')),
    });
    expect(derived.code).toBe('definition_invalid');
    expect(pointersOf(derived)).toEqual(['/body/definition/keys/0/kid']);
    expect((await fixture.call('GET', of('partner.example'))).code).toBe('not_found');
  });

  test('without keys are stored and not published', async () => {
    const { of } = await newSite();
    const made = await put(of('shop.example'), { definition: definitionFor('shop.example') });
    expect(made.json).toMatchObject({ published: false, keys: [] });
    const pinned = await put(
      of('shop.example'),
      { definition: definitionFor('shop.example', keyEntry('k')) },
      1,
    );
    expect(pinned.json).toMatchObject({ published: true, keys: [{ kid: 'k' }] });
  });

  test.each([
    'http://broker.shop.example',
    'https://broker.shop.example/',
    'https://user@broker.shop.example',
    'https://broker.shop.example?x=1',
    'https://broker.shop.example#x',
    'https://Broker.shop.example',
    'https://broker.shop.example:443',
    'https://broker.shop.example/a/../b',
    'ftp://broker.shop.example',
    'file:///etc/passwd',
    'http://127.0.0.1.shop.example',
    'broker',
  ])('take no URL like %s', async (url) => {
    const { of } = await newSite();
    const answer = await put(of('shop.example'), { definition: definitionFor('shop.example'), url });
    expect([answer.code, ...pointersOf(answer)]).toEqual(['definition_invalid', '/body/url']);
  });

  test('take a URL of this machine in plain HTTP', async () => {
    const { of } = await newSite();
    const body = { definition: definitionFor('shop.example'), url: 'http://127.0.0.1:9196' };
    expect((await put(of('shop.example'), body)).status).toBe(201);
  });

  test('take the trust domain of the path only, prefixes that are canonical, and sound public keys', async () => {
    const { siteId, of } = await newSite();
    const elsewhere = await put(of('shop.example'), { definition: definitionFor('partner.example') });
    expect(pointersOf(elsewhere)).toEqual(['/body/definition/trust_domain']);
    const prefixes = ['spiffe://shop.example/', 'spiffe://shop.example//'];
    const odd = { ...definitionFor('shop.example'), subject_prefixes: prefixes };
    expect(pointersOf(await put(of('shop.example'), { definition: odd }))).toEqual([
      '/body/definition/subject_prefixes/1',
    ]);
    const site = await fixture.expect(200, 'GET', `/v1/sites/${siteId}`);
    const own = `/v1/sites/${siteId}/brokers/${encoded(String(site.json.issuer_url))}/shop.example`;
    expect(pointersOf(await put(own, { definition: definitionFor('shop.example') }))).toEqual([
      '/path/issuer',
    ]);
    const sound = keyEntry('k');
    const zero = { ...sound, jwk: { kty: 'OKP', crv: 'Ed25519', x: Buffer.alloc(32).toString('base64url') } };
    const withZero = { ...definitionFor('shop.example'), keys: [zero] };
    expect((await put(of('shop.example'), { definition: withZero })).code).toBe('definition_invalid');
    const secret = { ...definitionFor('shop.example'), keys: [{ ...sound, jwk: { ...sound.jwk, d: 'AA' } }] };
    expect((await put(of('shop.example'), { definition: secret })).code).toBe('request_malformed');
  });

  describe('by issuer alone', () => {
    test('one can be created, changed and removed, and keeps its URL', async () => {
      const { byIssuer, of } = await newSite();
      const definition = definitionFor('shop.example', keyEntry('k'));
      expect((await put(byIssuer, { definition })).status).toBe(201);
      await put(of('shop.example'), { definition, url: 'https://broker.shop.example' }, 1);
      const shorter = { ...definition, max_passport_ttl_seconds: 60 };
      expect((await put(byIssuer, { definition: shorter })).code).toBe('precondition_required');
      expect((await put(byIssuer, { definition: shorter }, 2)).json).toMatchObject({
        url: 'https://broker.shop.example',
        definition: shorter,
      });
      await fixture.expect(200, 'GET', byIssuer);
      await fixture.expect(204, 'DELETE', byIssuer, { ifMatch: 3 });
      expect((await fixture.call('GET', byIssuer)).code).toBe('not_found');
    });

    test('its trust domain cannot change', async () => {
      const { byIssuer } = await newSite();
      await put(byIssuer, { definition: definitionFor('shop.example', keyEntry('k')) });
      const moved = await put(byIssuer, { definition: definitionFor('partner.example', keyEntry('k')) }, 1);
      expect([moved.code, ...pointersOf(moved)]).toEqual([
        'definition_invalid',
        '/body/definition/trust_domain',
      ]);
    });

    test('nothing is guessed when there are several', async () => {
      const { byIssuer, of } = await newSite();
      const definition = definitionFor('shop.example', keyEntry('a'));
      await put(of('shop.example'), { definition });
      await put(of('partner.example'), { definition: definitionFor('partner.example', keyEntry('b')) });
      const answers = [
        await fixture.call('GET', byIssuer),
        await put(byIssuer, { definition }, 1),
        await fixture.call('DELETE', byIssuer, { ifMatch: 1 }),
      ];
      for (const answer of answers) {
        expect(answer).toMatchObject({ status: 409, code: 'broker_ambiguous' });
        expect(String(answer.json.detail)).toContain('partner.example, shop.example');
      }
    });
  });
});
