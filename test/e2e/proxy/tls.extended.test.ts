/** TLS of `proofgate proxy`: of its listener, and to the upstream. */
import { copyFile } from 'node:fs/promises';
import { createServer as createPlainServer, type IncomingMessage, type ServerResponse } from 'node:http';
import { createServer, type ServerOptions } from 'node:https';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { connect as connectTls, type TLSSocket } from 'node:tls';
import { afterAll, afterEach, beforeAll, describe, expect, it, test } from '@jest/globals';
import type { WireRequest } from '../../../src/tools/conformance/wire/exchange.ts';
import { http1Client } from '../../../src/tools/conformance/wire/http1.ts';
import { http2Client } from '../../../src/tools/conformance/wire/http2.ts';
import { makeCertificates, type TestCertificates } from '../../support/harness/certificates.ts';
import { derivedKeyCaller } from '../../support/site/callers.ts';
import { ROUTES } from '../../support/site/routes.ts';
import { signedRequest } from '../../support/site/signed-request.ts';
import { createSite, type Site } from '../../support/site/site.ts';
import { waitFor } from '../../support/wait.ts';
import { type RunningProxy, startProxy, startRecordedProxy } from './proxy-fixture.ts';

const HOST = 'api.shop.example';
const CLIENT = 'spiffe://shop.example/gateway';
const CLIENTS = [
  ['HTTP/1.1', http1Client],
  ['HTTP/2', http2Client],
] as const;

let site: Site;
let certificates: TestCertificates;
let others: TestCertificates;
const ends: (() => unknown)[] = [];

beforeAll(async () => {
  [site, certificates, others] = await Promise.all([
    createSite(),
    makeCertificates(HOST, CLIENT, ['127.0.0.1']),
    makeCertificates(HOST, CLIENT),
  ]);
});
afterEach(async () => {
  for (const end of ends.splice(0)) await end();
});
afterAll(async () => {
  await certificates?.remove();
  await others?.remove();
  await site?.remove();
});

const sign = (scheme: 'http' | 'https'): WireRequest => ({
  ...signedRequest(site, { caller: derivedKeyCaller(site), route: ROUTES.readOrder, transcript: { scheme } }),
  scheme,
});

async function started<P extends RunningProxy>(proxy: Promise<P>): Promise<P> {
  const running = await proxy;
  ends.push(running.stop);
  return running;
}

describe('the listener', () => {
  it('serves HTTP/1.1 and HTTP/2 by ALPN, reloads its certificate, and requires client certificates', async () => {
    const [certFile, keyFile] = [join(site.directory, 'tls.crt'), join(site.directory, 'tls.key')];
    await copyFile(certificates.server.certPath, certFile);
    await copyFile(certificates.server.keyPath, keyFile);
    const { cert, key } = certificates.client;
    const ca = [certificates.ca.cert, others.ca.cert];
    const proxy = await started(
      startRecordedProxy(site, {
        tls: { ca, cert, key, servername: HOST },
        flags: [
          ...['--tls-cert-file', certFile, '--tls-key-file', keyFile],
          ...['--tls-client-ca-file', certificates.ca.certPath, '--tls-client-san', CLIENT],
        ],
      }),
    );
    for (const [, client] of CLIENTS) {
      expect((await client(proxy.address).send(sign('https'))).status).toBe(200);
      // Signed for another scheme than that of the connection.
      expect((await client(proxy.address).send({ ...sign('http'), scheme: 'https' })).status).toBe(403);
      await expect(
        client({ ...proxy.address, tls: { ca, servername: HOST } }).send(sign('https')),
      ).rejects.toThrow();
    }
    await copyFile(others.server.keyPath, keyFile);
    await copyFile(others.server.certPath, certFile);
    const { host, port } = proxy.address;
    await waitFor('the new certificate', () => {
      return new Promise<boolean>((resolve) => {
        const socket: TLSSocket = connectTls({
          host,
          port,
          ca: [others.ca.cert],
          cert,
          key,
          servername: HOST,
        });
        socket.on('secureConnect', () => {
          socket.destroy();
          resolve(true);
        });
        socket.on('error', () => resolve(false));
      });
    });
    expect((await http2Client(proxy.address).send(sign('https'))).status).toBe(200);
  });
});

interface SeenUpstream {
  readonly port: number;
  readonly seen: {
    host: string | undefined;
    servername: string | false | undefined;
    client: string | undefined;
  }[];
}

