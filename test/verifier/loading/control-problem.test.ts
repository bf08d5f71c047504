/** Tests what a verifier reports of a problem that Control answers: its code, and nothing else of the answer. */
import { createServer, type RequestListener, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterEach, expect, it } from '@jest/globals';
import { ControlConnection } from '../../../src/verifier/loading/refresh/control-connection.ts';

let server: Server;
afterEach(async () => {
  server.closeAllConnections();
  await new Promise((resolve) => server.close(resolve));
});

async function failureAt(control: RequestListener): Promise<string> {
  server = createServer(control);
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const { port } = server.address() as AddressInfo;
  const connection = new ControlConnection({
    url: new URL(`http://127.0.0.1:${port}`),
    readToken: async () => 'pgt_secret',
  });
  try {
    await connection.poll({ revision: 1, wait_seconds: 0 } as never, undefined, new AbortController().signal);
    return 'an answer';
  } catch (error) {
    return error instanceof Error && 'code' in error ? `${String(error.code)}: ${error.message}` : 'unknown';
  } finally {
    await connection.close();
  }
}

const PROBLEM = { 'content-type': 'application/problem+json; charset=utf-8' };

it.each<[string, number, object, string, string]>([
  [
    'a code',
    409,
    PROBLEM,
    JSON.stringify({ code: 'revision_out_of_range', title: 'pgt_secret' }),
    'control_status: it answered 409 revision_out_of_range',
  ],
  [
    'a code of a rejected token',
    401,
    PROBLEM,
    JSON.stringify({ code: 'authentication_required' }),
    'control_unauthorized: it answered 401 authentication_required',
  ],
  ['no code', 409, PROBLEM, JSON.stringify({ title: 'x' }), 'control_status: it answered 409'],
  [
    'a code that echoes',
    409,
    PROBLEM,
    JSON.stringify({ code: 'pgt_Secret!' }),
    'control_status: it answered 409',
  ],
  ['no JSON', 502, PROBLEM, '{', 'control_unavailable: it answered 502'],
  ['a page of a proxy', 502, { 'content-type': 'text/html' }, '<h1>', 'control_unavailable: it answered 502'],
  ['too much', 409, PROBLEM, `{"code":"x${' '.repeat(20_000)}"}`, 'control_status: it answered 409'],
])('%s', async (_what, status, headers, body, expected) => {
  const found = await failureAt((_request, response) => {
    response.writeHead(status, { ...headers }).end(body);
  });
  expect(found).toBe(expected);
});
