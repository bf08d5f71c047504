/** Tests that the audit trail says why an operator made a change, wherever the operator gave a reason. */
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import {
  ALLOWED_SOURCES,
  ApiFixture,
  itemsOf,
  ROUTE_DEFINITION,
  type Shop,
} from '../../support/control/api-fixture.ts';
import { databaseKinds } from '../store/databases.ts';

describe.each(databaseKinds())('$name', (kind) => {
  let fixture: ApiFixture;
  let shop: Shop;

  beforeAll(async () => {
    await kind.start();
    const open = await kind.fresh();
    fixture = await ApiFixture.open({ openStore: (nowMs) => open({ nowMs }) });
    shop = await fixture.shop('reasons');
    await fixture.expect(201, 'POST', `/v1/sites/${shop.siteId}/clients`, {
      body: { client_id: 'billing', subject: 'client:billing' },
    });
  });
  afterAll(async () => {
    await fixture.close();
    await kind.stop();
  });

  /** Of the events of a resource, oldest first. */
  async function reasonsOf(resourceId: string): Promise<readonly unknown[]> {
    const path = `/v1/audit-events?resource_id=${encodeURIComponent(resourceId)}`;
    return itemsOf(await fixture.expect(200, 'GET', path))
      .map(({ kind: what, reason }) => [String(what).split('.').at(-1), reason])
      .reverse();
  }

  test('a grant is created, raised, lowered and deleted for a reason, or without one', async () => {
    const path = `/v1/sites/${shop.siteId}/clients/billing/grants/orders`;
    await fixture.expect(201, 'PUT', `${path}?reason=Gr%C3%BCndung%20%26%20more`, {
      body: { access: 'read' },
    });
    await fixture.expect(200, 'PUT', `${path}?reason=raised`, { body: { access: 'write' } });
    await fixture.expect(200, 'PUT', path, { body: { access: 'read' } });
    await fixture.expect(204, 'DELETE', `${path}?reason=left`);
    expect(await reasonsOf('billing orders')).toEqual([
      ['create', 'Gründung & more'],
      ['change', 'raised'],
      ['change', undefined],
      ['delete', 'left'],
    ]);
  });

  test('a role grant, an access token, source rules and a block too', async () => {
    const scope = { kind: 'site', id: shop.siteId };
    const grant = { principal: 'group:platform', role: 'viewer', scope };
    const made = await fixture.expect(201, 'POST', '/v1/role-grants?reason=on%20call', { body: grant });
    const id = String(made.json.role_grant_id);
    await fixture.expect(204, 'DELETE', `/v1/role-grants/${id}?reason=over`);
    expect(await reasonsOf(id)).toEqual([
      ['create', 'on call'],
      ['delete', 'over'],
    ]);

    const token = { name: 'ci', role: 'viewer', scope };
    const secret = await fixture.expect(201, 'POST', '/v1/access-tokens?reason=pipeline', { body: token });
    expect(await reasonsOf(String(secret.json.access_token_id))).toEqual([['create', 'pipeline']]);

    const route = `/v1/sites/${shop.siteId}/routes/r`;
    const body = { route_id: 'r', definition: ROUTE_DEFINITION };
    await fixture.expect(201, 'POST', `/v1/sites/${shop.siteId}/routes`, { body });
    const sources = { body: { allowed_sources: ALLOWED_SOURCES } };
    await fixture.expect(201, 'PUT', `${route}/sources?reason=partner`, sources);
    expect(await reasonsOf('r')).toEqual([
      ['create', undefined],
      ['create', 'partner'],
    ]);

    const caller = { issuer: 'https://control.shop.example/sites/reasons', subject: 'client:billing' };
    const callers = `/v1/sites/${shop.siteId}/blocked-callers`;
    await fixture.expect(201, 'POST', `${callers}?reason=stolen`, { body: caller });
    const name = new URLSearchParams({ ...caller, reason: 'found' });
    await fixture.expect(204, 'DELETE', `${callers}?${name}`);
    expect(await reasonsOf(`${caller.issuer}|${caller.subject}`)).toEqual([
      ['block', 'stolen'],
      ['unblock', 'found'],
    ]);
  });

  test('a read takes none, and none is longer than a name or invisible', async () => {
    const path = `/v1/sites/${shop.siteId}/clients/billing/grants/orders`;
    const body = { access: 'read' };
    expect((await fixture.call('GET', `/v1/sites/${shop.siteId}?reason=x`)).code).toBe('request_malformed');
    for (const reason of ['', 'x'.repeat(129), 'a\nb', '\u202e']) {
      const answer = await fixture.call('PUT', `${path}?${new URLSearchParams({ reason })}`, { body });
      expect(answer.code).toBe('request_malformed');
    }
  });
});
