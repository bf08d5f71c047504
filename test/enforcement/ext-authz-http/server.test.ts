/** The forward-authentication server on real sockets: who may connect, what it answers, and input that must not bring it down. */
import { once } from 'node:events';
import { connect, type Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, describe, expect, it } from '@jest/globals';
import { Registry } from 'prom-client';
import { createExtAuthzHttpMetrics } from '../../../src/enforcement/ext-authz-http/ext-authz-http-metrics.ts';
import {
  type ExtAuthzHttpOptions,
  type ExtAuthzHttpServer,
  openExtAuthzHttpServer,
} from '../../../src/enforcement/ext-authz-http/ext-authz-http-server.ts';
import { HTTP_PROFILES } from '../../../src/enforcement/ext-authz-http/profiles.ts';
import {
  parseTrustedPeers,
  type TrustedPeers,
} from '../../../src/enforcement/ext-authz-http/trusted-peers.ts';
import { headerValues, NoResponse, type WireAddress } from '../../../src/tools/conformance/wire/exchange.ts';
import {
  http1Client,
  openSocket,
  sendBytes,
  statusesUntilClosed,
} from '../../../src/tools/conformance/wire/http1.ts';
import type { RequestFacts } from '../../../src/verifier/decision/facts/request-facts.ts';
import type { Verifier } from '../../../src/verifier/verifier.ts';
import { createTestVerifier } from '../../support/fixtures/test-verifier.ts';
import { makeCertificates, type TestCertificates } from '../../support/harness/certificates.ts';
import { waitFor } from '../../support/wait.ts';

const stops: (() => unknown)[] = [];
afterEach(async () => {
  for (const stop of stops.splice(0).reverse()) await stop();
});

interface Started {
  readonly server: ExtAuthzHttpServer;
  readonly address: WireAddress;
  /** The facts of each request that was evaluated. */
  readonly seen: readonly RequestFacts[];
  readonly errors: readonly unknown[];
  metric(line: string): Promise<boolean>;
}

interface StartOptions extends Partial<Omit<ExtAuthzHttpOptions, 'verifier'>> {
  readonly verifier?: Pick<Verifier, 'check' | 'refuse'>;
}

async function start(options: StartOptions = {}): Promise<Started> {
  const registry = new Registry();
  const seen: RequestFacts[] = [];
  const errors: unknown[] = [];
  // It has no bundle, so it denies everything with 503.
  const { verifier } = createTestVerifier({});
  const recording: ExtAuthzHttpOptions['verifier'] = {
    refuse: verifier.refuse,
    awaitBody: () => ({ kind: 'awaited', caller: 'a', end: () => undefined }),
    check: (facts, call) => {
      seen.push(facts);
      return verifier.check(facts, call);
    },
  };
  const server = await openExtAuthzHttpServer({
    metrics: createExtAuthzHttpMetrics(registry),
    reader: { ...READER, profile: HTTP_PROFILES.caddy },
    listen: '127.0.0.1:0',
    tls: undefined,
    trustedPeers: trusted('127.0.0.0/8'),
    maxBodyBytes: 1000,
    maxConnections: 10,
    tracer: undefined,
    onInternalError: (error) => errors.push(error),
    ...options,
    verifier: { ...recording, ...options.verifier },
  });
  stops.push(() => server.drain(0));
  const port = Number(/:(\d+)$/.exec(server.address)?.[1]);
  return {
    server,
    address: { host: '127.0.0.1', port },
    seen,
    errors,
    metric: async (line) => (await registry.metrics()).split('\n').includes(line),
  };
}

const READER = {
  bodyMode: 'unknown',
  origin: { scheme: 'http', authority: 'api.example' },
  secret: undefined,
} as const;

function trusted(network: string): TrustedPeers {
  const peers = parseTrustedPeers([network]);
  if (!('includes' in peers)) throw new Error(`${peers.invalid} is no network`);
  return peers;
}

