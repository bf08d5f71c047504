/** Callers that operators block over the API. */
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { ApiFixture, itemsOf, SITE_BODY } from '../../support/control/api-fixture.ts';
import { databaseKinds } from '../store/databases.ts';

describe.each(databaseKinds())('$name', (kind) => {
  let fixture: ApiFixture;
  let path: string;
  beforeAll(async () => {
    await kind.start();
    const open = await kind.fresh();
    fixture = await ApiFixture.open({ openStore: (nowMs) => open({ nowMs }) });
    const { siteId } = await fixture.shop();
    path = `/v1/sites/${siteId}/blocked-callers`;
  });
  afterAll(async () => {
    await fixture.close();
    await kind.stop();
  });

  const issuer = SITE_BODY.issuer_url;
  const post = (body: object, key?: string) =>
    fixture.call('POST', path, { body, ...(key === undefined ? {} : { key }) });

  test('name the attached targets that did not report the member', async () => {
    const target = await fixture.expect(201, 'POST', path.replace('blocked-callers', 'targets'), {
      body: { name: 'gateway' },
    });
    const { headers, json } = await post({ issuer, subject: 'client:reporting' });
    const waiting = [{ target_id: target.json.target_id, name: 'gateway' }];
    expect(json.waiting_for).toEqual(waiting);
    expect(itemsOf(await fixture.expect(200, 'GET', path))).toMatchObject([{ waiting_for: waiting }]);
    await fixture.expect(200, 'POST', `/v1/targets/${String(target.json.target_id)}/detach`);
    expect(itemsOf(await fixture.expect(200, 'GET', path))[0]).not.toHaveProperty('waiting_for');
    await fixture.expect(204, 'DELETE', String(headers.location));
  });

  test('are listed in pages, created once, and removed by their name', async () => {
    const callers = [
      { issuer, holder_thumbprint: 'A'.repeat(43) },
      { issuer, subject: 'client:billing' },
      { issuer, subject: 'spiffe://shop.example/billing' },
    ];
    const made = [];
    for (const [index, caller] of callers.entries()) made.push(await post(caller, `block-${index}`));
    expect(made.map(({ status }) => status)).toEqual([201, 201, 201]);
    expect(made[0]?.json).toMatchObject({
      ...callers[0],
      site_id: SITE_BODY.site_id,
      blocked_by: expect.any(String),
    });
    const again = await post(callers[0] ?? {}, 'block-0');
    expect(again.headers['idempotency-replayed']).toBe('true');
    expect(await post(callers[0] ?? {})).toMatchObject({ status: 409, code: 'already_exists' });
    const first = await fixture.expect(200, 'GET', `${path}?limit=2`);
    const cursor = encodeURIComponent(String(first.json.next_cursor));
    const rest = await fixture.expect(200, 'GET', `${path}?cursor=${cursor}`);
    expect([...itemsOf(first), ...itemsOf(rest)]).toMatchObject(callers);
    for (const { headers } of made) await fixture.expect(204, 'DELETE', String(headers.location));
    expect((await fixture.call('DELETE', String(made[0]?.headers.location))).code).toBe('not_found');
    expect(itemsOf(await fixture.expect(200, 'GET', path))).toEqual([]);
  });

  test('may have tokens of an OAuth issuer of the site', async () => {
    const server = 'https://login.example';
    const caller = { issuer: server, subject: 'sub:orders' };
    expect((await post(caller)).code).toBe('reference_unknown');
    const put = `${path.replace('blocked-callers', 'oauth-issuers')}/${encodeURIComponent(server)}`;
    await fixture.expect(201, 'PUT', put, { body: { definition: { trust_domain: 'login.example' } } });
    const { headers, status } = await post(caller);
    expect(status).toBe(201);
    await fixture.expect(204, 'DELETE', String(headers.location));
  });

  test.each([
    ['neither selector', { issuer }, 'definition_invalid'],
    ['both selectors', { issuer, subject: 'x', holder_thumbprint: 'A'.repeat(43) }, 'definition_invalid'],
    ['a subject that no passport has', { issuer, subject: 'spiffe://Shop.example/x' }, 'definition_invalid'],
    ['another issuer', { issuer: 'https://elsewhere.example', subject: 'x' }, 'reference_unknown'],
    ['a thumbprint in another spelling', { issuer, holder_thumbprint: 'B'.repeat(43) }, 'request_malformed'],
  ])('rejects %s', async (_what, body, code) => {
    expect((await post(body)).code).toBe(code);
  });

  test('leave audit events', async () => {
    const { json } = await fixture.expect(200, 'GET', '/v1/audit-events?limit=100');
    const kinds = (json.items as readonly { readonly kind: string }[]).map(({ kind: name }) => name);
    expect(kinds.filter((name) => name === 'proofgate.control.blocked_caller.block')).toHaveLength(5);
    expect(kinds.filter((name) => name === 'proofgate.control.blocked_caller.unblock')).toHaveLength(5);
  });
});
