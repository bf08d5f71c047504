/** Tests the exchange of the bootstrap token for a session: from where, for how long, and what ends it. */
import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, beforeEach, describe, expect, test } from '@jest/globals';
import { pino } from 'pino';
import { type RunningControl, startControl } from '../../../src/control/program/control-process.ts';
import { CONTROL_SETTINGS } from '../../../src/control/program/control-settings.ts';
import { newToken } from '../../../src/control/secrets/bearer-token.ts';
import { settingValues } from '../../../src/process/settings/setting-sources.ts';
import { type Answer, itemsOf, send } from '../../support/control/api-fixture.ts';
import { freePort } from '../../support/harness/free-port.ts';

const HOUR_MS = 3_600_000;

let directory = '';
let port = 0;
let control: RunningControl;
let aheadMs = 0;
let token = '';
const log: string[] = [];

async function start(...flags: readonly string[]): Promise<void> {
  const texts = new Map<string, readonly string[]>([
    ['data-dir', [directory]],
    ['listen', [`127.0.0.1:${port}`]],
    ['admin-listen', ['127.0.0.1:0']],
    ['public-url', [`http://127.0.0.1:${port}`, 'https://control.example']],
    ...flags.map((flag): [string, string[]] => [flag, ['true']]),
  ]);
  const logger = pino({ level: 'debug' }, { write: (line: string) => void log.push(line) });
  const settings = settingValues(CONTROL_SETTINGS, texts);
  control = await startControl(settings, { logger, nowMs: () => Date.now() + aheadMs });
  token = (await readFile(join(directory, 'bootstrap-token'), 'utf8')).trim();
}

beforeAll(async () => {
  directory = await mkdtemp(join(tmpdir(), 'proofgate-bootstrap-sign-in-'));
  port = await freePort();
  await start();
});
beforeEach(() => {
  aheadMs = 0;
});
afterAll(async () => {
  await control.stop();
  await rm(directory, { recursive: true });
});

interface Headers {
  readonly [name: string]: string;
}

function call(method: string, path: string, headers: Headers, body?: object): Promise<Answer> {
  const type: Headers = body === undefined ? {} : { 'content-type': 'application/json' };
  return send({ port, method, path, headers: { ...type, ...headers } }, body && JSON.stringify(body));
}

/** A page of Control, as a browser on its machine sees it. */
const own = (): Headers => ({ 'sec-fetch-site': 'same-origin', origin: `http://127.0.0.1:${port}` });

const exchange = (headers: Headers, sent = token) =>
  call('POST', '/v1/session/bootstrap', headers, { token: sent });

/** @returns the session's cookie */
async function signedIn(): Promise<Headers> {
  const answer = await exchange(own());
  expect(answer.status).toBe(204);
  const [line = ''] = answer.headers['set-cookie'] ?? [];
  expect(line).toMatch(/^proofgate_session=pgs_[\w-]{43}; Path=\/; Expires=[^;]+; HttpOnly; SameSite=Lax$/);
  return { cookie: line.split(';', 1)[0] ?? '' };
}

const session = (cookie: Headers) => call('GET', '/v1/session', cookie);

test('the session is that of the bootstrap token, for an hour', async () => {
  const cookie = await signedIn();
  expect((await session(cookie)).json).toMatchObject({
    actor: 'bootstrap',
    via: 'session',
    roles: [{ role: 'admin', scope: { kind: 'installation' } }],
  });
  const made = await call('POST', '/v1/environments', { ...cookie, ...own() }, { name: 'by-bootstrap' });
  expect(made.status).toBe(201);
  aheadMs = HOUR_MS - 30_000;
  expect((await session(cookie)).status).toBe(200);
  aheadMs = HOUR_MS + 1_000;
  expect((await session(cookie)).status).toBe(401);
});

test('it is audited, and its token stands in no log', async () => {
  const cookie = await signedIn();
  const [started] = itemsOf(await call('GET', '/v1/audit-events?limit=1', cookie));
  expect(started).toMatchObject({
    kind: 'proofgate.control.session.start',
    actor: 'bootstrap',
    after: { via: 'bootstrap_token', groups: [] },
  });
  await call('POST', '/auth/logout', { ...cookie, ...own() });
  expect((await session(cookie)).status).toBe(401);
  expect(log.join('')).not.toContain(token.slice(4));
});

describe('another place', () => {
  const proxied: readonly (readonly [string, Headers])[] = [
    ['another public URL', { host: 'control.example', origin: 'https://control.example' }],
    ['a name that resolves to loopback', { host: 'rebound.example' }],
    ['a name of loopback that is no public URL', { host: 'localhost' }],
    ['a proxy', { 'x-forwarded-for': '203.0.113.9' }],
    ['a proxy on loopback', { 'x-forwarded-for': '127.0.0.1' }],
    ['a standard proxy', { forwarded: 'for=203.0.113.9' }],
    ['a proxy that names itself', { via: '1.1 proxy' }],
  ];

  test.each(proxied)('%s', async (_name, headers) => {
    const sent = { ...own(), ...headers };
    expect(await exchange(sent)).toMatchObject({ status: 403, code: 'bootstrap_sign_in_local' });
    expect((await call('GET', '/v1/sign-in-methods', sent)).json).toEqual({
      identity_provider: false,
      bootstrap_token: false,
    });
  });

  test.each<readonly [string, Headers]>([
    ['a page of another site', { 'sec-fetch-site': 'cross-site', origin: 'https://evil.example' }],
    ['a page at another port', { 'sec-fetch-site': 'same-site', origin: 'http://127.0.0.1:1' }],
    ['a page of the other public URL', { origin: 'https://control.example' }],
    ['no page', {}],
  ])('%s', async (_name, headers) => {
    expect(await exchange(headers)).toMatchObject({ status: 403, code: 'origin_forbidden' });
  });
});

test('another token, or a form, starts nothing; failures are limited', async () => {
  for (const wrong of [newToken('bootstrap'), newToken('session'), 'x', `${token} `]) {
    const answer = await exchange(own(), wrong);
    expect(answer).toMatchObject({ status: 401, code: 'authentication_required' });
    expect(answer.headers['set-cookie']).toBeUndefined();
  }
  const form = { ...own(), 'content-type': 'application/x-www-form-urlencoded' };
  expect((await exchange(form)).status).toBe(415);
  expect((await call('POST', `/v1/session/bootstrap?token=${token}`, own())).status).toBe(400);
  const failures = await Promise.all(
    Array.from({ length: 60 }, () => exchange(own(), newToken('bootstrap'))),
  );
  expect(failures.at(-1)).toMatchObject({ status: 429, code: 'rate_limited' });
  await signedIn();
});

test('a reset or the end of the token ends its sessions, and no other', async () => {
  const [first, second] = [await signedIn(), await signedIn()];
  await control.stop();
  await rm(join(directory, 'bootstrap-token'));
  await start('reset-bootstrap-token');
  expect((await session(first)).status).toBe(401);
  expect((await session(second)).status).toBe(401);
  const third = await signedIn();
  expect((await call('DELETE', '/v1/bootstrap-token', { ...third, ...own() })).status).toBe(204);
  expect((await session(third)).status).toBe(401);
  expect(await exchange(own())).toMatchObject({ status: 401 });
  expect((await call('GET', '/v1/sign-in-methods', own())).json).toMatchObject({ bootstrap_token: false });
});
