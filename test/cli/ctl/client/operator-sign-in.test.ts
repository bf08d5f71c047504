/**
 * Tests the loopback page of a sign-in over real HTTP: it answers one callback, only its own, and keeps no part of it
 * elsewhere.
 */
import { type IncomingHttpHeaders, request } from 'node:http';
import { connect } from 'node:net';
import { afterEach, beforeEach, describe, expect, test } from '@jest/globals';
import { OperatorError } from '../../../../src/cli/ctl/client/operator-error.ts';
import { SignInRedirect } from '../../../../src/cli/ctl/client/operator-sign-in.ts';

const STATE = 'b'.repeat(43);
const CODE = 'k'.repeat(43);

interface Shown {
  readonly status: number;
  readonly headers: IncomingHttpHeaders;
  readonly body: string;
}

let redirect: SignInRedirect;
let strays = 0;
beforeEach(async () => {
  strays = 0;
  redirect = await SignInRedirect.listen({ port: 0, state: STATE, onStrayAnswer: () => strays++ });
});
afterEach(() => redirect.close());

function visit(
  query: string,
  {
    url = redirect.url,
    method = 'GET',
    headers = {},
  }: { url?: string; method?: string; headers?: object } = {},
): Promise<Shown> {
  return new Promise((resolve, reject) => {
    const sent = request(`${url}${query}`, { method, agent: false, headers: { ...headers } }, (response) => {
      let body = '';
      response.setEncoding('utf8');
      response.on('data', (chunk) => {
        body += chunk;
      });
      response.on('end', () =>
        resolve({ status: response.statusCode ?? 0, headers: response.headers, body }),
      );
      response.on('error', reject);
    });
    sent.on('error', reject);
    sent.end();
  });
}

const never = new AbortController().signal;
const answer = () => redirect.answer({ timeoutMs: 20_000, stop: never });

describe('the answer', () => {
  test('is the code that comes with our state; its page shows nothing of it and runs nothing', async () => {
    const page = await visit(`?code=${CODE}&state=${STATE}`);
    expect(await answer()).toEqual({ kind: 'code', code: CODE });
    expect(page.status).toBe(200);
    expect(page.headers).toMatchObject({
      'referrer-policy': 'no-referrer',
      'cache-control': 'no-store',
      'content-security-policy': expect.stringContaining("default-src 'none'"),
      'content-type': 'text/html; charset=utf-8',
    });
    expect(page.headers['set-cookie']).toBeUndefined();
    expect(page.body).not.toMatch(/<script|href|src=/);
    expect(page.body).not.toContain(CODE);
    expect(page.body).not.toContain(STATE);
  });

  test('is the first one; later ones change nothing', async () => {
    await visit(`?code=${CODE}&state=${STATE}`);
    expect((await visit(`?code=another&state=${STATE}`)).status).toBe(410);
    expect((await visit(`?error=access_denied&state=${STATE}`)).status).toBe(410);
    expect(await answer()).toEqual({ kind: 'code', code: CODE });
    expect(strays).toBe(0);
  });

  test('may be no', async () => {
    expect((await visit(`?error=access_denied&state=${STATE}`)).status).toBe(200);
    expect((await visit(`?code=${CODE}&state=${STATE}`)).status).toBe(410);
    expect(await answer()).toEqual({ kind: 'denied' });
  });

  test('counts although the browser does not wait for its page', async () => {
    const socket = connect(Number(new URL(redirect.url).port), '127.0.0.1');
    socket.on('error', () => {});
    const { host } = new URL(redirect.url);
    socket.write(`GET /signed-in?code=${CODE}&state=${STATE} HTTP/1.1\r\nHost: ${host}\r\n\r\n`, () => {
      socket.destroySoon();
    });
    expect(await answer()).toEqual({ kind: 'code', code: CODE });
  });
});

describe('refused, and waited on', () => {
  const ok = `code=${CODE}&state=${STATE}`;

  test.each<[string, string]>([
    ['no state', `?code=${CODE}`],
    ['another state', `?code=${CODE}&state=${'c'.repeat(43)}`],
    ['a state that is nearly ours', `?code=${CODE}&state=${STATE.slice(0, -1)}c`],
    ['the beginning of our state', `?code=${CODE}&state=${STATE.slice(0, -1)}`],
    ['an empty state', `?code=${CODE}&state=`],
    ['two states', `?${ok}&state=${STATE}`],
    ['another state beside ours', `?state=x&${ok}`],
    ['two codes', `?${ok}&code=${CODE}`],
    ['no code', `?state=${STATE}`],
    ['an empty code', `?code=&state=${STATE}`],
    ['a code that is too long', `?code=${'k'.repeat(129)}&state=${STATE}`],
    ['a code with a line break', `?code=k%0d%0ak&state=${STATE}`],
    ['a code and an error', `?${ok}&error=access_denied`],
    ['a denial with another state', '?error=access_denied&state=x'],
  ])('%s', async (_name, query) => {
    expect((await visit(query)).status).toBe(400);
    expect((await visit(query)).status).toBe(400);
    expect(strays).toBe(1);
    expect((await visit(`?${ok}`)).status).toBe(200);
    expect(await answer()).toEqual({ kind: 'code', code: CODE });
  });

  test('another path, another method, another name of this host', async () => {
    const { origin, port } = new URL(redirect.url);
    for (const path of ['/', '/favicon.ico', '/signed-in/', '/signed-in%3f', '//signed-in']) {
      expect((await visit(`${path}?${ok}`, { url: origin })).status).toBe(404);
    }
    for (const method of ['POST', 'HEAD', 'PUT', 'OPTIONS']) {
      expect((await visit(`?${ok}`, { method })).status).toBe(405);
    }
    for (const host of ['evil.example', `evil.example:${port}`, `localhost:${port}`, '127.0.0.1']) {
      expect((await visit(`?${ok}`, { headers: { host } })).status).toBe(404);
    }
    expect(strays).toBe(0);
    await visit(`?${ok}`);
    expect(await answer()).toEqual({ kind: 'code', code: CODE });
  });
});

describe('no answer', () => {
  const codeOf = (error: unknown) => (error instanceof OperatorError ? [error.kind, error.code] : error);

  test('in time', async () => {
    const waited = redirect.answer({ timeoutMs: 30, stop: never }).catch(codeOf);
    expect(await waited).toEqual(['timed_out', 'sign_in_timed_out']);
  });

  test('before somebody says stop', async () => {
    const controller = new AbortController();
    const waited = redirect.answer({ timeoutMs: 20_000, stop: controller.signal }).catch(codeOf);
    controller.abort();
    expect(await waited).toEqual(['timed_out', 'sign_in_stopped']);
    const stopped = redirect.answer({ timeoutMs: 20_000, stop: controller.signal }).catch(codeOf);
    expect(await stopped).toEqual(['timed_out', 'sign_in_stopped']);
  });

  test('where another program has the port', async () => {
    const port = Number(new URL(redirect.url).port);
    const second = SignInRedirect.listen({ port, state: STATE, onStrayAnswer: () => {} }).catch(codeOf);
    expect(await second).toEqual(['usage', 'listen_failed']);
  });
});

test('listens on loopback alone, and not for connections that say nothing', async () => {
  const { hostname, port } = new URL(redirect.url);
  expect(hostname).toBe('127.0.0.1');
  const idle = connect(Number(port), '127.0.0.1');
  await new Promise((resolve) => idle.once('connect', resolve));
  const closed = new Promise((resolve) => idle.once('close', resolve));
  await redirect.close();
  await closed;
  await expect(visit('')).rejects.toMatchObject({ code: 'ECONNREFUSED' });
});