const ORIGINAL = [
  ['X-Forwarded-Method', 'GET'],
  ['X-Forwarded-Uri', '/v1/x'],
] as const;
const CHECK = { method: 'GET', target: '/check', authority: 'verifier', headers: ORIGINAL } as const;
const RAW = `GET /check HTTP/1.1\r\nHost: v\r\n${ORIGINAL.map((line) => line.join(': ')).join('\r\n')}\r\n\r\n`;

const ask = (
  address: WireAddress,
  request: Partial<Parameters<ReturnType<typeof http1Client>['send']>[0]> = {},
) => http1Client(address).send({ ...CHECK, ...request });

describe('who may connect', () => {
  it('closes a connection from an untrusted address without an answer', async () => {
    const { address, metric, seen } = await start({ trustedPeers: trusted('10.0.0.0/8') });
    await expect(ask(address)).rejects.toThrow(NoResponse);
    expect(seen).toEqual([]);
    expect(await metric('proofgate_http_refused_total{why="peer"} 1')).toBe(true);
  });

  it('answers one from a trusted address', async () => {
    const { address, seen } = await start();
    expect((await ask(address)).status).toBe(503);
    expect(seen.map(({ method, target }) => `${method} ${target}`)).toEqual(['GET /v1/x']);
  });

  it('closes connections over the maximum', async () => {
    const { address, metric } = await start({ maxConnections: 1 });
    const first = openSocket(address);
    stops.push(() => first.destroy());
    await once(first, 'connect');
    await expect(ask(address)).rejects.toThrow(NoResponse);
    expect(await metric('proofgate_http_refused_total{why="connections"} 1')).toBe(true);
  });

  it('answers on a socket file', async () => {
    const path = join(tmpdir(), `pg-http-${process.pid}.sock`);
    const { seen } = await start({ listen: `unix:${path}`, trustedPeers: undefined });
    const socket = connect(path);
    socket.end(RAW);
    const [head] = await once(socket, 'data');
    expect(String(head)).toMatch(/^HTTP\/1\.1 503 /);
    expect(seen).toHaveLength(1);
  });
});

describe('TLS', () => {
  let certificates: TestCertificates;
  const clientUri = 'spiffe://shop.example/gateway';
  const material = ({ ca, server }: TestCertificates) => ({
    cert: server.cert,
    key: server.key,
    clientCa: ca.cert,
  });
  const withTls = (address: WireAddress, { ca, client }: TestCertificates): WireAddress => ({
    ...address,
    tls: { ca: ca.cert, cert: client.cert, key: client.key, servername: 'verifier.example' },
  });

  async function startTls(clientNames: readonly string[]) {
    certificates = await makeCertificates('verifier.example', clientUri);
    stops.push(certificates.remove);
    return start({ trustedPeers: undefined, tls: { material: material(certificates), clientNames } });
  }

  it('answers only clients with a certificate of the CA and an accepted name', async () => {
    const { address, metric } = await startTls([clientUri]);
    expect((await ask(withTls(address, certificates))).status).toBe(503);
    const anonymous = { ...address, tls: { ca: certificates.ca.cert, servername: 'verifier.example' } };
    await expect(ask(anonymous)).rejects.toThrow(NoResponse);
    await expect(ask(address)).rejects.toThrow(NoResponse);
    await waitFor('both to be counted', () => metric('proofgate_http_refused_total{why="tls"} 2'));
  });

  it('rejects a certificate with another name', async () => {
    const { address, metric } = await startTls(['spiffe://shop.example/other']);
    await expect(ask(withTls(address, certificates))).rejects.toThrow(NoResponse);
    expect(await metric('proofgate_http_refused_total{why="client_name"} 1')).toBe(true);
  });

  it('closes idle connections when the client CA is replaced', async () => {
    const { address, server } = await startTls([]);
    const socket = openSocket(withTls(address, certificates));
    socket.write(RAW);
    await once(socket, 'data');
    const next = await makeCertificates('verifier.example', clientUri);
    stops.push(next.remove);
    const closed = once(socket, 'close');
    server.setTlsMaterial(material(next));
    await closed;
    await expect(ask(withTls(address, certificates))).rejects.toThrow(NoResponse);
    expect((await ask(withTls(address, next))).status).toBe(503);
  });
});

