/** `@proofgate/client` against a real verifier: the reverse proxy of `proofgate dev`. */

import { readFileSync, writeFileSync } from 'node:fs';
import { createServer, request as httpRequest } from 'node:http';
import type { AddressInfo } from 'node:net';
import { Readable } from 'node:stream';
import { inspect } from 'node:util';
import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { Agent, interceptors, request } from 'undici';
import { denialOf, RequestDenied, Signer, SignerError } from '../../../../src/caller/sdk/index.ts';
import { type DevSite, startDev } from '../../../support/caller/dev-fixture.ts';
import { writeUpstreamKey } from './upstream-key.ts';

let dev: DevSite;
let signer: Signer;
beforeAll(async () => {
  dev = await startDev();
  signer = await Signer.open({ keyFile: dev.keyFile });
});
afterAll(() => dev.stop());

const last = () => dev.received.at(-1);
const codeOf = async (sent: Promise<unknown>) => {
  const error = await sent.then(
    () => undefined,
    (thrown: unknown) => thrown,
  );
  return error instanceof SignerError ? error.code : error;
};

describe('signer.fetch', () => {
  it.each([
    ['text', 'text'],
    ['bytes', new TextEncoder().encode('bytes')],
    ['part of a buffer', new Uint8Array(new TextEncoder().encode('xxpart').buffer, 2)],
    ['parameters', new URLSearchParams({ a: '1', b: 'ü' })],
    ['a blob', new Blob(['bl', 'ob'])],
    ['nothing', undefined],
  ])('sends %s', async (_name, body) => {
    const answer = await signer.fetch(`${dev.origin}/v1/orders`, { method: 'POST', ...(body && { body }) });
    expect(answer.status).toBe(200);
    expect(last()?.body).toBe(body === undefined ? '' : await new Response(body).text());
  });

  it('sends a form with the boundary that it signed', async () => {
    const form = new FormData();
    form.set('name', 'value');
    expect((await signer.fetch(`${dev.origin}/form`, { method: 'POST', body: form })).status).toBe(200);
    const [, boundary = 'none'] = /boundary=(.*)$/.exec(last()?.headers['content-type'] ?? '') ?? [];
    expect(last()?.body).toContain(boundary);
  });

  it('takes a Request, and a query and fragment as fetch does', async () => {
    const asked = new Request(`${dev.origin}/a b?q=ü#part`, {
      method: 'PUT',
      body: 'x',
      headers: { 'x-a': '1' },
    });
    expect((await signer.fetch(asked)).status).toBe(200);
    expect(last()).toMatchObject({
      method: 'PUT',
      target: '/a%20b?q=%C3%BC',
      body: 'x',
      headers: { 'x-a': '1' },
    });
  });

  it('refuses a stream, and says how else', async () => {
    const sent = signer.fetch(`${dev.origin}/s`, {
      method: 'POST',
      body: new Blob(['x']).stream(),
      duplex: 'half',
    } as RequestInit);
    await expect(sent).rejects.toThrow(/body_not_replayable: .*arrayBuffer.*unbound/);
  });

  it('replaces credentials of the caller', async () => {
    const headers = {
      authorization: 'Passport stolen',
      'x-proofgate-signature': 'x',
      'x-proofgate-other': 'y',
    };
    expect((await signer.fetch(`${dev.origin}/x`, { headers })).status).toBe(200);
  });

  it('never replaces an Authorization of the application', async () => {
    const headers = { authorization: 'Bearer mine' };
    expect(await codeOf(signer.fetch(`${dev.origin}/x`, { headers }))).toBe('header_reserved');
  });

  it.each(['https://api.shop.example/x', 'http://localhost:1/x'])('sends nothing to %s', async (url) => {
    expect(await codeOf(signer.fetch(url))).toBe('origin_not_allowed');
  });

  it.each([
    [307, 'POST', 'POST', 'body'],
    [308, 'PUT', 'PUT', 'body'],
    [301, 'POST', 'GET', ''],
    [302, 'DELETE', 'DELETE', ''],
    [303, 'PUT', 'GET', ''],
    [302, 'QUERY', 'QUERY', 'body'],
    [303, 'QUERY', 'GET', ''],
  ])('signs anew after a %i of %s', async (status, method, then, body) => {
    const init = method === 'DELETE' ? { method } : { method, body: 'body' };
    const answer = await signer.fetch(`${dev.origin}/redirect/${status}/to`, init);
    expect([answer.status, last()]).toMatchObject([200, { method: then, target: '/to', body }]);
  });

  it('sends nothing to an origin without a profile', async () => {
    const to = encodeURIComponent(`${dev.upstreamOrigin}/elsewhere`);
    expect(await codeOf(signer.fetch(`${dev.origin}/redirect/302/x?to=${to}`))).toBe('origin_not_allowed');
    expect(last()?.target).not.toBe('/elsewhere');
  });

  it('follows no redirect when told so', async () => {
    const url = `${dev.origin}/redirect/302/redirect/302/x`;
    expect((await signer.fetch(url, { redirect: 'manual' })).status).toBe(302);
    await expect(signer.fetch(url, { redirect: 'error' })).rejects.toThrow('fetch failed');
  });
});

