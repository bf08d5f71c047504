/** What a verifier sends to Control over HTTP, and which failure it makes of an answer, against a real server on loopback. */
import { once } from 'node:events';
import { createServer, type IncomingMessage, type RequestListener, type ServerResponse } from 'node:http';
import { createServer as createTlsServer, type ServerOptions } from 'node:https';
import type { AddressInfo } from 'node:net';
import { afterAll, beforeAll, expect, it } from '@jest/globals';
import {
  ControlConnection,
  type ControlConnectionOptions,
} from '../../../src/verifier/loading/refresh/control-connection.ts';
import { retryAfterOf } from '../../../src/verifier/loading/refresh/control-failure.ts';
import { Instance } from '../../../src/verifier/loading/refresh/instance.ts';
import { makeCertificates, type TestCertificates } from '../../support/harness/certificates.ts';
import { closeAfterTest } from './loader-fixture.ts';

const HEAD = 'A'.repeat(43);
const ANSWER = { auth_site: 'shop-eu-1', revision: 7, head: HEAD, steps: [] };
const never = new AbortController().signal;

interface Received {
  readonly method: string | undefined;
  readonly url: string | undefined;
  readonly headers: IncomingMessage['headers'];
  readonly body: string;
}

/** A Control that answers as the test says, and a connection to it. */
async function connected(
  answer: (response: ServerResponse, request: Received) => void,
  options: Partial<ControlConnectionOptions> = {},
  tls?: Pick<ServerOptions, 'cert' | 'key'>,
) {
  const requests: Received[] = [];
  const onRequest: RequestListener = async (request, response) => {
    const chunks: Buffer[] = [];
    for await (const chunk of request) chunks.push(chunk);
    const { headers, method, url } = request;
    const received = { method, url, headers, body: Buffer.concat(chunks).toString() };
    requests.push(received);
    answer(response, received);
  };
  const server = tls === undefined ? createServer(onRequest) : createTlsServer(tls, onRequest);
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  const url = new URL(`${tls === undefined ? 'http' : 'https'}://127.0.0.1:${port}`);
  const connection = new ControlConnection({ url, readToken: async () => 'pgt_secret', ...options });
  closeAfterTest(async () => {
    await connection.close();
    server.closeAllConnections();
    server.close();
  });
  return { connection, requests };
}

const codeOf = (sent: Promise<unknown>) =>
  sent.then(
    () => 'done',
    (error: { readonly code: string }) => error.code,
  );

it('a poll names the position in its query, and the last answer by its ETag', async () => {
  const { connection, requests } = await connected((response, { headers }) => {
    if (headers['if-none-match'] === '"7"') response.writeHead(304).end();
    else response.writeHead(200, { etag: '"7"' }).end(JSON.stringify(ANSWER));
  });
  const query = { revision: 7, head: HEAD, wait_seconds: 30 };
  expect(await connection.poll({ wait_seconds: 0 }, undefined, never)).toEqual({
    kind: 'answer',
    answer: ANSWER,
    etag: '"7"',
  });
  expect(await connection.poll(query, '"7"', never)).toEqual({ kind: 'unchanged' });
  const path = '/v1/targets/self/bundle';
  expect(requests.map(({ method, url }) => [method, url])).toEqual([
    ['GET', `${path}?wait_seconds=0`],
    ['GET', `${path}?revision=7&head=${HEAD}&wait_seconds=30`],
  ]);
  expect(requests[0]?.headers).not.toHaveProperty('if-none-match');
  expect(requests[0]?.headers).toMatchObject({
    authorization: 'Bearer pgt_secret',
    accept: 'application/json',
  });
});

it('what is enforced locally and which instance asks go with each request, if there is anything to say', async () => {
  const enforced = ['one', undefined];
  const { connection, requests } = await connected((response) => response.writeHead(304).end(), {
    readEnforced: async () => enforced.shift(),
    instance: { text: () => 'instance-text', sign: () => 'signature' },
  });
  for (let polls = 0; polls < 2; polls++) await connection.poll({ wait_seconds: 0 }, undefined, never);
  const [first, second] = requests;
  expect(first?.headers).toMatchObject({
    'proofgate-enforced-observations': 'one',
    'proofgate-instance': 'instance-text',
  });
  expect(second?.headers).not.toHaveProperty('proofgate-enforced-observations');
  // Only acknowledgements are signed.
  expect(first?.headers).not.toHaveProperty('proofgate-acknowledgement-signature');
});

it('an acknowledgement is posted, signed for the token of the request, and the last one says that it is the last', async () => {
  const instance = new Instance({
    ...{ version: '0.4.0', authSite: 'shop-eu-1', realtimeStalenessSeconds: 10, hasBreakGlass: false },
    readStoreId: undefined,
  });
  const signed: unknown[] = [];
  const { connection, requests } = await connected((response) => response.writeHead(204).end(), {
    instance: {
      text: () => instance.text(),
      sign: (...what) => {
        signed.push(what);
        return instance.sign(...what);
      },
    },
  });
  const refused = { revision: 8, head: HEAD, outcome: 'refused', code: 'chain_broken' } as const;
  await connection.acknowledge(refused, never);
  await connection.end({ revision: 7, head: HEAD }, never);
  const accepted = { revision: 7, head: HEAD, outcome: 'accepted' };
  expect(requests.map(({ body, method, url }) => [method, url, JSON.parse(body)])).toEqual([
    ['POST', '/v1/targets/self/acks', refused],
    ['POST', '/v1/targets/self/acks', accepted],
  ]);
  expect(signed).toEqual([
    [refused, 'pgt_secret', undefined],
    [accepted, 'pgt_secret', true],
  ]);
  for (const { headers } of requests) {
    expect(headers).toMatchObject({ 'content-type': 'application/json' });
    expect(headers['proofgate-acknowledgement-signature']).toMatch(/./);
  }
});

