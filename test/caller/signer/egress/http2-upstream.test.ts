/** How the egress proxy uses HTTP/2 connections to an upstream: limits, ends, resets, and what it never sends twice. */
import { request as httpRequest, type IncomingMessage } from 'node:http';
import {
  constants,
  createSecureServer,
  type Http2Session,
  type IncomingHttpHeaders,
  type SecureServerOptions,
  type ServerHttp2Session,
  type ServerHttp2Stream,
} from 'node:http2';
import { createServer as createHttpsServer } from 'node:https';
import type { AddressInfo, Socket } from 'node:net';
import { createServer as createTlsServer } from 'node:tls';
import { afterAll, afterEach, beforeAll, describe, expect, it } from '@jest/globals';
import { http1Client } from '../../../../src/tools/conformance/wire/http1.ts';
import { type EgressOptions, useEgress } from '../../../support/caller/egress-fixture.ts';
import { makeCertificates, type TestCertificates } from '../../../support/harness/certificates.ts';
import { freePort } from '../../../support/harness/free-port.ts';
import {
  encodeFrame,
  FLAG,
  type Frame,
  PREFACE,
  readFrames,
  TYPE,
} from '../../../support/hostile/http2-frames.ts';
import { useProxies } from '../../../support/points/proxy-fixture.ts';
import { AUTHORITY } from '../../../support/site/routes.ts';
import { waitFor } from '../../../support/wait.ts';

const proxies = useProxies();
const egressTo = useEgress();
let certificates: TestCertificates;
beforeAll(async () => {
  certificates = await makeCertificates(AUTHORITY, 'spiffe://shop.example/a');
});
afterAll(() => certificates.remove());
const ends: (() => void)[] = [];
afterEach(() => {
  for (const end of ends.splice(0)) end();
});

const pair = () => ({ cert: certificates.server.cert, key: certificates.server.key });

interface Listening {
  listen(port: number, host: string, then: () => void): unknown;
  on(event: 'connection', listener: (socket: Socket) => void): unknown;
  address(): unknown;
  close(): unknown;
}

/** Listens until the end of the test, or until `stop`, which also ends its connections. */
async function start(server: Listening, port?: number): Promise<{ port: number; stop: () => void }> {
  const sockets = new Set<Socket>();
  server.on('connection', (socket) => {
    sockets.add(socket);
    socket.on('error', () => undefined);
  });
  const taken = port ?? (await freePort());
  await new Promise<void>((resolve) => server.listen(taken, '127.0.0.1', resolve));
  const stop = () => {
    server.close();
    for (const socket of sockets) socket.destroy();
  };
  ends.push(stop);
  return { port: (server.address() as AddressInfo).port, stop };
}

type OnStream = (stream: ServerHttp2Stream, headers: IncomingHttpHeaders, lines: readonly string[]) => void;

function http2Server(onStream: OnStream, options: SecureServerOptions = {}) {
  const server = createSecureServer({ ...pair(), ...options });
  const sessions: ServerHttp2Session[] = [];
  server.on('session', (session: ServerHttp2Session) => {
    sessions.push(session);
    session.on('error', () => undefined);
  });
  server.on('sessionError', () => undefined);
  server.on(
    'stream',
    (stream: ServerHttp2Stream, headers: IncomingHttpHeaders, _flags: number, lines: string[]) => {
      stream.on('error', () => undefined);
      onStream(stream, headers, lines);
    },
  );
  return { server, sessions };
}

const egressToPort = (port: number, options: EgressOptions = {}) =>
  egressTo(`https://127.0.0.1:${port}`, proxies.site, { caPem: certificates.ca.cert, ...options });

/** The egress proxy in front of an HTTP/2 API without a verifier. */
async function open(onStream: OnStream, options: EgressOptions & { server?: SecureServerOptions } = {}) {
  const { server, sessions } = http2Server(onStream, options.server);
  const { port } = await start(server);
  return { egress: await egressToPort(port, options), sessions };
}

