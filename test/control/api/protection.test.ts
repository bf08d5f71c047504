/** Tests protection of the API: limits, foreign origins, slow clients, and secrets that must not leave it. */

import { readdir, readFile } from 'node:fs/promises';
import { connect } from 'node:net';
import { join } from 'node:path';
import { afterEach, describe, expect, test } from '@jest/globals';
import { longPollSignal } from '../../../src/control/api/app.ts';
import { INSTALLATION } from '../../../src/control/domain/roles.ts';
import { tokenHash } from '../../../src/control/secrets/bearer-token.ts';
import {
  type Answer,
  ApiFixture,
  type ApiWorldOptions,
  PUBLIC_ORIGIN,
  textIn,
} from '../../support/control/api-fixture.ts';
import { waitFor } from '../../support/wait.ts';

const opened: ApiFixture[] = [];
afterEach(async () => {
  for (const fixture of opened.splice(0)) await fixture.close();
});

async function openWorld(options: ApiWorldOptions = {}): Promise<ApiFixture> {
  const fixture = await ApiFixture.open(options);
  opened.push(fixture);
  return fixture;
}

function statuses(answers: readonly Answer[]): { readonly [status: string]: number } {
  const counts: Record<string, number> = {};
  for (const { status } of answers) counts[status] = (counts[status] ?? 0) + 1;
  return counts;
}

function repeat(times: number, ask: () => Promise<Answer>): Promise<readonly Answer[]> {
  return Promise.all(Array.from({ length: times }, ask));
}

/** So many that they cannot all fall into separate windows, even on a slow machine. */
const BURST = 60;

describe('limits', () => {
  const extend: ApiWorldOptions['extend'] = (app) => {
    app.post('/test/enroll/:policy', { config: { access: { kind: 'workload' } } }, async (request, reply) => {
      await app.limits.policy(request, JSON.stringify(request.params));
      return reply.code(204).send();
    });
    app.get('/test/self', { config: { access: { kind: 'target' } } }, async () => 'x');
  };

  test('an address on the enrollment endpoints', async () => {
    const fixture = await openWorld({ app: { limits: { workloadRequestsPerSecondPerAddress: 5 } }, extend });
    const answers = await repeat(BURST, () => fixture.call('POST', '/test/enroll/a', { token: '' }));
    const refused = answers.filter(({ status }) => status === 429);
    expect(refused.length).toBeGreaterThan(0);
    expect(statuses(answers)[204]).toBeGreaterThanOrEqual(5);
    expect(refused[0]?.code).toBe('rate_limited');
    expect(refused[0]?.headers['retry-after']).toBe('1');
  });

  test('a policy, for every client; another policy is not held up', async () => {
    const fixture = await openWorld({ app: { limits: { enrollmentsPerSecondPerPolicy: 3 } }, extend });
    const [one, other] = await Promise.all([
      repeat(BURST, () => fixture.call('POST', '/test/enroll/one', { token: '' })),
      repeat(3, () => fixture.call('POST', '/test/enroll/other', { token: '' })),
    ]);
    expect(statuses(one)[429]).toBeGreaterThan(0);
    expect(statuses(other)).toEqual({ 204: 3 });
  });

  test('an operator; another one is not held up', async () => {
    const fixture = await openWorld({ app: { limits: { requestsPerSecondPerPrincipal: 4 } } });
    const token = fixture.operator('other', 'admin', INSTALLATION);
    const [one, other] = await Promise.all([
      repeat(BURST, () => fixture.call('GET', '/v1/sites')),
      repeat(4, () => fixture.call('GET', '/v1/sites', { token })),
    ]);
    expect(statuses(one)[429]).toBeGreaterThan(0);
    expect(statuses(other)).toEqual({ 200: 4 });
  });

  test('a target', async () => {
    const fixture = await openWorld({ app: { limits: { requestsPerSecondPerTarget: 2 } }, extend });
    const answers = await repeat(BURST, () =>
      fixture.call('GET', '/test/self', { token: 'fake-target-token' }),
    );
    expect(statuses(answers)[429]).toBeGreaterThan(0);
  });

  test('failed sign-ins of an address; good ones are not held up by them', async () => {
    const fixture = await openWorld({ app: { limits: { failedSignInsPerMinutePerAddress: 5 } }, extend });
    expect((await fixture.call('GET', '/v1/sites')).status).toBe(200);
    for (let attempt = 0; attempt < 5; attempt++) {
      expect((await fixture.call('GET', '/v1/sites', { token: `guess-${attempt}` })).status).toBe(401);
    }
    const another = await fixture.call('GET', '/v1/sites', { token: 'guess-5' });
    expect(another).toMatchObject({ status: 429, code: 'rate_limited' });
    expect(Number(another.headers['retry-after'])).toBeGreaterThan(1);
    // Targets are not limited by address: a client at the same address could otherwise delay their revocations and statements.
    expect((await fixture.call('GET', '/v1/sites')).status).toBe(200);
    expect((await fixture.call('GET', '/test/self', { token: 'fake-target-token' })).status).toBe(200);
    expect((await fixture.call('GET', '/test/self', { token: 'guess-6' })).status).toBe(429);
  });

  test('X-Forwarded-For is ignored, except from configured proxies', async () => {
    const limits = { workloadRequestsPerSecondPerAddress: 2 };
    const ask = (fixture: ApiFixture) => {
      let index = 0;
      return repeat(BURST, () => {
        index += 1;
        const headers = { 'x-forwarded-for': `203.0.113.${index}` };
        return fixture.call('POST', '/test/enroll/a', { token: '', headers });
      });
    };
    const alone = await openWorld({ app: { limits }, extend });
    expect(statuses(await ask(alone))[429]).toBeGreaterThan(0);
    const behind = await openWorld({ app: { limits, trustedProxies: ['127.0.0.1'] }, extend });
    expect(statuses(await ask(behind))).toEqual({ 204: BURST });
  });
});