describe('a denial', () => {
  /** The proof of a second request with the same identifier. */
  const replayed = async (throwOnDenial: boolean) => {
    const jti = Buffer.from(`${throwOnDenial}-0123456789`).toString('base64url');
    const options = { keyFile: dev.keyFile, throwOnDenial };
    const other = await Signer.open(options, { newJti: () => jti });
    await other.fetch(`${dev.origin}/once`);
    return other.fetch(`${dev.origin}/once`);
  };

  it('is an error on request, and leaves the body readable', async () => {
    const answer = await replayed(false);
    const denial = await denialOf(answer);
    expect(denial).toMatchObject({ status: 403, reason: 'jti_replay', detail: undefined });
    expect(denial?.decisionId).toMatch(/^[0-9a-f-]{36}$/);
    expect(await answer.json()).toMatchObject({ reason: 'jti_replay' });
    expect(await denialOf(await signer.fetch(`${dev.origin}/fine`))).toBeUndefined();
  });

  it('is thrown with throwOnDenial', async () => {
    await expect(replayed(true)).rejects.toThrow(RequestDenied);
  });
});

describe('the interceptor', () => {
  it('signs each attempt and each redirect anew', async () => {
    const agent = new Agent().compose(signer.interceptor(), interceptors.redirect({ maxRedirections: 2 }));
    const headers = { 'x-a': ['1', '2'] };
    const answer = await request(`${dev.origin}/redirect/307/to`, {
      method: 'POST',
      body: 'again',
      headers,
      query: { q: ['1', 'ü'] },
      dispatcher: agent,
    });
    await answer.body.dump();
    expect([answer.statusCode, last()]).toMatchObject([200, { target: '/to?q=1&q=%C3%BC', body: 'again' }]);
    await agent.close();
  });

  it('fails for another origin and for a stream', async () => {
    const agent = new Agent().compose(signer.interceptor());
    expect(await codeOf(request(dev.upstreamOrigin, { dispatcher: agent }))).toBe('origin_not_allowed');
    const body = Readable.from(['x']);
    const sent = request(`${dev.origin}/x`, { method: 'POST', body, dispatcher: agent });
    expect(await codeOf(sent)).toBe('body_not_replayable');
    await agent.close();
  });
});

describe('signer.sign', () => {
  it('returns headers for node:http', async () => {
    const headers = await signer.sign({ method: 'POST', url: `${dev.origin}/plain`, body: 'abc' });
    const status = await new Promise((resolve, reject) => {
      const sent = httpRequest(`${dev.origin}/plain`, { method: 'POST', headers, agent: false }, (answer) => {
        answer.resume();
        resolve(answer.statusCode);
      });
      sent.on('error', reject).end('abc');
    });
    expect([status, last()?.body]).toEqual([200, 'abc']);
  });

  it('has the codes of the command line', async () => {
    const url = `${dev.origin}/x`;
    expect(await codeOf(signer.sign({ url: `${dev.origin}/a/../b` }))).toBe('url_not_canonical');
    expect(await codeOf(signer.sign({ url, method: 'TRACE' }))).toBe('profile_not_found');
    expect(await codeOf(signer.sign({ url, profile: 'none' }))).toBe('profile_not_found');
    expect(await codeOf(signer.sign({ url, signHeaders: ['x-a'] }))).toBe('header_missing');
    expect(await codeOf(Signer.open({ keyFile: `${dev.keyFile}.none` }))).toBe('file_not_found');
  });
});

it('shows no secret', async () => {
  const pem = readFileSync(dev.keyFile, 'utf8');
  const secret = pem.split('\n')[1] ?? 'none';
  const shown = [
    inspect(signer, { depth: 9, showHidden: true }),
    JSON.stringify(signer),
    String(signer),
  ].join();
  expect(shown).not.toContain(secret);
  const copy = `${dev.keyFile}.broken`;
  writeFileSync(copy, pem.replace('PRIVATE', 'PRIVAT'), { mode: 0o600 });
  const error = await Signer.open({ keyFile: copy }).catch((thrown: unknown) => thrown);
  expect(inspect(error, { depth: 9 })).not.toContain(secret);
  expect(error).toMatchObject({ code: 'private_key_invalid' });
});

it('warns once when the clock differs from that of the server', async () => {
  const server = createServer((_request, response) => {
    response.writeHead(200, { date: new Date(Date.now() - 60_000).toUTCString() }).end();
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const origin = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  const warnings: string[] = [];
  const keyFile = writeUpstreamKey([origin]);
  const other = await Signer.open({ keyFile, onWarning: (text) => warnings.push(text) });
  for (let i = 0; i < 2; i++) await (await other.fetch(`${origin}/v1/a`)).text();
  expect(warnings).toEqual([expect.stringMatching(/^this clock is (59|60|61) s ahead of the server's/)]);
  server.closeAllConnections();
  server.close();
});