const typeOf = async (response: Response) =>
  (JSON.parse(await response.text()) as { type: string }).type.replace('urn:proofgate:fault:', '');

const answer = (stream: ServerHttp2Stream) => {
  stream.respond({ ':status': 200 });
  stream.end('ok');
};

/** Gets a response without its body. */
const begin = (url: string, headers = {}): Promise<IncomingMessage> =>
  new Promise((resolve, reject) => {
    httpRequest(url, { headers }, resolve).on('error', reject).end();
  });

it('sends what it signed: target, authority and header lines, without those of one connection', async () => {
  let received: readonly string[] = [];
  const { egress } = await open((stream, _headers, lines) => {
    received = lines;
    answer(stream);
  });
  const response = await http1Client(egress.address).send({
    method: 'GET',
    target: '/v1/orders/4711?full=1&a=%20&b=~%2F',
    authority: egress.url.replace('http://', ''),
    headers: [
      ['X-Many', 'a'],
      ['X-Bytes', 'caf\u00e9'],
      ['X-Many', 'b'],
      ['Keep-Alive', 'timeout=5'],
      ['Proxy-Connection', 'keep-alive'],
      ['TE', 'gzip'],
    ],
  });
  expect(response.status).toBe(200);
  const valuesOf = (name: string) => received.filter((_, at) => at % 2 === 1 && received[at - 1] === name);
  expect(valuesOf(':path')).toEqual(['/v1/orders/4711?full=1&a=%20&b=~%2F']);
  expect([valuesOf(':authority'), valuesOf(':scheme'), valuesOf('host')]).toEqual([
    [AUTHORITY],
    ['https'],
    [],
  ]);
  expect([valuesOf('x-many'), valuesOf('x-bytes')]).toEqual([['a', 'b'], ['caf\u00e9']]);
  for (const name of ['connection', 'keep-alive', 'proxy-connection', 'te'])
    expect(valuesOf(name)).toEqual([]);
});

it('refuses header lines that it cannot repeat over HTTP/2', async () => {
  let arrived = 0;
  const { egress } = await open((stream) => {
    arrived += 1;
    answer(stream);
  });
  const response = await http1Client(egress.address).send({
    method: 'GET',
    target: '/v1/orders/1',
    authority: egress.url.replace('http://', ''),
    headers: [
      ['Referer', 'http://a/'],
      ['Referer', 'http://b/'],
    ],
  });
  expect([response.status, arrived]).toEqual([400, 0]);
  expect(response.body.toString()).toContain('request_not_forwardable');
});

it('passes on header lines, trailers and the status of a response', async () => {
  const { egress } = await open((stream) => {
    stream.respond({ ':status': 203, 'set-cookie': ['a=1', 'b=2'] }, { waitForTrailers: true });
    stream.on('wantTrailers', () => stream.sendTrailers({ 'x-sum': '7', authorization: 'no' }));
    stream.end('ok');
  });
  const response = await begin(`${egress.url}/v1/orders/1`, { te: 'trailers' });
  const chunks = await response.toArray();
  expect([response.statusCode, chunks.join('')]).toEqual([203, 'ok']);
  expect(response.headers['set-cookie']).toEqual(['a=1', 'b=2']);
  expect(response.trailers).toEqual({ 'x-sum': '7' });
});