describe('what it answers', () => {
  it.each(['/livez', '/readyz', '/metrics', '/', '/check/v1', '/check/..', '*'])(
    '%s is no decision for it',
    async (target) => {
      const { address, metric, seen } = await start();
      const { headers, status } = await ask(address, { target });
      expect([status, headerValues(headers, 'cache-control')]).toEqual([503, ['no-store']]);
      expect(seen.map(({ method, target: path }) => [method, path])).toEqual([['', '']]);
      expect(await metric('proofgate_http_refused_total{why="path"} 1')).toBe(true);
    },
  );

  it('a problem, with the reason and what a proxy may do', async () => {
    const { address } = await start();
    const { body, headers } = await ask(address);
    expect(JSON.parse(body.toString())).toMatchObject({ status: 503, reason: 'bundle_policy_missing' });
    const value = (name: string) => headerValues(headers, name);
    expect([value('content-type'), value('x-proofgate-reason'), value('cache-control')]).toEqual([
      ['application/problem+json'],
      ['bundle_policy_missing'],
      ['no-store'],
    ]);
  });

  it('HEAD as GET, without a body', async () => {
    const { address } = await start();
    const { body, status } = await ask(address, { method: 'HEAD' });
    expect([status, body.byteLength]).toEqual([503, 0]);
  });

  it('a header that no client may send: names it, and does not evaluate', async () => {
    const { address, seen } = await start();
    const name = `X-Proofgate-${'a'.repeat(200)}`;
    const { body, status } = await ask(address, { headers: [...ORIGINAL, [name, 'v']] });
    expect([status, JSON.parse(body.toString()).detail]).toEqual([
      403,
      `header.${name.toLowerCase().slice(0, 64)}`,
    ]);
    expect(seen).toEqual([]);
  });

  it.each([
    [80, 403],
    [101, 431],
    [3_000, 431],
  ])('such a header behind %s others: %s', async (count, expected) => {
    const { address } = await start();
    const many = Array.from({ length: count }, (_, at) => [`x-${at}`, 'v'] as const);
    const { status } = await ask(address, { headers: [...ORIGINAL, ...many, ['X-Proofgate-Subject', 'v']] });
    expect(status).toBe(expected);
  });

  it('an internal error: denied', async () => {
    const broken = () => {
      throw new Error('boom');
    };
    const { address, errors } = await start({ verifier: { check: broken, refuse: broken } });
    expect((await ask(address)).status).toBe(503);
    expect(errors).toEqual([new Error('boom')]);
  });

  it('a decision that cannot be sent: denied', async () => {
    const check = () => ({
      kind: 'denied' as const,
      decisionId: 'a\r\nb',
      denial: {
        kind: 'denied' as const,
        reason: 'jti_replay' as const,
        detail: undefined,
        status: 403 as const,
      },
      routeId: undefined,
    });
    const { address, errors } = await start({ verifier: { check, refuse: check } });
    expect((await ask(address)).status).toBe(503);
    expect(errors).toHaveLength(1);
  });

  it('several requests of one connection, each on its own', async () => {
    const { address, seen } = await start();
    const statuses = await statusesUntilClosed(
      address,
      Buffer.from(`${RAW}${RAW}${RAW.replace('\r\n\r\n', '\r\nConnection: close\r\n\r\n')}`),
    );
    expect(statuses).toEqual([503, 503, 503]);
    expect(seen).toHaveLength(3);
  });
});

describe('input that is no check', () => {
  it.each([
    ['no HTTP', 'hello\r\n\r\n'],
    ['TLS', '\x16\x03\x01\x00\x05hello'],
    ['CONNECT', 'CONNECT a:1 HTTP/1.1\r\nHost: a\r\n\r\n'],
    ['an unknown method', 'FOO /check HTTP/1.1\r\nHost: a\r\n\r\n'],
    ['no Host', 'GET /check HTTP/1.1\r\n\r\n'],
    ['two lengths', 'POST /check HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\na'],
    [
      'length and chunks',
      'POST /check HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n',
    ],
    ['too many bytes of headers', `GET /check HTTP/1.1\r\nHost: a\r\nX-A: ${'a'.repeat(300_000)}\r\n\r\n`],
  ])('%s: 400, and closed', async (_, bytes) => {
    const { address, errors, seen } = await start();
    const { status } = await sendBytes(address, Buffer.from(bytes, 'latin1'), 'GET');
    expect([status, seen, errors]).toEqual([400, [], []]);
    expect((await ask(address)).status).toBe(503);
  });
});

