/** The signing profile file of a caller with a broker's passports. */
import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { registerRuntimeRoutes } from '../../../src/control/api/routes/runtime-api.ts';
import { SiteSigningKeys } from '../../../src/control/publishing/bundle-signing-keys.ts';
import { MasterKeys } from '../../../src/control/secrets/master-keys.ts';
import { parseSigningProfiles } from '../../../src/protocol/signing-profile-file.ts';
import { runInProcess } from '../../support/cli/in-process.ts';
import { ApiFixture, ROUTE_DEFINITION } from '../../support/control/api-fixture.ts';
import { newSigningKey } from '../../support/fixtures/bundle-content.ts';
import { databaseKinds } from '../store/databases.ts';

const keyring = new SiteSigningKeys(MasterKeys.random());
const ISSUER = 'https://broker.shop.example';
const CHECKOUT = 'spiffe://shop.example/ns/prod/sa/checkout';

describe.each(databaseKinds())('$name', (kind) => {
  let control: ApiFixture;
  let site: string;

  beforeAll(async () => {
    await kind.start();
    const open = await kind.fresh();
    control = await ApiFixture.open({
      openStore: (nowMs) => open({ nowMs }),
      extend: (app, { store, nowMs }) => registerRuntimeRoutes(app, { store, nowMs, keyring }),
    });
    const { siteId } = await control.shop();
    site = `/v1/sites/${siteId}`;
    await putBroker(ISSUER, 'shop.example', ['spiffe://shop.example/ns/', 'job:'], 'attested_workload');
    await putBroker(ISSUER, 'partner.example', ['spiffe://partner.example/', 'job:'], 'attested_workload');
    await putBroker('https://soft.example', 'shop.example', ['spiffe://shop.example/', 'job:'], 'software');
    const attested = {
      required_key_binding: 'attested_workload',
      subject_prefix: 'spiffe://shop.example/ns/prod/',
    };
    await putRoute('attested', [attested]);
    await putRoute('exact', [{ required_key_binding: 'software', subject_exact: CHECKOUT }]);
    await putRoute('jobs', [{ required_key_binding: 'software', subject_prefix: 'job:' }]);
    await putRoute('other-domain', [
      { required_key_binding: 'software', subject_exact: 'job:hourly', trust_domain: 'partner.example' },
    ]);
    await putRoute('other-issuer', [{ ...attested, issuer: 'https://soft.example' }]);
    await putRoute('unpublished', []);
    await putRoute('without-transcripts', [attested], { accepted_proofs: ['http-message-signatures'] });
  });
  afterAll(async () => {
    await control.close();
    await kind.stop();
  });

  async function putBroker(
    issuer: string,
    trustDomain: string,
    prefixes: readonly string[],
    keyBinding: string,
  ) {
    const { algorithm, jwk } = newSigningKey().publicKey;
    const keys = [{ kid: `${issuer} ${trustDomain}`.replaceAll(/[^a-z]/g, ''), alg: algorithm, jwk }];
    const definition = {
      trust_domain: trustDomain,
      subject_prefixes: prefixes,
      key_binding: keyBinding,
      keys,
    };
    const path = `${site}/brokers/${encodeURIComponent(issuer)}/${trustDomain}`;
    await control.expect(201, 'PUT', path, { body: { definition } });
  }

  async function putRoute(routeId: string, sources: readonly object[], members = {}): Promise<void> {
    const definition = { ...ROUTE_DEFINITION, path_template: `/v1/${routeId}`, ...members };
    await control.expect(201, 'POST', `${site}/routes`, { body: { route_id: routeId, definition } });
    if (sources.length === 0) return;
    const allowed = sources.map((each) => ({ issuer: ISSUER, trust_domain: 'shop.example', ...each }));
    await control.expect(201, 'PUT', `${site}/routes/${routeId}/sources`, {
      body: { allowed_sources: allowed },
    });
  }

  const ask = (query: { readonly [name: string]: string }) =>
    control.call('GET', `${site}/profiles?${new URLSearchParams({ issuer: ISSUER, ...query })}`);

  it.each([
    ['a workload in an allowed namespace', { subject: CHECKOUT }, ['attested', 'exact']],
    ['another one', { subject: 'spiffe://shop.example/ns/prod/sa/other' }, ['attested']],
    ['one that no route admits', { subject: 'spiffe://shop.example/ns/test/sa/checkout' }, []],
    ['one of another trust domain', { subject: 'spiffe://partner.example/a' }, []],
    ['a software subject', { subject: 'job:nightly', trust_domain: 'shop.example' }, ['jobs']],
    ['one in a trust domain without routes', { subject: 'job:nightly', trust_domain: 'partner.example' }, []],
  ])('of %s has the routes that admit it', async (_what, query, routes) => {
    const { json } = await ask(query);
    const profiles = json.profiles as readonly { readonly route_id: string }[];
    expect(profiles.map(({ route_id }) => route_id)).toEqual(routes);
    const isWorkload = query.subject.startsWith('spiffe:');
    expect(json).toMatchObject({
      subject: query.subject,
      key_binding: isWorkload ? 'attested_workload' : 'software',
    });
  });

  it.each([
    [
      'of a prefix that the broker may not speak for',
      { subject: 'spiffe://shop.example/other' },
      'reference_unknown',
    ],
    ['of a foreign trust domain', { subject: 'spiffe://evil.example/ns/prod/sa/a' }, 'reference_unknown'],
    ['that is not canonical', { subject: 'spiffe://shop.example/ns/prod/../a' }, 'reference_unknown'],
    [
      'of a domain other than the named one',
      { subject: CHECKOUT, trust_domain: 'partner.example' },
      'reference_unknown',
    ],
    ['of an unknown broker', { subject: CHECKOUT, issuer: 'https://x.example' }, 'reference_unknown'],
    [
      'above the class of its broker',
      { subject: CHECKOUT, issuer: 'https://soft.example' },
      'reference_unknown',
    ],
    ['in one of several trust domains', { subject: 'job:nightly' }, 'broker_ambiguous'],
    ['that is missing', { subject: '' }, 'request_malformed'],
  ])('rejects a subject %s', async (_what, query, code) => {
    expect((await ask(query)).code).toBe(code);
  });

  it('is a profile file that signers read, written by ctl', async () => {
    const [tokenFile, out] = ['token', 'checkout.json'].map((name) => join(control.directory, name));
    if (tokenFile === undefined || out === undefined) throw new Error('no files');
    await writeFile(tokenFile, control.root, { mode: 0o600 });
    const ctl = (...more: readonly string[]) =>
      runInProcess([
        ...['ctl', 'get', 'profiles', '--site', 'shop-eu-1', '--token-file', tokenFile],
        ...['--control-url', `http://127.0.0.1:${control.port}`, ...more],
      ]);
    const caller = ['--issuer', ISSUER, '--subject', CHECKOUT];
    const shown = await ctl(...caller);
    expect(shown.stdout.split('\n').map((line) => line.split(/ {2,}/)[0])).toEqual([
      'ROUTE_ID',
      'attested',
      'exact',
      '',
    ]);
    expect(await ctl(...caller, '--out', out)).toMatchObject({ exitCode: 0, stderr: '' });
    const text = await readFile(out, 'utf8');
    const { coordinates, profiles } = parseSigningProfiles(text, out);
    expect(coordinates).toEqual({
      authSite: 'shop-eu-1',
      keyId: undefined,
      issuer: ISSUER,
      trustDomain: 'shop.example',
      subject: CHECKOUT,
      keyBinding: 'attested_workload',
    });
    expect(profiles.map(({ name }) => name)).toEqual(['attested', 'exact']);
    const nothing = await ctl('--issuer', ISSUER, '--subject', 'spiffe://partner.example/a', '--out', out);
    expect([nothing.exitCode, nothing.stderr.split(':')[1]?.trim()]).toEqual([3, 'no_profiles']);
    expect((await ctl('--subject', CHECKOUT)).stderr).toContain('issuer_required');
  });
});