describe('limits', () => {
  it('opens no more streams than the upstream allows, and no more connections than it may', async () => {
    const held: ServerHttp2Stream[] = [];
    let isHolding = true;
    const { egress, sessions } = await open((stream) => (isHolding ? held.push(stream) : answer(stream)), {
      server: { settings: { maxConcurrentStreams: 2 } },
      maxConnections: 3,
    });
    const answers = Array.from({ length: 20 }, () => fetch(`${egress.url}/v1/orders/1`));
    await waitFor('the streams', () => held.length === 6 || undefined);
    isHolding = false;
    for (const stream of held) answer(stream);
    expect((await Promise.all(answers)).map(({ status }) => status)).toEqual(Array(20).fill(200));
    expect([held.length, sessions.length]).toEqual([6, 3]);
  });

  it('answers upstream_busy without a free stream, and does not send the request later', async () => {
    const arrived: ServerHttp2Stream[] = [];
    const { egress } = await open((stream) => arrived.push(stream), {
      server: { settings: { maxConcurrentStreams: 1 } },
      maxConnections: 1,
      // Also for the connection, which takes a while on a busy machine.
      limits: { queueTimeoutMs: 1_000 },
    });
    const first = fetch(`${egress.url}/v1/orders/1`);
    await waitFor('the first request', () => arrived[0]);
    const second = await fetch(`${egress.url}/v1/orders/2`);
    expect([second.status, await typeOf(second)]).toEqual([503, 'upstream_busy']);
    for (const stream of arrived.splice(0)) answer(stream);
    expect((await first).status).toBe(200);
    const third = fetch(`${egress.url}/v1/orders/3`);
    const stream = await waitFor('the third request', () => arrived[0]);
    answer(stream);
    expect([(await third).status, arrived.length]).toEqual([200, 1]);
  });

  it('does not read on while the application does not, and serves others meanwhile', async () => {
    const TOTAL = 33_554_432;
    let sentBytes = 0;
    const { egress } = await open((stream, headers) => {
      if (headers[':path'] !== '/v1/orders/big') return answer(stream);
      stream.respond({ ':status': 200 });
      const chunk = Buffer.alloc(65_536);
      const send = () => {
        if (sentBytes === TOTAL) return void stream.end();
        sentBytes += chunk.length;
        stream.write(chunk, send);
      };
      send();
    });
    const response = await begin(`${egress.url}/v1/orders/big`);
    for (let count = 0; count < 50; count += 1) {
      expect((await fetch(`${egress.url}/v1/orders/1`)).status).toBe(200);
    }
    expect(sentBytes).toBeLessThan(TOTAL / 2);
    let bytes = 0;
    for await (const chunk of response) bytes += (chunk as Buffer).length;
    expect(bytes).toBe(TOTAL);
  });
});

