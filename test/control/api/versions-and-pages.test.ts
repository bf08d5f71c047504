/** Tests what all resources share: versions, idempotent creation, pagination. */
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { type Answer, ApiFixture, itemsOf, type Shop, textIn } from '../../support/control/api-fixture.ts';
import { databaseKinds } from '../store/databases.ts';

describe.each(databaseKinds())('$name', (kind) => {
  let fixture: ApiFixture;
  let shop: Shop;

  beforeAll(async () => {
    await kind.start();
    const open = await kind.fresh();
    fixture = await ApiFixture.open({ openStore: (nowMs) => open({ nowMs }) });
    shop = await fixture.shop();
  });
  afterAll(async () => {
    await fixture.close();
    await kind.stop();
  });

  const ENVIRONMENTS = '/v1/environments';

  function pointersOf(answer: Answer): readonly unknown[] {
    const { errors } = answer.json;
    return Array.isArray(errors) ? errors.map(({ pointer }) => pointer) : [];
  }

  describe('versions', () => {
    test('a change must name the version that it was made from', async () => {
      const path = `/v1/fleets/${shop.fleetId}`;
      for (const [ifMatch, status, code] of [
        [undefined, 428, 'precondition_required'],
        ['"2"', 412, 'precondition_failed'],
        ['*', 412, 'precondition_failed'],
        ['W/"1"', 412, 'precondition_failed'],
        ['"1", "2"', 412, 'precondition_failed'],
        ['1', 412, 'precondition_failed'],
      ] as const) {
        const asked = { body: { name: 'x' }, ...(ifMatch === undefined ? {} : { ifMatch }) };
        expect(await fixture.call('PATCH', path, asked)).toMatchObject({ status, code });
        expect(await fixture.call('DELETE', path, ifMatch === undefined ? {} : { ifMatch })).toMatchObject({
          status,
          code,
        });
      }
      expect((await fixture.expect(200, 'GET', path)).json.version).toBe(1);
    });

    test('of concurrent changes from one version one is made, and none lost', async () => {
      const made = await fixture.expect(201, 'POST', ENVIRONMENTS, { body: { name: 'raced' } });
      const path = `${ENVIRONMENTS}/${textIn(made, 'environment_id')}`;
      const answers = await Promise.all(
        Array.from({ length: 20 }, (_, index) =>
          fixture.call('PATCH', path, { body: { name: `raced ${index}` }, ifMatch: 1 }),
        ),
      );
      expect(answers.filter(({ status }) => status === 200)).toHaveLength(1);
      expect(answers.filter(({ code }) => code === 'precondition_failed')).toHaveLength(19);
      const winner = answers.find(({ status }) => status === 200);
      expect((await fixture.expect(200, 'GET', path)).json).toEqual(winner?.json);
    });

    test('a GET that names the version which is there: 304', async () => {
      const path = `/v1/sites/${shop.siteId}`;
      const { etag } = (await fixture.expect(200, 'GET', path)).headers;
      for (const tag of [String(etag), `"77", W/${etag}`, '*']) {
        const answer = await fixture.call('GET', path, { headers: { 'if-none-match': tag } });
        expect(answer).toMatchObject({ status: 304, text: '' });
        expect(answer.headers.etag).toBe(etag);
      }
      const other = await fixture.call('GET', path, { headers: { 'if-none-match': '"77"' } });
      expect(other.status).toBe(200);
    });

    test('never 304 for what Control itself changes without a new version', async () => {
      const path = `/v1/sites/${shop.siteId}/oauth-issuers/${encodeURIComponent('https://login.shop.example')}`;
      await fixture.expect(201, 'PUT', path, { body: { definition: { trust_domain: 'shop.example' } } });
      await fixture.expect(200, 'GET', path, { headers: { 'if-none-match': '"1"' } });
    });

    test('HEAD says what GET says, without the body', async () => {
      const answer = await fixture.call('HEAD', `/v1/sites/${shop.siteId}`);
      expect(answer).toMatchObject({ status: 200, text: '' });
      expect(answer.headers.etag).toBe('"1"');
    });
  });

  describe('idempotency', () => {
    test('the same creation again answers the same and does nothing', async () => {
      const path = `/v1/sites/${shop.siteId}/targets`;
      const asked = { body: { name: 'once' }, key: 'key-1' };
      const first = await fixture.expect(201, 'POST', path, asked);
      const again = await fixture.expect(201, 'POST', path, asked);
      const { token, ...view } = first.json;
      expect(token).toMatch(/^pgt_/);
      // Control does not store a token that it shows once.
      expect(again.json).toEqual(view);
      expect(again.headers.location).toBe(first.headers.location);
      expect(again.headers['idempotency-replayed']).toBe('true');
      const named = itemsOf(await fixture.expect(200, 'GET', path)).filter(({ name }) => name === 'once');
      expect(named).toHaveLength(1);
    });

    test('with another body, or on another path: 409', async () => {
      const path = `/v1/sites/${shop.siteId}/clients`;
      await fixture.expect(201, 'POST', path, {
        body: { client_id: 'k', subject: 'client:k' },
        key: 'key-2',
      });
      const body = { client_id: 'k2', subject: 'client:k' };
      expect((await fixture.call('POST', path, { body, key: 'key-2' })).code).toBe('idempotency_conflict');
      const elsewhere = await fixture.call('POST', ENVIRONMENTS, { body: { name: 'k' }, key: 'key-2' });
      expect(elsewhere.code).toBe('idempotency_conflict');
    });

    test('keys are each operator’s own', async () => {
      const other = fixture.operator('other', 'admin', { kind: 'installation', id: '' });
      await fixture.expect(201, 'POST', ENVIRONMENTS, { body: { name: 'mine' }, key: 'key-3' });
      await fixture.expect(201, 'POST', ENVIRONMENTS, {
        body: { name: 'theirs' },
        key: 'key-3',
        token: other,
      });
    });

    test('a refused creation may be asked again with the same key', async () => {
      const path = `/v1/sites/${shop.siteId}/clients`;
      const asked = { body: { client_id: 'late', subject: 'client:late' }, key: 'key-4' };
      await fixture.expect(201, 'POST', path, { body: asked.body });
      expect((await fixture.call('POST', path, asked)).code).toBe('already_exists');
      await fixture.expect(204, 'DELETE', `${path}/late`, { ifMatch: 1 });
      await fixture.expect(201, 'POST', path, asked);
    });

    test('of concurrent copies one is made, and all answer it', async () => {
      const path = `/v1/sites/${shop.siteId}/targets`;
      const answers = await Promise.all(
        Array.from({ length: 30 }, () =>
          fixture.call('POST', path, { body: { name: 'copied' }, key: 'key-5' }),
        ),
      );
      expect(new Set(answers.map(({ status }) => status))).toEqual(new Set([201]));
      expect(new Set(answers.map((answer) => textIn(answer, 'target_id'))).size).toBe(1);
      expect(answers.filter(({ json }) => json.token !== undefined)).toHaveLength(1);
      const events = await fixture.expect(
        200,
        'GET',
        `/v1/audit-events?resource_id=${String(answers[0]?.json.target_id)}`,
      );
      expect(itemsOf(events)).toHaveLength(1);
    });

    test.each(['', 'with space', 'x'.repeat(129)])('the key %p: 400', async (key) => {
      const answer = await fixture.call('POST', ENVIRONMENTS, { body: { name: 'n' }, key });
      expect(answer).toMatchObject({ status: 400, code: 'request_malformed' });
      expect(pointersOf(answer)).toEqual(['/headers/idempotency-key']);
    });
  });

  describe('pages', () => {
    test('items that come or go meanwhile neither repeat nor hide others', async () => {
      const { siteId } = await fixture.shop('paged');
      const path = `/v1/sites/${siteId}/clients`;
      const add = (id: string) =>
        fixture.expect(201, 'POST', path, { body: { client_id: id, subject: `client:${id}` } });
      for (let index = 10; index < 30; index++) await add(`c${index}`);
      const first = await fixture.expect(200, 'GET', `${path}?limit=8`);
      await add('c00');
      await add('c175');
      await fixture.expect(204, 'DELETE', `${path}/c17`, { ifMatch: 1 });
      const seen = itemsOf(first).map(({ client_id }) => client_id);
      let cursor = first.json.next_cursor;
      while (cursor !== undefined) {
        const next = await fixture.expect(200, 'GET', `${path}?limit=8&cursor=${String(cursor)}`);
        seen.push(...itemsOf(next).map(({ client_id }) => client_id));
        cursor = next.json.next_cursor;
      }
      const expected = Array.from({ length: 20 }, (_, index) => `c${index + 10}`);
      expected.splice(8, 0, 'c175');
      expect(seen).toEqual(expected);
    });

    test('a full last page has no cursor', async () => {
      const { siteId } = await fixture.shop('full');
      for (const name of ['a', 'b']) {
        await fixture.expect(201, 'POST', `/v1/sites/${siteId}/targets`, { body: { name } });
      }
      const page = await fixture.expect(200, 'GET', `/v1/sites/${siteId}/targets?limit=2`);
      expect(itemsOf(page)).toHaveLength(2);
      expect(page.json.next_cursor).toBeUndefined();
    });

    test('the audit trail is newest first, and pages go on below', async () => {
      const { siteId } = await fixture.shop('trail');
      for (const name of ['a', 'b', 'c']) {
        await fixture.expect(201, 'POST', `/v1/sites/${siteId}/targets`, { body: { name } });
      }
      const names = (answer: Answer) =>
        itemsOf(answer).map(({ after }) => JSON.parse(JSON.stringify(after)).name);
      const filter = `site_id=${siteId}&kind=proofgate.control.target.create&limit=2`;
      const first = await fixture.expect(200, 'GET', `/v1/audit-events?${filter}`);
      expect(names(first)).toEqual(['c', 'b']);
      await fixture.expect(201, 'POST', `/v1/sites/${siteId}/targets`, { body: { name: 'd' } });
      const cursor = String(first.json.next_cursor);
      const rest = await fixture.expect(200, 'GET', `/v1/audit-events?${filter}&cursor=${cursor}`);
      expect(names(rest)).toEqual(['a']);
      const foreign = Buffer.from('tgt_x').toString('base64url');
      expect((await fixture.call('GET', `/v1/audit-events?cursor=${foreign}`)).code).toBe(
        'request_malformed',
      );
    });
  });
});