async function tlsUpstream(options: ServerOptions): Promise<SeenUpstream> {
  const seen: SeenUpstream['seen'] = [];
  const server = createServer(options, (request: IncomingMessage, response: ServerResponse) => {
    const socket = request.socket as TLSSocket & { readonly servername?: string | false };
    const client = socket.getPeerX509Certificate()?.subjectAltName;
    seen.push({ host: request.headers.host, servername: socket.servername, client });
    response.end('ok');
  });
  const port = await new Promise<number>((resolve) => {
    server.listen(0, '127.0.0.1', () => resolve((server.address() as AddressInfo).port));
  });
  ends.push(() => {
    server.closeAllConnections();
    server.close();
  });
  return { port, seen };
}

describe('the connection to the upstream', () => {
  const open = (port: number, flags: readonly string[]) =>
    started(startProxy(site, { upstream: `https://127.0.0.1:${port}`, flags }));

  it('verifies the certificate, presents a client certificate, and sends the configured name', async () => {
    const { cert, key } = certificates.server;
    const upstream = await tlsUpstream({ cert, key, ca: certificates.ca.cert, requestCert: true });
    const proxy = await open(upstream.port, [
      ...['--upstream-ca-file', certificates.ca.certPath, '--upstream-server-name', HOST],
      ...['--upstream-cert-file', certificates.client.certPath],
      ...['--upstream-key-file', certificates.client.keyPath, '--upstream-host', 'orders.internal'],
    ]);
    expect((await http1Client(proxy.address).send(sign('http'))).status).toBe(200);
    expect(upstream.seen).toEqual([{ host: 'orders.internal', servername: HOST, client: `URI:${CLIENT}` }]);
  });

  it('checks an address against the certificate, whatever Host the request has', async () => {
    const { cert, key } = certificates.server;
    const upstream = await tlsUpstream({ cert, key });
    const proxy = await open(upstream.port, ['--upstream-ca-file', certificates.ca.certPath]);
    expect((await http1Client(proxy.address).send(sign('http'))).status).toBe(200);
    expect(upstream.seen).toEqual([{ host: HOST, servername: false, client: undefined }]);
  });

  it.each([
    ['of another CA', () => [certificates, others] as const, []],
    ['without the address', () => [others, others] as const, []],
    [
      'for another name',
      () => [certificates, certificates] as const,
      ['--upstream-server-name', 'other.example'],
    ],
  ])('a certificate %s is 502, and the upstream sees no request', async (_name, pair, flags) => {
    const [served, trusted] = pair();
    const { cert, key } = served.server;
    const upstream = await tlsUpstream({ cert, key });
    const proxy = await open(upstream.port, ['--upstream-ca-file', trusted.ca.certPath, ...flags]);
    const response = await http1Client(proxy.address).send(sign('http'));
    expect(response.status).toBe(502);
    expect(response.body.toString()).toContain('upstream_unreachable');
    expect(upstream.seen).toEqual([]);
    await waitFor('the reason in the log', async () => {
      const log = (await proxy.process.outputs()).get('the log') ?? '';
      return /"code":"[A-Z_]+","msg":"cannot connect to the upstream/.test(log) || undefined;
    });
  });
});

test('an upstream on a Unix socket', async () => {
  const path = join(site.directory, 'up.sock');
  const server = createPlainServer((request, response) => response.end(request.url));
  await new Promise<void>((resolve) => server.listen(path, resolve));
  ends.push(() => {
    server.closeAllConnections();
    server.close();
  });
  const proxy = await started(startProxy(site, { upstream: `unix:${path}` }));
  const response = await http1Client(proxy.address).send(sign('http'));
  expect(response.body.toString()).toBe('/v1/orders/4711');
});

test('behind a load balancer that ends TLS, --external-origin names what is signed', async () => {
  const proxy = await started(startRecordedProxy(site, { flags: ['--external-origin', `https://${HOST}`] }));
  for (const [, client] of CLIENTS) {
    const request = { ...sign('https'), scheme: 'http', authority: 'internal.example' };
    expect((await client(proxy.address).send(request)).status).toBe(200);
  }
  const hosts = proxy.upstream.requests.map(({ headers }) => headers.find(([name]) => name === 'host')?.[1]);
  expect(hosts).toEqual([HOST, HOST]);
});