describe('the end of a connection', () => {
  it.each<[string, (session: Http2Session) => void]>([
    ['GOAWAY and the rest of the responses', (session) => session.close()],
    ['GOAWAY with an error', (session) => session.goaway(constants.NGHTTP2_INTERNAL_ERROR)],
    ['no GOAWAY', (session) => session.destroy()],
  ])(
    'under load, with %s: no proof arrives twice, and each request is answered',
    async (_name, endSession) => {
      const REQUESTS = 400;
      const proofs: (string | undefined)[] = [];
      const { egress, sessions } = await open((stream, headers) => {
        proofs.push(String(headers['x-proofgate-signature']));
        const { session } = stream;
        if (proofs.length % 50 === 0 && session !== undefined) endSession(session);
        const path = headers[':path'];
        setImmediate(() => {
          if (stream.destroyed) return;
          stream.respond({ ':status': 200 });
          stream.end(path);
        });
      });
      const statuses = new Map<number, number>();
      let next = 0;
      const worker = async () => {
        while (next < REQUESTS) {
          const path = `/v1/orders/${next}`;
          next += 1;
          const response = await fetch(`${egress.url}${path}`);
          statuses.set(response.status, (statuses.get(response.status) ?? 0) + 1);
          // A response that has begun may break off.
          if (response.status === 200)
            expect([path, 'broken']).toContain(await response.text().catch(() => 'broken'));
          else expect([response.status, await typeOf(response)]).toEqual([502, 'upstream_closed']);
        }
      };
      await Promise.all(Array.from({ length: 32 }, worker));
      const answered = statuses.get(200) ?? 0;
      expect(answered + (statuses.get(502) ?? 0)).toBe(REQUESTS);
      expect(new Set(egress.signed.map(({ jti }) => jti)).size).toBe(REQUESTS);
      expect(new Set(proofs).size).toBe(proofs.length);
      expect(proofs.length).toBeGreaterThanOrEqual(answered);
      expect(sessions.length).toBeGreaterThan(4);
      expect(answered).toBeGreaterThan(REQUESTS / 4);
    },
  );

  it('uses HTTP/1.1 or HTTP/2, as the upstream selects for each connection', async () => {
    const first = await start(http2Server(answer).server);
    const { url } = await egressToPort(first.port);
    const protocol = async () => {
      const response = await fetch(`${url}/v1/orders/1`);
      return response.status === 200 ? response.headers.get('via') : undefined;
    };
    expect(await protocol()).toBe('2.0 proofgate');
    first.stop();
    const second = createHttpsServer(pair(), (_request, response) => response.end('ok'));
    const { stop } = await start(second, first.port);
    await waitFor('HTTP/1.1', async () => (await protocol()) === '1.1 proofgate' || undefined);
    stop();
    await start(http2Server(answer).server, first.port);
    await waitFor('HTTP/2', async () => (await protocol()) === '2.0 proofgate' || undefined);
  });

  it('leaves a connection on which a response does not come in time', async () => {
    let requests = 0;
    const { egress, sessions } = await open(
      (stream) => {
        requests += 1;
        if (requests > 1) answer(stream);
      },
      { responseTimeoutMs: 300 },
    );
    const late = await fetch(`${egress.url}/v1/orders/1`);
    expect([late.status, await typeOf(late)]).toEqual([504, 'upstream_timeout']);
    expect((await fetch(`${egress.url}/v1/orders/1`)).status).toBe(200);
    expect(sessions.length).toBe(2);
  });

  it('leaves a connection that is in error, which Node.js does not report', async () => {
    // An index that HPACK does not have (RFC 7541 section 6.1).
    const egress = await openFrames([{ ...OK, payload: Buffer.of(0x80) }], { responseTimeoutMs: 300 });
    const response = await fetch(`${egress.url}/v1/orders/1`);
    expect([response.status, await typeOf(response)]).toEqual([504, 'upstream_timeout']);
  });

  it('resets the stream when the application leaves, and keeps the connection', async () => {
    let code: number | undefined;
    const { egress, sessions } = await open((stream, headers) => {
      if (headers[':path'] === '/v1/orders/2') return answer(stream);
      stream.respond({ ':status': 200, 'content-type': 'text/event-stream' });
      stream.write('data: 1\n\n');
      stream.on('close', () => {
        code = stream.rstCode;
      });
    });
    (await begin(`${egress.url}/v1/orders/1`)).destroy();
    await waitFor('the reset', () => code === constants.NGHTTP2_CANCEL || undefined);
    expect((await fetch(`${egress.url}/v1/orders/2`)).status).toBe(200);
    expect(sessions.length).toBe(1);
  });

  it('passes on a response that comes before the upstream has read the body', async () => {
    let code: number | undefined;
    const { egress } = await open((stream) => {
      stream.respond({ ':status': 413 });
      stream.end('too large');
      stream.on('close', () => {
        code = stream.rstCode;
      });
    });
    const response = await fetch(`${egress.url}/v1/orders`, {
      method: 'POST',
      body: Buffer.alloc(5_000_000),
    });
    expect([response.status, await response.text()]).toEqual([413, 'too large']);
    await waitFor('the end of the stream', () => code !== undefined || undefined);
  });
});

/** An upstream that answers each HEADERS with the given frames. */
async function openFrames(frames: readonly Frame[], options: EgressOptions = {}) {
  const settings = encodeFrame({ type: TYPE.settings, flags: 0, stream: 0, payload: Buffer.alloc(0) });
  const server = createTlsServer({ ...pair(), ALPNProtocols: ['h2'] }, (socket) => {
    socket.on('error', () => undefined);
    socket.write(settings);
    let received = Buffer.alloc(0);
    let offset = PREFACE.length;
    socket.on('data', (chunk: Buffer) => {
      received = Buffer.concat([received, chunk]);
      const read = readFrames(received.subarray(offset));
      offset += read.lengthBytes;
      for (const { stream, type } of read.frames) {
        if (type !== TYPE.headers) continue;
        for (const frame of frames) socket.write(encodeFrame({ ...frame, stream: frame.stream && stream }));
      }
    });
  });
  const { port } = await start(server);
  return egressToPort(port, options);
}

