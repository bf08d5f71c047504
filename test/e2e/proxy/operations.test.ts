/** Start, load and end of `proofgate proxy` as a process. */
import { mkdir } from 'node:fs/promises';
import { createServer } from 'node:http';
import { type AddressInfo, connect } from 'node:net';
import { join } from 'node:path';
import { afterAll, afterEach, beforeAll, expect, test } from '@jest/globals';
import {
  encodeHttp1,
  http1Client,
  sendBytes,
  statusesUntilClosed,
} from '../../../src/tools/conformance/wire/http1.ts';
import { capturedExplanation } from '../../support/harness/captured-denial.ts';
import { errorCode, runProofgate } from '../../support/harness/proofgate-command.ts';
import { derivedKeyCaller } from '../../support/site/callers.ts';
import { ROUTES } from '../../support/site/routes.ts';
import { signedRequest } from '../../support/site/signed-request.ts';
import { createSite, type Site } from '../../support/site/site.ts';
import { waitFor } from '../../support/wait.ts';
import { startProxy, startRecordedProxy } from './proxy-fixture.ts';

let site: Site;
const ends: (() => unknown)[] = [];
beforeAll(async () => {
  site = await createSite();
});
afterEach(async () => {
  for (const end of ends.splice(0)) await end();
});
afterAll(() => site?.remove());

const sign = () => signedRequest(site, { caller: derivedKeyCaller(site), route: ROUTES.readOrder });

