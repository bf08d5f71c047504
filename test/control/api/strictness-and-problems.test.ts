/** Tests what all resources share: strict parsing of requests, and problem responses. */
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import Type from 'typebox';
import { ApiProblem } from '../../../src/control/domain/api-problem.ts';
import { ConstraintError, StoreUnavailableError, UnknownSiteError } from '../../../src/control/store/port.ts';
import { VersionConflictError } from '../../../src/control/store/repositories/records.ts';
import {
  type Answer,
  ApiFixture,
  type Asked,
  type Shop,
  SITE_BODY,
  send,
  textIn,
} from '../../support/control/api-fixture.ts';
import { databaseKinds } from '../store/databases.ts';

/** Errors that the store and the services throw. */
const FAULTS: { readonly [name: string]: Error } = {
  unique: new ConstraintError('unique', 'environment_name_key'),
  reference: new ConstraintError('reference', 'fleet_environment_fkey'),
  version: new VersionConflictError('the record was changed meanwhile'),
  site: new UnknownSiteError('there is no such site'),
  wait: new ApiProblem('rate_limited', undefined, { retryAfterSeconds: 7 }),
  again: new ApiProblem('unavailable', 'changed meanwhile'),
  detail: new ApiProblem('definition_invalid', 'two faults', {
    faults: [
      { pointer: '/body/a', reason: 'one' },
      { pointer: '/body/b', reason: 'two' },
    ],
  }),
};