describe('browsers', () => {
  const withCookie = (fixture: ApiFixture, headers: { readonly [name: string]: string }) => {
    const token = fixture.operator('browser', 'admin', INSTALLATION, 'session');
    const cookie = { cookie: `proofgate_session=${token}` };
    return fixture.call('POST', '/v1/environments', {
      token: '',
      body: { name: `n${Object.values(headers).join('-')}` },
      headers: { ...cookie, ...headers },
    });
  };

  test.each([
    ['a page of ours', { 'sec-fetch-site': 'same-origin', origin: PUBLIC_ORIGIN }, 201],
    ['an older browser on a page of ours', { origin: PUBLIC_ORIGIN }, 201],
    ['a page of another origin', { 'sec-fetch-site': 'cross-site', origin: 'https://evil.example' }, 403],
    ['a page of a sibling', { 'sec-fetch-site': 'same-site', origin: 'https://evil.shop.example' }, 403],
    ['an origin that begins as ours', { origin: `${PUBLIC_ORIGIN}.evil.example` }, 403],
    ['a sandboxed page', { 'sec-fetch-site': 'cross-site', origin: 'null' }, 403],
    ['no page at all', { 'sec-fetch-site': 'none' }, 403],
    ['one that says nothing', {}, 403],
    ['one that contradicts itself', { 'sec-fetch-site': 'same-origin', origin: 'https://evil.example' }, 403],
  ])('a change with a cookie from %s: %#', async (_what, headers, status) => {
    const fixture = await openWorld();
    const answer = await withCookie(fixture, headers);
    expect(answer.status).toBe(status);
    if (status === 403) expect(answer.code).toBe('origin_forbidden');
  });

  test('reading with a cookie needs no origin, but none of another page; a token needs none at all', async () => {
    const fixture = await openWorld();
    const token = fixture.operator('browser', 'admin', INSTALLATION, 'session');
    const headers = { cookie: `proofgate_session=${token}` };
    for (const [site, status] of [
      [undefined, 200],
      ['same-origin', 200],
      ['none', 200],
      ['same-site', 403],
      ['cross-site', 403],
      ['unknown', 403],
    ] as const) {
      const sent = { ...headers, ...(site === undefined ? {} : { 'sec-fetch-site': site }) };
      const answer = await fixture.call('GET', '/v1/sites', { token: '', headers: sent });
      expect([site, answer.status]).toEqual([site, status]);
    }
    const foreign = { origin: 'https://evil.example' };
    expect(
      (await fixture.call('POST', '/v1/environments', { body: { name: 'x' }, headers: foreign })).status,
    ).toBe(201);
  });

  test('answers say what browsers may do with them: nothing', async () => {
    const fixture = await openWorld();
    const headers = { origin: 'https://evil.example' };
    for (const [method, path] of [
      ['GET', '/v1/sites'],
      ['OPTIONS', '/v1/sites'],
      ['GET', '/nothing'],
    ] as const) {
      const answer = await fixture.call(method, path, { headers });
      expect(Object.keys(answer.headers).filter((name) => name.startsWith('access-control-'))).toEqual([]);
      expect(answer.headers).toMatchObject({
        'content-security-policy': "default-src 'none';frame-ancestors 'none'",
        'x-content-type-options': 'nosniff',
        'referrer-policy': 'no-referrer',
        'cache-control': 'no-store',
      });
    }
  });
});

