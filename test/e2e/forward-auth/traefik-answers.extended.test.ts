/** Facts about Traefik: what the caller gets of the verifier's answers, and what happens without one. docs/operate/forward-auth.md. */
import { afterEach, describe, expect, it } from '@jest/globals';
import type { HeaderLine } from '../../../src/tools/conformance/wire/exchange.ts';
import { traefikUnavailable } from '../../support/harness/traefik.ts';
import { startUpstream } from '../../support/harness/upstream.ts';
import { traefik as shipped } from '../../support/proxies/traefik.ts';
import { AUTHORITY } from '../../support/site/routes.ts';
import { useMeasuredProxy } from './measured-proxy.ts';
import { ALLOW, RESET } from './recording-check.ts';

const suite = traefikUnavailable() === undefined ? describe : describe.skip;
const REQUEST = { method: 'GET', target: '/a', authority: AUTHORITY } as const;

const PROBLEM_HEADERS: readonly HeaderLine[] = [
  ['content-type', 'application/problem+json'],
  ['cache-control', 'no-store'],
  ['x-proofgate-reason', 'jti_replay'],
  ['x-proofgate-decision-id', '00000000-0000-4000-8000-000000000000'],
  ['www-authenticate', 'Passport'],
  ['retry-after', '1'],
];
const PROBLEM = '{"type":"urn:proofgate:denial:jti_replay"}';

suite('Traefik and the answers of the verifier', () => {
  const traefik = useMeasuredProxy(shipped);
  afterEach(() => traefik.parts.check.behave(ALLOW));
  const measure = (protocol: 'http1' | 'http2' = 'http1') => traefik.observe(protocol, REQUEST);

  it.each([400, 401, 403, 404, 413, 429, 500, 503])('gives the caller all of a %d', async (status) => {
    for (const protocol of ['http1', 'http2'] as const) {
      traefik.parts.check.behave({ status, headers: PROBLEM_HEADERS, body: PROBLEM });
      const { answer, forwarded, status: got } = await measure(protocol);
      expect([got, answer.body, forwarded]).toEqual([status, PROBLEM, []]);
      const headers = PROBLEM_HEADERS.map(([name]) => [name, ...answer.header(name)]);
      expect(headers).toEqual(PROBLEM_HEADERS);
    }
  });

  it('takes every 2xx for an allow', async () => {
    for (const status of [200, 201, 202, 204, 206, 299]) {
      traefik.parts.check.behave({ status });
      expect((await measure()).forwarded).toHaveLength(1);
    }
  });

  it('takes no redirect and no 304 for an allow, and follows none', async () => {
    for (const status of [301, 302, 303, 304, 307]) {
      traefik.parts.check.behave({ status, headers: [['location', `http://${AUTHORITY}/b`]] });
      const { checks, forwarded, status: got } = await measure();
      expect([got, checks.length, forwarded]).toEqual([status, 1, []]);
    }
  });

  it('refuses an answer with a large body with 401', async () => {
    for (const status of [200, 403]) {
      traefik.parts.check.behave({ status, body: 'x'.repeat(65_537) });
      const { forwarded, status: got } = await measure();
      expect([got, forwarded]).toEqual([401, []]);
    }
  });

  it('answers 500 without a body when the connection is reset, and asks a second time before', async () => {
    await measure();
    traefik.parts.check.behave(RESET);
    const { answer, checks, forwarded, status } = await measure();
    expect([status, answer.body, checks.length, forwarded]).toEqual([500, '', 2, []]);
  });

  it("removes the reason and decision headers of the API's responses", async () => {
    const upstream = await startUpstream({
      answerHeaders: [
        ['x-proofgate-reason', 'mine'],
        ['x-proofgate-decision-id', 'mine'],
        ['x-api', '1'],
      ],
    });
    const { socketPath } = traefik.parts.check;
    const running = await shipped.start({ socketPath, upstream, authority: AUTHORITY });
    try {
      const { headers } = await running.http1.send(REQUEST);
      expect(headers.map(([name]) => name)).toContain('x-api');
      expect(JSON.stringify(headers)).not.toContain('mine');
    } finally {
      await running.stop();
      await upstream.stop();
    }
  });
});

suite('Traefik without a verifier', () => {
  it('answers 500 and forwards nothing', async () => {
    const upstream = await startUpstream();
    const running = await shipped.start({ socketPath: '/nowhere', upstream, authority: AUTHORITY });
    try {
      const { body, status } = await running.http1.send(REQUEST);
      expect([status, body.length, upstream.requests]).toEqual([500, 0, []]);
    } finally {
      await running.stop();
      await upstream.stop();
    }
  });
});

suite("Traefik's access log", () => {
  const traefik = useMeasuredProxy(shipped);

  it('has no query and no headers', async () => {
    const headers: readonly HeaderLine[] = [['authorization', 'Passport secret-passport']];
    await traefik.observe('http1', { ...REQUEST, target: '/a?x=secret-query', headers });
    await traefik.parts.proxy.stop();
    const text = await traefik.parts.proxy.logs();
    expect(text).toContain('"RequestPath":"/a"');
    expect(text).not.toContain('secret');
  });
});