describe.each(databaseKinds())('$name', (kind) => {
  let fixture: ApiFixture;
  let shop: Shop;

  beforeAll(async () => {
    await kind.start();
    const open = await kind.fresh();
    fixture = await ApiFixture.open({
      openStore: (nowMs) => open({ nowMs }),
      extend: (app) => {
        app.get('/test/fault', { config: { access: { kind: 'public' } } }, () => {
          throw new Error('postgres://admin:hunter2@db.internal');
        });
        for (const [name, error] of Object.entries(FAULTS)) {
          app.get(`/test/fault/${name}`, { config: { access: { kind: 'public' } } }, () => {
            throw error;
          });
        }
        app.get(
          '/test/answer',
          {
            config: { access: { kind: 'public' } },
            schema: {
              response: { 200: Type.Object({ a: Type.Integer() }, { additionalProperties: false }) },
            },
          },
          async (_request, reply) => reply.send(JSON.parse('{"a":1,"secret":"hunter2"}')),
        );
      },
    });
    shop = await fixture.shop();
  });
  afterAll(async () => {
    await fixture.close();
    await kind.stop();
  });

  const ENVIRONMENTS = '/v1/environments';
  const JSON_TYPE = { 'content-type': 'application/json' };

  function pointersOf(answer: Answer): readonly unknown[] {
    const { errors } = answer.json;
    return Array.isArray(errors) ? errors.map(({ pointer }) => pointer) : [];
  }

  describe('strictness', () => {
    test.each([
      ['not JSON', '{', ['/body']],
      ['a member twice', '{"name":"a","name":"b"}', ['/body']],
      ['a member twice, once escaped', '{"name":"a","n\\u0061me":"b"}', ['/body']],
      ['U+0000', '{"name":"a\\u0000b"}', ['/body/name']],
      ['U+0000 behind a backslash', '{"name":"a\\\\\\u0000b"}', ['/body/name']],
      ['bytes after the value', '{"name":"a"} x', ['/body']],
      ['a comment', '{"name":"a"/**/}', ['/body']],
      ['no body', undefined, ['/body']],
      ['null', 'null', ['/body']],
      ['a list', '[]', ['/body']],
      ['a missing member', '{}', ['/body/name']],
      ['an unknown member', '{"name":"a","nmae":"b"}', ['/body/nmae']],
      ['an unknown member beside a fault', '{"name":1,"x/y":"b"}', ['/body/x~1y', '/body/name']],
      ['a prototype', '{"name":"a","__proto__":{"x":1}}', ['/body/__proto__']],
      ['a number for text', '{"name":1}', ['/body/name']],
      ['text with a line end', '{"name":"a\\nb"}', ['/body/name']],
      ['empty text', '{"name":""}', ['/body/name']],
    ])('%s: 400', async (_what, text, pointers) => {
      const answer = await fixture.call('POST', ENVIRONMENTS, {
        ...(text === undefined ? {} : { text }),
        headers: JSON_TYPE,
      });
      expect(answer).toMatchObject({ status: 400, code: 'request_malformed' });
      expect(pointersOf(answer)).toEqual(pointers);
    });

    test('a backslash before u0000 is text like any other', async () => {
      const answer = await fixture.call('POST', ENVIRONMENTS, {
        text: '{"name":"a\\\\u0000b"}',
        headers: JSON_TYPE,
      });
      expect(answer).toMatchObject({ status: 201, json: { name: 'a\\u0000b' } });
    });

    test('bytes that are not UTF-8: 400', async () => {
      const { request } = await import('node:http');
      const status = await new Promise((resolve, reject) => {
        const headers = { ...JSON_TYPE, authorization: `Bearer ${fixture.root}` };
        const options = {
          host: '127.0.0.1',
          port: fixture.port,
          method: 'POST',
          path: ENVIRONMENTS,
          headers,
        };
        const asked = request(options, (response) => {
          response.resume();
          resolve(response.statusCode);
        });
        asked.on('error', reject);
        asked.end(Buffer.from([0x7b, 0x22, 0xff, 0x22, 0x7d]));
      });
      expect(status).toBe(400);
    });

    test.each([
      ['an unknown parameter', '?limt=5', ['/query/limt']],
      ['a parameter twice', '?limit=5&limit=6', ['/query/limit']],
      ['text for a number', '?limit=five', ['/query/limit']],
      ['a number in another spelling', '?limit=05', ['/query/limit']],
      ['a number beyond its bounds', '?limit=201', ['/query/limit']],
      ['zero', '?limit=0', ['/query/limit']],
      ['a cursor that is none', '?cursor=%3D%3D', ['/query/cursor']],
    ])('a query with %s: 400', async (_what, query, pointers) => {
      const answer = await fixture.call('GET', ENVIRONMENTS + query);
      expect(answer).toMatchObject({ status: 400, code: 'request_malformed' });
      expect(pointersOf(answer)).toEqual(pointers);
    });

    test('a query or a body where none is taken: 400', async () => {
      const query = await fixture.call('GET', `/v1/sites/${shop.siteId}?x=1`);
      expect(query).toMatchObject({ status: 400, code: 'request_malformed' });
      const body = await fixture.call('GET', `/v1/sites/${shop.siteId}`, { body: {} });
      expect(body.status).toBe(400);
      const target = await fixture.expect(201, 'POST', `/v1/sites/${shop.siteId}/targets`, {
        body: { name: 't' },
      });
      const detach = await fixture.call('POST', `/v1/targets/${textIn(target, 'target_id')}/detach`, {
        body: {},
      });
      expect(pointersOf(detach)).toEqual(['/body']);
    });

    test('values of faults are not repeated', async () => {
      const secret = 'pgb_do-not-repeat-me';
      const answer = await fixture.call('POST', ENVIRONMENTS, { body: { name: { [secret]: secret } } });
      expect(answer.status).toBe(400);
      expect(answer.text).not.toContain(secret);
    });

    test('another media type: 415; too large: 413; another method: 405 with what there is', async () => {
      const type = await fixture.call('POST', ENVIRONMENTS, {
        text: 'name=a',
        headers: { 'content-type': 'application/x-www-form-urlencoded' },
      });
      expect(type).toMatchObject({ status: 415, code: 'media_type_unsupported' });
      const large = await fixture.call('POST', ENVIRONMENTS, { body: { name: 'x'.repeat(64 * 1024) } });
      expect(large).toMatchObject({ status: 413, code: 'request_too_large' });
      const method = await fixture.call('PUT', ENVIRONMENTS, { body: {} });
      expect(method).toMatchObject({ status: 405, code: 'method_not_allowed' });
      expect(method.headers.allow).toBe('GET, HEAD, POST');
      expect(await fixture.call('GET', '/v1/nothing')).toMatchObject({ status: 404, code: 'not_found' });
      expect(await fixture.call('GET', '/v1/sites/%zz')).toMatchObject({
        status: 400,
        code: 'request_malformed',
      });
    });

    const UNUSED_METHODS = ['QUERY', 'TRACE', 'OPTIONS', 'PROPFIND', 'PURGE', 'DELETE'];
    const FORMS: readonly (readonly [what: string, asked: Asked])[] = [
      ['no body', {}],
      ['a body', { text: '{}', headers: JSON_TYPE }],
      ['a body of no type', { text: '{}' }],
      ['a body of another type', { text: 'x', headers: { 'content-type': 'text/plain' } }],
      ['a type that is none', { text: 'x', headers: { 'content-type': ';' } }],
      ['a type and no body', { headers: JSON_TYPE }],
      ['a body that is too large', { text: 'x'.repeat(65 * 1024), headers: JSON_TYPE }],
    ];
    test.each(UNUSED_METHODS.flatMap((method) => FORMS.map(([what, asked]) => ({ method, what, asked }))))(
      'the unused method $method with $what: 405',
      async ({ method, asked }) => {
        const { text } = asked;
        // With these methods Node's client sends no Content-Length by itself.
        const length: { [name: string]: string } =
          text === undefined ? {} : { 'content-length': `${text.length}` };
        const headers = { authorization: `Bearer ${fixture.root}`, ...asked.headers, ...length };
        const answer = await send({ port: fixture.port, method, path: ENVIRONMENTS, headers }, text);
        expect(answer).toMatchObject({ status: 405, code: 'method_not_allowed' });
        expect(answer.headers.allow).toBe('GET, HEAD, POST');
        expect(answer.headers['x-request-id']).toBe(answer.json.request_id);
        const elsewhere = await send({ port: fixture.port, method, path: '/v1/nothing', headers }, text);
        expect(elsewhere).toMatchObject({ status: 404, code: 'not_found' });
      },
    );

    test('definitions of routes may be larger than other bodies', async () => {
      const origins = Array.from(
        { length: 1000 },
        (_, index) => `https://${'x'.repeat(60)}.${index}.example`,
      );
      const body = {
        ...SITE_BODY,
        site_id: 'wide',
        issuer_url: 'https://wide.example',
        origins: ['https://api.shop.example'],
      };
      await fixture.expect(201, 'POST', `/v1/fleets/${shop.fleetId}/sites`, { body });
      const definition = {
        method: 'GET',
        path_template: '/a',
        audience: 'x',
        freshness_class: 'realtime',
        required_context: { a: origins },
      };
      expect(JSON.stringify(definition).length).toBeGreaterThan(64 * 1024);
      await fixture.expect(201, 'POST', '/v1/sites/wide/routes', { body: { route_id: 'r', definition } });
    });
  });

  describe('problems', () => {
    test('have one shape, and name the request', async () => {
      const answer = await fixture.call('GET', '/v1/sites/unknown');
      expect(answer.headers['content-type']).toBe('application/problem+json');
      expect(answer.json).toEqual({
        type: 'urn:proofgate:problem:not_found',
        title: expect.any(String),
        status: 404,
        code: 'not_found',
        request_id: answer.headers['x-request-id'],
      });
      expect(answer.json.request_id).toMatch(/^req_[A-Za-z0-9_-]{16}$/);
    });

    test('a client’s request ID is not taken', async () => {
      const answer = await fixture.call('GET', '/v1/sites/unknown', { headers: { 'x-request-id': 'mine' } });
      expect(answer.headers['x-request-id']).not.toBe('mine');
    });

    test('an unexpected error says nothing of itself, nor does the log', async () => {
      const answer = await fixture.call('GET', '/test/fault');
      expect(answer).toMatchObject({ status: 500, code: 'internal' });
      expect(answer.text).not.toContain('hunter2');
      const lines = fixture.log.filter((line) => line.includes(String(answer.json.request_id)));
      expect(lines.some((line) => line.includes('"event":"request_failed"'))).toBe(true);
      expect(lines.join('\n')).not.toContain('hunter2');
      expect(lines.join('\n')).toContain('strictness-and-problems.test');
    });

    test.each([
      ['unique', 409, 'already_exists'],
      ['reference', 409, 'still_in_use'],
      ['version', 412, 'precondition_failed'],
      ['site', 404, 'not_found'],
      ['wait', 429, 'rate_limited'],
      ['again', 503, 'unavailable'],
      ['detail', 422, 'definition_invalid'],
    ])('a fault of kind %s: %d %s', async (name, status, code) => {
      const answer = await fixture.call('GET', `/test/fault/${name}`);
      expect(answer).toMatchObject({ status, code });
      expect(answer.text).not.toContain('_key');
      if (name === 'wait') expect(answer.headers['retry-after']).toBe('7');
      if (name === 'again') expect(answer.headers['retry-after']).toBe('1');
      if (name === 'detail') {
        expect(answer.json.detail).toBe('two faults');
        expect(pointersOf(answer)).toEqual(['/body/a', '/body/b']);
      }
    });

    test('an answer that is not what its route promises is not given', async () => {
      const answer = await fixture.call('GET', '/test/answer');
      expect(answer).toMatchObject({ status: 500, code: 'internal' });
      expect(answer.text + fixture.log.join('\n')).not.toContain('hunter2');
      expect(fixture.log.some((line) => line.includes('"answer_faults":[{"pointer":"/secret"'))).toBe(true);
    });

    test('no token, an unknown token, another scheme: 401 with how to do better', async () => {
      for (const headers of [
        {},
        { authorization: 'Bearer unknown' },
        { authorization: 'Basic cm9vdDpyb290' },
      ]) {
        const answer = await fixture.call('GET', '/v1/sites', { token: '', headers });
        expect(answer).toMatchObject({ status: 401, code: 'authentication_required' });
        expect(answer.headers['www-authenticate']).toBe('Bearer realm="proofgate"');
      }
    });

    test('an unauthenticated caller does not learn what is wrong with the body', async () => {
      const answer = await fixture.call('POST', ENVIRONMENTS, { token: '', text: '{' });
      expect(answer).toMatchObject({ status: 401, code: 'authentication_required' });
    });

    test('a database that does not answer: 503, to be asked again', async () => {
      const read = () => Promise.reject(new StoreUnavailableError('connection to db.internal refused'));
      const broken = await ApiFixture.open({
        app: { store: Object.assign(Object.create(fixture.store), { read }) },
      });
      const answer = await broken.call('GET', '/v1/sites/x');
      expect(answer).toMatchObject({ status: 503, code: 'unavailable' });
      expect(answer.headers['retry-after']).toBe('1');
      expect(answer.text).not.toContain('db.internal');
      await broken.close();
    });
  });
});