describe('bodies', () => {
  const forwarded = { reader: { ...READER, bodyMode: 'forwarded', profile: HTTP_PROFILES.traefik } } as const;

  it('of the allowed size are exact', async () => {
    const { address, seen } = await start(forwarded);
    await ask(address, { body: 'a'.repeat(1000), framing: 'open' });
    expect(seen.map(({ body }) => body)).toEqual([{ kind: 'exact', bytes: Buffer.from('a'.repeat(1000)) }]);
  });

  it('over it are unknown, and the rest is not read', async () => {
    const { address, seen } = await start(forwarded);
    const socket = openSocket(address);
    socket.write(RAW.replace('\r\n\r\n', '\r\nContent-Length: 1000000000\r\n\r\n'));
    socket.write('a'.repeat(100_000));
    socket.on('error', () => undefined).resume();
    await once(socket, 'close');
    expect(seen.map(({ body }) => body)).toEqual([{ kind: 'unknown' }]);
  });

  it('that end early are unknown', async () => {
    const { address, errors, seen } = await start(forwarded);
    const socket = openSocket(address);
    socket.end(RAW.replace('\r\n\r\n', '\r\nContent-Length: 100\r\n\r\nabc'));
    await waitFor('the decision', () => seen.length > 0);
    expect([seen.map(({ body }) => body), errors]).toEqual([[{ kind: 'unknown' }], []]);
  });

  it('are not waited for where none are forwarded', async () => {
    const { address, seen } = await start();
    const bytes = RAW.replace('\r\n\r\n', '\r\nContent-Length: 100\r\n\r\n');
    expect((await sendBytes(address, Buffer.from(bytes), 'GET')).status).toBe(503);
    expect(seen.map(({ body }) => body)).toEqual([{ kind: 'unknown' }]);
  });
});

describe('drain', () => {
  it('closes idle connections at once and answers open requests', async () => {
    const asked: ((decision: ReturnType<typeof denied>) => void)[] = [];
    const check = () => new Promise<ReturnType<typeof denied>>((resolve) => asked.push(resolve));
    const { address, server } = await start({ verifier: { check, refuse: denied } });
    const [idle, busy] = [await opened(address), await opened(address)];
    busy.write(RAW);
    await waitFor('the request to be read', () => asked.length > 0);
    const idleClosed = once(idle, 'close');
    const response = once(busy, 'data');
    const drained = server.drain(10_000);
    await idleClosed;
    for (const answer of asked) answer(denied());
    expect(String((await response)[0])).toMatch(/^HTTP\/1\.1 403 [\s\S]*\r\nConnection: close\r\n/i);
    await drained;
    await expect(ask(address)).rejects.toThrow(NoResponse);
  });

  it('gives up after its time', async () => {
    const { address, server } = await start({
      verifier: { check: () => new Promise(() => undefined), refuse: denied },
    });
    const busy = await opened(address);
    busy.write(RAW);
    const closed = once(busy, 'close');
    await server.drain(50);
    await closed;
  });
});

function denied() {
  return {
    kind: 'denied' as const,
    decisionId: '00000000-0000-4000-8000-000000000000',
    denial: {
      kind: 'denied' as const,
      reason: 'jti_replay' as const,
      detail: undefined,
      status: 403 as const,
    },
    routeId: undefined,
  };
}

async function opened(address: WireAddress): Promise<Socket> {
  const socket = openSocket(address);
  socket.on('error', () => undefined);
  stops.push(() => socket.destroy());
  await once(socket, 'connect');
  return socket;
}