describe('secrets', () => {
  test('stand in no log, no answer but the one that shows them, no database column', async () => {
    const fixture = await openWorld();
    const { siteId } = await fixture.shop();
    const scope = { kind: 'site', id: siteId };
    const target = await fixture.expect(201, 'POST', `/v1/sites/${siteId}/targets`, {
      body: { name: 't' },
      key: 'k',
    });
    const targetId = textIn(target, 'target_id');
    const access = await fixture.expect(201, 'POST', '/v1/access-tokens', {
      body: { name: 'ci', role: 'admin', scope },
      key: 'k2',
    });
    const accessId = textIn(access, 'access_token_id');
    const tokens = [
      textIn(target, 'token'),
      textIn(
        await fixture.expect(200, 'POST', `/v1/targets/${targetId}/rotate-token`, { body: {} }),
        'token',
      ),
      textIn(access, 'token'),
      textIn(await fixture.expect(200, 'POST', `/v1/access-tokens/${accessId}/rotate`), 'token'),
    ];
    expect(new Set(tokens).size).toBe(4);
    const answers = [
      await fixture.expect(200, 'GET', `/v1/targets/${targetId}`),
      await fixture.expect(200, 'GET', `/v1/access-tokens/${accessId}`),
      await fixture.expect(200, 'GET', '/v1/access-tokens'),
      await fixture.expect(200, 'GET', `/v1/sites/${siteId}/signing-keys`),
      await fixture.expect(200, 'GET', '/v1/audit-events?limit=200'),
      await fixture.expect(201, 'POST', '/v1/access-tokens', {
        body: { name: 'ci', role: 'admin', scope },
        key: 'k2',
      }),
      await fixture.call('POST', '/v1/environments', { body: { name: 1, token: tokens[0] } }),
      await fixture.call('GET', '/v1/sites', { token: String(tokens[0]) }),
    ];
    const files = await readdir(fixture.directory);
    const stored = await Promise.all(files.map((name) => readFile(join(fixture.directory, name), 'latin1')));
    const seen = [...answers.map(({ text }) => text), ...fixture.log, ...stored].join('\n');
    for (const token of tokens) {
      expect(seen.includes(token)).toBe(false);
      expect(seen.includes(token.slice(4))).toBe(false);
    }
    // The search covers the places where tokens would be: it finds their hashes.
    const kept = stored.join('\n');
    for (const token of tokens.slice(1, 2).concat(tokens.slice(3))) expect(kept).toContain(tokenHash(token));
  });

  test('the log has one line an answer, without headers, bodies and queries', async () => {
    const fixture = await openWorld();
    fixture.log.length = 0;
    const answer = await fixture.call('GET', '/v1/audit-events?resource_id=in-the-query', {
      headers: { cookie: 'proofgate_session=in-the-cookie', 'user-agent': 'in-the-agent' },
    });
    await fixture.call('POST', '/v1/environments', { body: { name: 'in-the-body' } });
    await fixture.call('GET', '/nothing/in-the-path');
    const lines = fixture.log.map((line) => JSON.parse(line)).filter(({ event }) => event === 'request');
    expect(lines).toHaveLength(3);
    expect(lines[0]).toMatchObject({
      request_id: answer.headers['x-request-id'],
      method: 'GET',
      route: '/v1/audit-events',
      status: 200,
      actor: 'token:root',
      remote_address: '127.0.0.1',
    });
    expect(fixture.log.join('\n')).not.toMatch(/in-the-|fake-root/);
  });
});