/** `:status: 200` (RFC 7541 appendix A). */
const OK = { type: TYPE.headers, flags: FLAG.endHeaders, stream: 1, payload: Buffer.of(0x88) };
const PART = { type: TYPE.data, flags: 0, stream: 1, payload: Buffer.from('a part') };
const reset = (code: number) => ({
  type: TYPE.reset,
  flags: 0,
  stream: 1,
  payload: Buffer.of(0, 0, 0, code),
});
/** With the last stream that the upstream serves. */
const goaway = (lastStream: number) => ({
  type: TYPE.goaway,
  flags: 0,
  stream: 0,
  payload: Buffer.of(0, 0, 0, lastStream, 0, 0, 0, 0),
});

it('takes a response of the announced length as complete, without an end of the stream', async () => {
  // `content-length: 6` after the status.
  const head = { ...OK, payload: Buffer.of(0x88, 0x0f, 0x0d, 0x01, 0x36) };
  const egress = await openFrames([head, PART, reset(constants.NGHTTP2_NO_ERROR)]);
  expect(await (await fetch(`${egress.url}/v1/orders/1`)).text()).toBe('a part');
});

describe('a response that breaks off', () => {
  it.each([
    ['NO_ERROR, as Envoy resets', reset(constants.NGHTTP2_NO_ERROR)],
    ['CANCEL', reset(constants.NGHTTP2_CANCEL)],
    ['INTERNAL_ERROR', reset(constants.NGHTTP2_INTERNAL_ERROR)],
  ])('does not look complete: %s', async (_name, frame) => {
    const egress = await openFrames([OK, PART, frame]);
    const whole = fetch(`${egress.url}/v1/orders/1`).then((response) => response.text());
    await expect(whole).rejects.toThrow();
    expect(await egress.metric('proofgate_signer_upstream_failures_total')).toBe(1);
  });

  it.each([
    ['upstream_closed', 'a reset', [reset(constants.NGHTTP2_REFUSED_STREAM)]],
    ['upstream_closed', 'a reset without an error', [reset(constants.NGHTTP2_NO_ERROR)]],
    ['upstream_closed', 'GOAWAY before the stream', [goaway(0)]],
    ['upstream_response_invalid', 'two statuses', [{ ...OK, payload: Buffer.of(0x88, 0x88) }]],
    // `accept-encoding: gzip, deflate`.
    ['upstream_response_invalid', 'no status', [{ ...OK, payload: Buffer.of(0x90) }]],
  ])('is %s before it has begun: %s', async (code, _name, frames) => {
    const egress = await openFrames(frames);
    const response = await fetch(`${egress.url}/v1/orders/1`);
    expect([response.status, await typeOf(response)]).toEqual([502, code]);
  });

  it('is invalid with headers above 64 KiB', async () => {
    const large = Object.fromEntries(Array.from({ length: 70 }, (_, at) => [`x-${at}`, 'a'.repeat(1_000)]));
    const { egress } = await open(
      (stream) => {
        stream.respond({ ':status': 200, ...large });
        stream.end('ok');
      },
      { server: { maxSendHeaderBlockLength: 200_000 } },
    );
    const response = await fetch(`${egress.url}/v1/orders/1`);
    expect([response.status, await typeOf(response)]).toEqual([502, 'upstream_response_invalid']);
  });
});

it('closes its connections when it drains', async () => {
  const { egress, sessions } = await open(answer);
  expect((await fetch(`${egress.url}/v1/orders/1`)).status).toBe(200);
  await egress.server.drain(1_000);
  await waitFor('the end of the connection', () => sessions[0]?.destroyed || undefined);
});