test('SIGTERM: answers requests in progress, ends idle connections, and exits with 0', async () => {
  let answer: (() => void) | undefined;
  const server = createServer((_request, response) => {
    answer = () => response.end('late');
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  ends.push(() => server.close());
  const { port } = server.address() as AddressInfo;
  const proxy = await startProxy(site, { upstream: `http://127.0.0.1:${port}` });
  const idle = connect(proxy.address);
  let idleEnded = false;
  idle.on('close', () => {
    idleEnded = true;
  });
  const response = http1Client(proxy.address).send(sign());
  await waitFor('the request', () => answer !== undefined);
  const stopped = proxy.stop();
  await waitFor('draining', async () => (await proxy.process.probe('/readyz')).status === 503);
  answer?.();
  expect((await response).body.toString()).toBe('late');
  await stopped;
  await waitFor('the end of the idle connection', () => idleEnded);
});

test('--capture-denied explains what the proxy denied', async () => {
  const directory = join(site.directory, 'denied');
  await mkdir(directory);
  const proxy = await startRecordedProxy(site, { flags: ['--capture-denied', directory] });
  ends.push(proxy.stop);
  const { status } = await http1Client(proxy.address).send({ ...sign(), target: '/v1/orders/0' });
  expect(status).toBe(403);
  expect(await capturedExplanation(directory)).toMatchObject({
    decision: { reason: 'request_binding_mismatch', detail: 'target' },
    recorded: { comparison: 'agrees' },
  });
});

test('1,000 idle connections do not keep others from being served; more than the maximum are closed', async () => {
  const proxy = await startRecordedProxy(site, { flags: ['--max-connections', '1010'] });
  ends.push(proxy.stop);
  const idle = Array.from({ length: 1_000 }, () => connect(proxy.address).on('error', () => undefined));
  await waitFor('all connections', async () => {
    const { text } = await proxy.process.probe('/metrics');
    return /^proofgate_proxy_connections 1000$/m.test(text);
  });
  expect((await http1Client(proxy.address).send(sign())).status).toBe(200);
  idle.push(...Array.from({ length: 20 }, () => connect(proxy.address).on('error', () => undefined)));
  await waitFor('rejected connections', async () => {
    const { text } = await proxy.process.probe('/metrics');
    return /^proofgate_proxy_refused_total\{why="connections"\} \d+$/m.test(text);
  });
  for (const socket of idle) socket.destroy();
});

const flood = (lines: number, lengthBytes: number) =>
  Array.from({ length: lines }, (_, index): [string, string] => [`x-${index}`, 'v'.repeat(lengthBytes)]);

test.each([
  ['more than 100 lines', () => encodeHttp1({ ...sign(), headers: flood(101, 1) }), 431],
  ['more than 64 KiB', () => encodeHttp1({ ...sign(), headers: flood(70, 1_000) }), 431],
  ['one line without end', () => Buffer.from(`GET / HTTP/1.1\r\nHost: a\r\nX: ${'x'.repeat(100_000)}`), 431],
  ['no HTTP', () => Buffer.from('\x16\x03\x01\x00\xa5\r\n\r\n'), 400],
  ['a length beside a coding', () => framed('Content-Length: 5\r\nTransfer-Encoding: chunked'), 400],
  ['another coding', () => framed('Transfer-Encoding: gzip, chunked'), 400],
  ['HTTP/1.0', () => Buffer.from('GET / HTTP/1.0\r\nHost: a\r\n\r\n'), 505],
  ['CONNECT', () => Buffer.from('CONNECT a:1 HTTP/1.1\r\nHost: a\r\n\r\n'), 400],
] as const)('%s: a problem, and the connection ends or serves on', async (_name, bytes, status) => {
  const proxy = await shared();
  const response = await sendBytes(proxy.address, bytes(), 'GET');
  expect(response.status).toBe(status);
  expect(JSON.parse(response.body.toString()).type).toMatch(/^urn:proofgate:fault:/);
  expect(proxy.upstream.requests).toEqual([]);
});

const framed = (lines: string) =>
  Buffer.from(`POST /v1/orders HTTP/1.1\r\nHost: api.shop.example\r\n${lines}\r\n\r\n0\r\n\r\n`);

let recorded: ReturnType<typeof startRecordedProxy> | undefined;
function shared() {
  recorded ??= startRecordedProxy(site);
  return recorded;
}
afterAll(async () => (await recorded)?.stop());

test('requests behind each other on one connection are answered in order', async () => {
  const proxy = await shared();
  proxy.upstream.clear();
  const denied = Buffer.from('GET / HTTP/1.1\r\nHost: a\r\n\r\n');
  const last = Buffer.from('GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n');
  const bytes = Buffer.concat([encodeHttp1(sign()), denied, encodeHttp1(sign()), last]);
  expect(await statusesUntilClosed(proxy.address, bytes)).toEqual([200, 403, 200, 403]);
  expect(proxy.upstream.requests).toHaveLength(2);
});

test.each([
  [['--upstream', 'ftp://127.0.0.1'], 'bad_upstream'],
  [['--upstream', 'http://127.0.0.1/path'], 'bad_upstream'],
  [['--upstream', 'http://user:secret@127.0.0.1'], 'bad_upstream'],
  [['--upstream', 'http://127.0.0.1', '--upstream-host', 'A b'], 'bad_upstream'],
  [['--upstream', 'http://127.0.0.1', '--upstream-server-name', 'a.example'], 'upstream_not_https'],
  [['--upstream', 'http://127.0.0.1', '--spool-dir', '/nowhere'], 'spool_dir_unusable'],
  [['--upstream', 'http://127.0.0.1', '--tls-cert-file', 'a.crt'], 'tls_pair_incomplete'],
  [['--upstream', 'http://127.0.0.1', '--listen', 'nonsense'], 'bad_address'],
  [[], 'flag_required'],
])('with %j it ends with %s', async (flags, code) => {
  const usual = ['--auth-site', 'a', '--bundle', site.directory, '--bundle-key', site.bundleKeyFile];
  const listen = flags.includes('--listen') ? [] : ['--listen', ':0'];
  const state = ['--state-dir', site.directory, '--replay', 'memory'];
  const result = await runProofgate(['proxy', ...usual, ...state, ...listen, ...flags]);
  expect({ code: errorCode(result), exit: result.exitCode }).toEqual({ code, exit: 2 });
});