describe('connections', () => {
  /** Sends exactly these bytes. @returns what arrives until the server closes the connection */
  function raw(port: number, text: string): Promise<string> {
    return new Promise((resolve, reject) => {
      const socket = connect({ host: '127.0.0.1', port }, () => socket.write(text));
      let answered = '';
      socket.on('data', (chunk) => {
        answered += chunk.toString('latin1');
      });
      socket.on('error', reject);
      socket.on('close', () => resolve(answered));
    });
  }

  test('that send their header fields or body too slowly are closed', async () => {
    const listener = { headersTimeoutMs: 300, requestTimeoutMs: 600 };
    const fixture = await openWorld({ app: { listener } });
    const [slowHeaders, slowBody] = await Promise.all([
      raw(fixture.port, 'GET /v1/sites HTTP/1.1\r\nhost: x\r\n'),
      raw(
        fixture.port,
        `POST /v1/environments HTTP/1.1\r\nhost: x\r\nauthorization: Bearer ${fixture.root}\r\ncontent-type: application/json\r\ncontent-length: 20\r\n\r\n{`,
      ),
    ]);
    expect(slowHeaders).toMatch(/^HTTP\/1\.1 408 /);
    expect(slowHeaders).toContain('request_timeout');
    expect(slowBody).toMatch(/^HTTP\/1\.1 408 /);
  });

  test('that do not speak HTTP, or end their body in two ways, are answered a problem and closed', async () => {
    const fixture = await openWorld();
    for (const [text, code] of [
      ['hello\r\n\r\n', 'request_malformed'],
      [
        'POST /v1/environments HTTP/1.1\r\nhost: x\r\ncontent-length: 2\r\ntransfer-encoding: chunked\r\n\r\n0\r\n\r\n',
        'request_malformed',
      ],
      [`GET / HTTP/1.1\r\nhost: x\r\nx: ${'a'.repeat(64 * 1024)}\r\n\r\n`, 'headers_too_large'],
    ] as const) {
      const answered = await raw(fixture.port, text);
      expect(answered).toMatch(/^HTTP\/1\.1 4\d\d /);
      expect(answered).toContain('application/problem+json');
      expect(answered).toContain(`"${code}"`);
    }
  });

  /** A handler that waits for its abort signal and reports it. */
  const extend: ApiWorldOptions['extend'] = (app) => {
    app.get('/test/wait', { config: { access: { kind: 'public' } } }, async (request) => {
      const signal = longPollSignal(app, request);
      app.log.info({ event: 'waiting' });
      await new Promise<void>((resolve) => signal.addEventListener('abort', () => resolve()));
      app.log.info({ event: 'no longer' });
      return 'ended';
    });
  };
  const logged = (fixture: ApiFixture, event: string) =>
    waitFor(`the event ${event}`, () => fixture.log.some((line) => line.includes(`"event":"${event}"`)));

  test('that wait for something are answered when Control stops', async () => {
    const fixture = await openWorld({ extend });
    const waiting = fixture.call('GET', '/test/wait');
    await logged(fixture, 'waiting');
    await fixture.app.close();
    expect(await waiting).toMatchObject({ status: 200, text: 'ended' });
  });

  test('that go away while they wait keep nothing waiting', async () => {
    const fixture = await openWorld({ extend });
    const socket = connect({ host: '127.0.0.1', port: fixture.port });
    socket.write('GET /test/wait HTTP/1.1\r\nhost: x\r\n\r\n');
    await logged(fixture, 'waiting');
    socket.destroy();
    await logged(fixture, 'no longer');
    expect(fixture.app.closing.aborted).toBe(false);
  });
});