it('last uses of keys are posted with their times', async () => {
  const { connection, requests } = await connected((response) => response.writeHead(204).end());
  const uses = [{ keyId: 'dk_1', usedAtSeconds: 1_700_000_040 }];
  expect(await connection.reportLastUsed(uses, never)).toBe('taken');
  expect(requests).toMatchObject([{ method: 'POST', url: '/v1/targets/self/last-used' }]);
  expect(JSON.parse(requests[0]?.body ?? '')).toEqual({
    keys: [{ key_id: 'dk_1', used_at: '2023-11-14T22:14:00Z' }],
  });
});

it.each([
  [204, 'taken'],
  [404, 'unsupported'],
])('unknown keys are posted, and a %d means %s', async (status, outcome) => {
  const { connection, requests } = await connected((response) => response.writeHead(status).end());
  const keys = [{ issuer: 'https://login.example', kid: 'k1' }];
  expect(await connection.reportUnknownKeys(keys, never)).toBe(outcome);
  expect(requests).toMatchObject([{ method: 'POST', url: '/v1/targets/self/unknown-keys' }]);
  expect(JSON.parse(requests[0]?.body ?? '')).toEqual({ keys });
});

it.each([
  [200, 'done'],
  [202, 'done'],
  [300, 'control_status'],
  [302, 'control_status'],
  [400, 'control_status'],
  [401, 'control_unauthorized'],
  [403, 'control_unauthorized'],
  [404, 'control_status'],
  [429, 'control_throttled'],
  [499, 'control_status'],
  [500, 'control_unavailable'],
  [503, 'control_unavailable'],
])('%d to an acknowledgement: %s, and a Retry-After goes with the failure', async (status, code) => {
  const headers = { 'retry-after': '7', location: '/elsewhere' };
  const { connection, requests } = await connected((response) => response.writeHead(status, headers).end());
  const sent = connection.acknowledge({ revision: 7, head: HEAD, outcome: 'accepted' }, never);
  expect(await codeOf(sent)).toBe(code);
  if (code !== 'done') expect(retryAfterOf(await sent.catch((error: unknown) => error))).toBe(7000);
  expect(requests).toHaveLength(1);
});

it('a poll that asked Control to wait gets that much longer than another', async () => {
  const held: ServerResponse[] = [];
  const { connection } = await connected((response, { url }) => url?.endsWith('30') && held.push(response), {
    answerTimeoutMs: 50,
  });
  const waiting = connection.poll({ wait_seconds: 30 }, undefined, never);
  expect(await codeOf(connection.poll({ wait_seconds: 0 }, undefined, never))).toBe('control_timeout');
  held[0]?.writeHead(200).end(JSON.stringify(ANSWER));
  expect(await waiting).toMatchObject({ kind: 'answer', etag: undefined });
});

it.each<[what: string, answer: (response: ServerResponse) => void, code: string]>([
  ['an answer that stops in the middle', (response) => response.writeHead(200).write('{'), 'control_timeout'],
  ['a closed connection', (response) => response.destroy(), 'control_unreachable'],
  [
    'a connection that closes in the middle',
    (response) => response.writeHead(200).write('{', () => response.destroy()),
    'control_unreachable',
  ],
])('%s is a failure with a code', async (_what, answer, code) => {
  const { connection } = await connected(answer, { answerTimeoutMs: 50 });
  expect(await codeOf(connection.poll({ wait_seconds: 0 }, undefined, never))).toBe(code);
});

let certificates: TestCertificates;
beforeAll(async () => {
  certificates = await makeCertificates('control.example', 'spiffe://shop.example/control', ['127.0.0.1']);
});
afterAll(() => certificates.remove());

it('Control needs a certificate of the configured authority, or it gets no token', async () => {
  const unchanged = (response: ServerResponse) => response.writeHead(304).end();
  const outcome = async (options: Partial<ControlConnectionOptions>) => {
    const { connection, requests } = await connected(unchanged, options, certificates.server);
    return [await codeOf(connection.poll({ wait_seconds: 0 }, undefined, never)), requests.length];
  };
  expect(await outcome({ certificateAuthorities: certificates.ca.cert })).toEqual(['done', 1]);
  expect(await outcome({})).toEqual(['control_unreachable', 0]);
});

it('a file of another origin or another folder is never asked for, since the request carries the token', async () => {
  const { connection, requests } = await connected((response) => response.writeHead(200).end('x'));
  const file = { name: 'bundle.jws', bytes: 1, sha256: HEAD };
  const download = async (path: string) => {
    const chunks: Buffer[] = [];
    for await (const chunk of connection.download({ ...file, path }, never)) chunks.push(chunk);
    return Buffer.concat(chunks).toString();
  };
  const elsewhere = [
    'http://127.0.0.1:1/v1/targets/self/bundles/1/x',
    '//other.example/v1/targets/self/bundles/1/x',
  ];
  for (const path of [...elsewhere, '/v1/targets/self/bundle', '/v1/targets/self/bundles/../../x']) {
    expect(await codeOf(download(path))).toBe('control_answer_invalid');
  }
  expect(requests).toEqual([]);
  expect(await download('/v1/targets/self/bundles/7/bundle.jws')).toBe('x');
});
