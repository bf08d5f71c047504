/** Tests facts about Envoy that the verifier relies on: what a Check contains of the request's target, authority and scheme. */
import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { shipped } from '../support/harness/envoy-config.ts';
import {
  checkedHttp,
  checkedValues,
  forwardedRequest,
  type RecordedEnvoy,
  refusedByEnvoy,
  startRecordedEnvoy,
} from '../support/harness/fixture.ts';
import { LANE_ENVOYS } from './lane-envoys.ts';

const get = { method: 'GET', target: '/', authority: 'api.example' } as const;

describe.each(LANE_ENVOYS)('Envoy %s', (version) => {
  let recorded: RecordedEnvoy;
  beforeAll(async () => {
    recorded = await startRecordedEnvoy(version);
  });
  afterAll(() => recorded.stop());

  describe.each(['http1', 'http2'] as const)('%s', (client) => {
    it('puts path and query into path, and nothing into query and fragment', async () => {
      const seen = checkedHttp(
        await recorded.measure(recorded[client], { ...get, target: '/a/b?x=1&y=%2F..' }),
      );
      expect(seen).toMatchObject({ path: '/a/b?x=1&y=%2F..', query: '', fragment: '', method: 'GET' });
    });

    it.each([
      ['dot segments', '/a/../b/./c', '/b/c'],
      ['escaped dot segments', '/a/%2e%2E/b', '/b'],
      ['a backslash', '/a\\b', '/a/b'],
      ['escapes of unreserved characters', '/%61%7e', '/a~'],
      ['dots behind a path parameter', '/a;x=1/../b', '/b'],
      ['nothing of a double slash', '//a//b', '//a//b'],
      ['nothing of the query', '/a?/../%2F%5c\\', '/a?/../%2F%5c\\'],
      ['nothing of other escapes', '/a%20b%3F%23', '/a%20b%3F%23'],
    ])('has normalised %s before the Check, for the upstream too', async (_what, target, normalised) => {
      const measured = await recorded.measure(recorded[client], { ...get, target });
      expect(checkedHttp(measured).path).toBe(normalised);
      expect(forwardedRequest(measured).url).toBe(normalised);
    });

    it.each(['/a%2Fb', '/a%2fb', '/a%5Cb', '/a#b', '/a?b#c', '/a%00b', '/a b', ''])(
      'refuses the target %j without a Check',
      async (target) => {
        expect(await refusedByEnvoy(recorded, recorded[client], { ...get, target })).toBe(true);
      },
    );

    it('keeps the authority as sent: case, default port, trailing dot', async () => {
      for (const authority of ['API.Example:80', 'api.example.', 'api.example:8443', '[::1]:80']) {
        const measured = await recorded.measure(recorded[client], { ...get, authority });
        expect(checkedHttp(measured).host).toBe(authority);
      }
    });

    it('refuses a request without authority', async () => {
      expect(await refusedByEnvoy(recorded, recorded[client], { ...get, authority: '' })).toBe(true);
    });

    it('overwrites the scheme with the configured one, whatever the caller states', async () => {
      const measured = await recorded.measure(recorded[client], { ...get, scheme: 'https' });
      expect(checkedHttp(measured).scheme).toBe('http');
    });
  });

  it('writes ! for a byte of the query that is not UTF-8, but not in header_map', async () => {
    const measured = await recorded.measure(recorded.http2, { ...get, target: '/a?b=\xff\x80c' });
    expect(checkedHttp(measured).path).toBe('/a?b=!!c');
    expect(checkedValues(measured, ':path')).toEqual(['/a?b=\xff\x80c']);
    expect(await refusedByEnvoy(recorded, recorded.http1, { ...get, target: '/a?b=\xff' })).toBe(true);
  });

  it('reports a lower-case method of HTTP/2 as it is; HTTP/1.1 refuses it', async () => {
    const lower = { ...get, method: 'get' };
    expect(checkedHttp(await recorded.measure(recorded.http2, lower)).method).toBe('get');
    expect(await refusedByEnvoy(recorded, recorded.http1, lower)).toBe(true);
  });

  it('joins repeated Host lines of HTTP/1.1 into one authority', async () => {
    const measured = await recorded.measure(recorded.http1, { ...get, headers: [['Host', 'evil.example']] });
    expect(checkedHttp(measured).host).toBe('api.example,evil.example');
  });

  it('lets :authority of HTTP/2 win over a host header, which is dropped', async () => {
    const measured = await recorded.measure(recorded.http2, { ...get, headers: [['host', 'evil.example']] });
    expect(checkedHttp(measured).host).toBe('api.example');
    expect(forwardedRequest(measured).headers.flat()).not.toContain('evil.example');
  });

  it('takes the host header of HTTP/2 when there is no :authority', async () => {
    const request = { ...get, authority: '', headers: [['host', 'h.example']] } as const;
    expect(checkedHttp(await recorded.measure(recorded.http2, request)).host).toBe('h.example');
  });

  it('lets an absolute target of HTTP/1.1 win over Host', async () => {
    const measured = await recorded.measure(recorded.http1, { ...get, target: 'http://other.example/x?y' });
    expect(checkedHttp(measured)).toMatchObject({ host: 'other.example', path: '/x?y', scheme: 'http' });
    expect(forwardedRequest(measured).headers).toContainEqual(['host', 'other.example']);
  });

  it('refuses an absolute https target on a plaintext listener, without a Check', async () => {
    const measured = await recorded.measure(recorded.http1, { ...get, target: 'https://api.example/' });
    expect([measured.response.status, measured.checks.length]).toEqual([403, 0]);
  });

  it('answers CONNECT and OPTIONS * by itself', async () => {
    const connect = await recorded.measure(recorded.http1, {
      ...get,
      method: 'CONNECT',
      target: 'api.example:443',
    });
    const options = await recorded.measure(recorded.http1, { ...get, method: 'OPTIONS', target: '*' });
    expect([connect.response.status, connect.checks.length]).toEqual([404, 0]);
    expect([options.response.status, options.checks.length]).toEqual([404, 0]);
  });
});

describe.each(LANE_ENVOYS)('Envoy %s without scheme_header_transformation', (version) => {
  let recorded: RecordedEnvoy;
  beforeAll(async () => {
    const path = [...shipped.connectionManager, 'scheme_header_transformation'];
    recorded = await startRecordedEnvoy(version, { edits: [{ path }] });
  });
  afterAll(() => recorded.stop());

  it('believes the scheme that an HTTP/2 caller states on a plaintext connection', async () => {
    const measured = await recorded.measure(recorded.http2, { ...get, scheme: 'https' });
    expect(checkedHttp(measured).scheme).toBe('https');
  });
});
