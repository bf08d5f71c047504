/**
 * Checks that values which a database cannot store are rejected before they reach it: a request gets the same problem on both
 * databases.
 */
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import Type from 'typebox';
import { registerEnrollmentPlaneRoutes } from '../../../src/control/api/routes/enrollments-api.ts';
import { registerTargetSelfRoutes } from '../../../src/control/api/routes/targets-api.ts';
import { ApiProblem } from '../../../src/control/domain/api-problem.ts';
import { createEnrollmentPlane } from '../../../src/control/enrollment/enrollment-plane.ts';
import { MasterKeys } from '../../../src/control/secrets/master-keys.ts';
import { IssuerFetcher } from '../../../src/process/outbound-fetch/outbound-fetch.ts';
import { isJsonObject, type JsonObject } from '../../../src/protocol/strict-json.ts';
import { type Answer, ApiFixture, type Shop, textIn } from '../../support/control/api-fixture.ts';
import { publishingOf } from '../enrollment/enrollment-fixture.ts';
import { databaseKinds } from '../store/databases.ts';

const CONTROL_URL = 'https://control.shop.example';
const refused = () => Promise.reject(new ApiProblem('not_found'));
const ECHO = Type.Object({ text: Type.String() }, { additionalProperties: false });

describe.each(databaseKinds())('$name', (kind) => {
  let fixture: ApiFixture;
  let shop: Shop;
  let sourceId = '';

  beforeAll(async () => {
    await kind.start();
    const open = await kind.fresh();
    fixture = await ApiFixture.open({
      openStore: (nowMs) => open({ nowMs }),
      extend: (app, { store, nowMs }) => {
        const plane = createEnrollmentPlane({
          store,
          nowMs,
          masterKeys: MasterKeys.random(),
          fetcher: new IssuerFetcher(),
          publicUrls: [CONTROL_URL],
          ...publishingOf(store, nowMs),
          report: (error) => {
            throw error;
          },
        });
        registerEnrollmentPlaneRoutes(app, plane);
        registerTargetSelfRoutes(app, {
          authenticate: refused,
          poll: refused,
          acknowledge: refused,
          file: refused,
        });
        const config = { access: { kind: 'public' } } as const;
        app.get('/test/text/:text', { config, schema: { params: ECHO } }, async () => ({}));
        app.get('/test/text', { config, schema: { querystring: ECHO } }, async () => ({}));
      },
    });
    shop = await fixture.shop();
    const source = await fixture.expect(201, 'POST', `/v1/sites/${shop.siteId}/sources`, {
      body: {
        kind: 'oidc_jwks',
        display_name: 'cluster',
        issuer: 'https://oidc.example',
        jwks_uri: 'https://oidc.example/keys',
        audience: 'proofgate-shop',
      },
    });
    sourceId = textIn(source, 'source_id');
  });
  afterAll(async () => {
    await fixture.close();
    await kind.stop();
  });

  function pointersOf({ json: { errors } }: Answer): readonly unknown[] {
    return Array.isArray(errors) ? errors.map(({ pointer }) => pointer) : [];
  }

  const policy = (revision: number, subject = 'client') => ({
    display_name: 'billing',
    source_id: sourceId,
    source_revision: revision,
    client_id: 'billing',
    approval: 'automatic',
    max_key_lifetime_seconds: 3600,
    verified_issuer: 'https://oidc.example',
    verified_subject: subject,
  });

  test('every integer that a route takes has bounds', () => {
    const unbounded = fixture.routes.flatMap(({ method, url, schema = {} }) =>
      [schema.params, schema.querystring, schema.body].flatMap((part) =>
        [...integersIn(part)]
          .filter(({ minimum, maximum }) => typeof minimum !== 'number' || typeof maximum !== 'number')
          .map(() => `${String(method)} ${url}`),
      ),
    );
    expect(unbounded).toEqual([]);
  });

  const LARGEST = 2_147_483_647;

  test.each([LARGEST + 1, 2 ** 32, Number.MAX_SAFE_INTEGER])(
    'the source revision %d: 400',
    async (revision) => {
      const read = await fixture.call('GET', `/v1/sources/${sourceId}/revisions/${revision}`);
      expect(read).toMatchObject({ status: 400, code: 'request_malformed' });
      expect(pointersOf(read)).toEqual(['/path/revision']);
      const made = await fixture.call('POST', `/v1/sites/${shop.siteId}/enrollment-policies`, {
        body: policy(revision),
      });
      expect(made).toMatchObject({ status: 400, code: 'request_malformed' });
      expect(pointersOf(made)).toEqual(['/body/source_revision']);
    },
  );

  test('the largest source revision is one that is not there', async () => {
    expect(await fixture.call('GET', `/v1/sources/${sourceId}/revisions/${LARGEST}`)).toMatchObject({
      status: 404,
      code: 'not_found',
    });
    const made = await fixture.call('POST', `/v1/sites/${shop.siteId}/enrollment-policies`, {
      body: policy(LARGEST),
    });
    expect(made).toMatchObject({ status: 422, code: 'reference_unknown' });
  });

  test('versions and cursors of 16 digits are none that is there', async () => {
    const site = `/v1/sites/${shop.siteId}`;
    const changed = await fixture.call('PATCH', site, {
      body: { display_name: 'x' },
      ifMatch: '"9999999999999999"',
    });
    expect(changed).toMatchObject({ status: 412, code: 'precondition_failed' });
    const cursor = Buffer.from('9999999999999999').toString('base64url');
    expect((await fixture.call('GET', `/v1/audit-events?cursor=${cursor}`)).status).toBe(200);
  });

  test.each([
    ['half a surrogate pair', '\\ud83d'],
    ['its other half', '\\ude00'],
    ['both, the wrong way round', '\\ude00\\ud83d'],
    ['U+0000', '\\u0000'],
  ])('a body with %s: 400', async (_what, text) => {
    const name = await fixture.call('POST', '/v1/environments', {
      text: `{"name":"a${text}b"}`,
      headers: { 'content-type': 'application/json' },
    });
    expect(name).toMatchObject({ status: 400, code: 'request_malformed' });
    expect(pointersOf(name)).toEqual(['/body/name']);
    const body = JSON.stringify(policy(1, 'SUBJECT')).replace('SUBJECT', `a${text}b`);
    const subject = await fixture.call('POST', `/v1/sites/${shop.siteId}/enrollment-policies`, {
      text: body,
      headers: { 'content-type': 'application/json' },
    });
    expect(subject).toMatchObject({ status: 400, code: 'request_malformed' });
    expect(pointersOf(subject)).toEqual(['/body/verified_subject']);
  });

  test('a whole surrogate pair is read as it was answered', async () => {
    const made = await fixture.expect(201, 'POST', '/v1/environments', { body: { name: 'a😀b' } });
    const read = await fixture.expect(200, 'GET', `/v1/environments/${textIn(made, 'environment_id')}`);
    expect([made.json.name, read.json.name]).toEqual(['a😀b', 'a😀b']);
  });

  test('U+0000 in a path or a query: 400', async () => {
    const path = await fixture.call('GET', '/test/text/a%00b');
    expect(path).toMatchObject({ status: 400, code: 'request_malformed' });
    expect(pointersOf(path)).toEqual(['/path/text']);
    const query = await fixture.call('GET', '/test/text?text=a%00b');
    expect(query).toMatchObject({ status: 400, code: 'request_malformed' });
    expect(pointersOf(query)).toEqual(['/query/text']);
  });
});

/** Every integer schema in the document. */
function* integersIn(value: unknown): Generator<JsonObject> {
  if (Array.isArray(value)) for (const entry of value) yield* integersIn(entry);
  if (!isJsonObject(value)) return;
  if (value.type === 'integer') yield value;
  for (const entry of Object.values(value)) yield* integersIn(entry);
}
