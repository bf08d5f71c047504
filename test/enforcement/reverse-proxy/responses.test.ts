/** What clients get of the upstream's responses, over HTTP/1.1 and HTTP/2. */
import { connect as connectHttp2 } from 'node:http2';
import { connect } from 'node:net';
import { describe, expect, it, test } from '@jest/globals';
import { headerValues, NoResponse } from '../../../src/tools/conformance/wire/exchange.ts';
import { encodeHttp1, http1Client } from '../../../src/tools/conformance/wire/http1.ts';
import { http2Client, requestLines } from '../../../src/tools/conformance/wire/http2.ts';
import { useProxies, useUpstreams, withRoutes } from '../../support/points/proxy-fixture.ts';
import { ROUTES } from '../../support/site/routes.ts';
import { waitFor } from '../../support/wait.ts';

const proxies = useProxies();
const upstreamWith = useUpstreams();
const read = () => proxies.sign({ route: ROUTES.readOrder });

describe.each([
  ['HTTP/1.1', http1Client],
  ['HTTP/2', http2Client],
] as const)('%s', (_protocol, client) => {
  it('passes a long body on, repeated headers apart, and hop-by-hop headers not', async () => {
    const body = Buffer.alloc(5_000_000, 'abcdefgh');
    const upstream = await upstreamWith((_request, response) => {
      response.writeHead(
        201,
        [
          ...[
            'Set-Cookie',
            'a=1',
            'Set-Cookie',
            'b=2',
            'X-Caf\u00e9',
            'caf\u00e9',
            'Keep-Alive',
            'timeout=9',
          ],
          ...['Connection', 'keep-alive, x-private', 'X-Private', '1'],
        ].map((text) => text.replace('X-Caf\u00e9', 'X-Cafe')),
      );
      response.end(body);
    });
    const { address } = await proxies.open(upstream.url);
    const response = await client(address).send(read());
    expect(response.status).toBe(201);
    expect(response.body.equals(body)).toBe(true);
    expect(headerValues(response.headers, 'set-cookie')).toEqual(['a=1', 'b=2']);
    expect(headerValues(response.headers, 'x-private')).toEqual([]);
    expect(headerValues(response.headers, 'via')).toEqual(['1.1 proofgate']);
  });

  it('passes no headers of a denial on', async () => {
    const upstream = await upstreamWith((_request, response) => {
      response.writeHead(403, {
        'X-Proofgate-Reason': 'jti_replay',
        'X-Proofgate-Decision-Id': '1',
        'x-own': '1',
      });
      response.end();
    });
    const { address } = await proxies.open(upstream.url);
    const { headers, status } = await client(address).send(read());
    expect(status).toBe(403);
    expect(headers.map(([name]) => name).filter((name) => name.startsWith('x-'))).toEqual(['x-own']);
  });

  it.each([204, 304])('passes %d on, without a body', async (status) => {
    const upstream = await upstreamWith((_request, response) =>
      response.writeHead(status, { etag: '"1"' }).end(),
    );
    const { address } = await proxies.open(upstream.url);
    const response = await client(address).send(read());
    expect(response).toMatchObject({ status, body: Buffer.alloc(0) });
    expect(headerValues(response.headers, 'etag')).toEqual(['"1"']);
  });

  it('passes the response to HEAD on, with its length', async () => {
    const before = proxies.snapshot;
    proxies.snapshot = withRoutes(before, (route) => route, 'HEAD');
    const upstream = await upstreamWith((_request, response) =>
      response.writeHead(200, { 'content-length': 9 }).end(),
    );
    const { address } = await proxies.open(upstream.url);
    const request = proxies.sign({ route: { ...ROUTES.readOrder, method: 'HEAD' } as never });
    const response = await client(address).send(request);
    expect(response.status).toBe(200);
    expect(headerValues(response.headers, 'content-length')).toEqual(['9']);
    proxies.snapshot = before;
  });

  it('passes no interim response of the upstream on', async () => {
    const upstream = await upstreamWith((_request, response) => {
      response.writeEarlyHints({ link: '</a.css>; rel=preload' });
      response.end('done');
    });
    const { address } = await proxies.open(upstream.url);
    expect((await client(address).send(read())).body.toString()).toBe('done');
  });

  it.each([600, 999])('answers 502 upstream_response_invalid to status %d, and goes on', async (status) => {
    const upstream = await upstreamWith((_request, response) => response.writeHead(status).end());
    const { address, metric } = await proxies.open(upstream.url);
    for (let time = 1; time <= 2; time += 1) {
      const response = await client(address).send(read());
      expect(response.status).toBe(502);
      expect(JSON.parse(response.body.toString()).type).toBe('urn:proofgate:fault:upstream_response_invalid');
      expect(await metric('proofgate_proxy_upstream_failures_total')).toBe(time);
    }
  });

  it('answers 502 upstream_closed when the upstream closes before it responds', async () => {
    const upstream = await upstreamWith((request) => request.socket.destroy());
    const { address, metric } = await proxies.open(upstream.url);
    const response = await client(address).send(read());
    expect(response.status).toBe(502);
    expect(JSON.parse(response.body.toString()).type).toBe('urn:proofgate:fault:upstream_closed');
    expect(await metric('proofgate_proxy_upstream_failures_total')).toBe(1);
  });

  it('answers 502 upstream_response_invalid to what is no HTTP', async () => {
    const upstream = await upstreamWith((request) => request.socket.end('HTTP/1.1 200 OK\r\nA B: c\r\n\r\n'));
    const { address } = await proxies.open(upstream.url);
    const response = await client(address).send(read());
    expect(response.status).toBe(502);
    expect(response.body.toString()).toContain('upstream_response_invalid');
  });

  it('answers 502 upstream_unreachable without an upstream', async () => {
    const { address } = await proxies.open('http://127.0.0.1:1');
    const response = await client(address).send(read());
    expect(response.status).toBe(502);
    expect(response.body.toString()).toContain('upstream_unreachable');
  });

  it('answers 504 when the upstream is silent', async () => {
    const upstream = await upstreamWith(() => undefined);
    const { address } = await proxies.open(upstream.url, { responseTimeoutMs: 300 });
    const response = await client(address).send(read());
    expect(response.status).toBe(504);
    expect(response.body.toString()).toContain('upstream_timeout');
  });

  it('answers 503 overloaded above the maximum number of requests', async () => {
    const upstream = await upstreamWith(() => undefined);
    const { address, metric } = await proxies.open(upstream.url, {
      maxRequests: 1,
      responseTimeoutMs: 1_000,
    });
    const first = client(address).send(read());
    await waitFor(
      'the first request',
      async () => (await metric('proofgate_proxy_requests_in_flight')) === 1,
    );
    expect((await client(address).send(read())).status).toBe(503);
    expect((await first).status).toBe(504);
  });
});

// Over HTTP/2: test/process/node-internals/http2-closing.test.ts.
test('HTTP/1.1: breaks a response off that the upstream breaks off', async () => {
  const upstream = await upstreamWith((request, response) => {
    response.write('half');
    setTimeout(() => request.socket.destroy(), 20);
  });
  const { address } = await proxies.open(upstream.url);
  await expect(http1Client(address).send(read())).rejects.toThrow(NoResponse);
});

test('HTTP/1.1: the head and each part of a stream arrive at once (server-sent events)', async () => {
  let send: ((text: string) => void) | undefined;
  const upstream = await upstreamWith((_request, response) => {
    response.writeHead(200, { 'content-type': 'text/event-stream' }).flushHeaders();
    send = (text) => response.write(text);
  });
  const { address } = await proxies.open(upstream.url);
  const socket = connect(address).setEncoding('latin1');
  let received = '';
  socket.on('data', (text: string) => {
    received += text;
  });
  socket.write(encodeHttp1(read()));
  await waitFor('the head', () => received.includes('text/event-stream'));
  for (const event of ['data: 1\n\n', 'data: 2\n\n']) {
    send?.(event);
    await waitFor(event, () => received.includes(event));
  }
  socket.destroy();
});

test('response trailers reach clients that accept them', async () => {
  const upstream = await upstreamWith((_request, response) => {
    response.writeHead(200, { trailer: 'x-sum' });
    response.write('body');
    response.addTrailers({ 'x-sum': '7', host: 'x' });
    response.end();
  });
  const { address } = await proxies.open(upstream.url);
  const text = await rawText(
    address,
    encodeHttp1({ ...read(), headers: [...(read().headers ?? []), ['TE', 'trailers']] }),
  );
  expect(text).toContain('x-sum: 7');
  expect(text.toLowerCase()).not.toContain('host: x');
  expect(await rawText(address, encodeHttp1(read()))).not.toContain('x-sum: 7');

  const session = connectHttp2(`http://${address.host}:${address.port}`);
  const stream = session.request(Object.fromEntries(requestLines(read())));
  const trailers = await new Promise<{ readonly [name: string]: unknown }>((resolve) => {
    stream.on('trailers', (found) => resolve(found));
    stream.resume();
  });
  expect(trailers['x-sum']).toBe('7');
  session.close();
});

async function rawText(
  address: { readonly host: string; readonly port: number },
  bytes: Buffer,
): Promise<string> {
  const socket = connect(address);
  socket.write(bytes);
  let text = '';
  socket.on('data', (chunk) => {
    text += chunk.toString('latin1');
  });
  await waitFor('the end', () => text.includes('\r\n0\r\n') && text.endsWith('\r\n\r\n'));
  socket.destroy();
  return text;
}

test('a client that does not read holds the upstream back', async () => {
  let sentBytes = 0;
  let isOpen = true;
  const upstream = await upstreamWith((_request, response) => {
    response.on('close', () => {
      isOpen = false;
    });
    const chunk = Buffer.alloc(65_536);
    const more = () => {
      while (sentBytes < 200_000_000) {
        sentBytes += chunk.length;
        if (!response.write(chunk)) {
          response.once('drain', more);
          return;
        }
      }
      response.end();
    };
    more();
  });
  const { address } = await proxies.open(upstream.url);
  const socket = connect(address).pause();
  socket.write(encodeHttp1(read()));
  let before = -1;
  await waitFor('the upstream to wait', async () => {
    const stopped = before === sentBytes && sentBytes > 0;
    before = sentBytes;
    await new Promise((resolve) => setTimeout(resolve, 200));
    return stopped;
  });
  expect(sentBytes).toBeLessThan(30_000_000);
  socket.destroy();
  await waitFor('the upstream request to end', () => !isOpen);
});

test('a client that leaves ends the request to the upstream', async () => {
  let isOpen = false;
  const upstream = await upstreamWith((_request, response) => {
    isOpen = true;
    response.on('close', () => {
      isOpen = false;
    });
  });
  const { address, metric } = await proxies.open(upstream.url);
  const socket = connect(address);
  socket.write(encodeHttp1(read()));
  await waitFor('the request', () => isOpen);
  socket.destroy();
  await waitFor('its end', () => !isOpen);

  const session = connectHttp2(`http://${address.host}:${address.port}`);
  const stream = session.request(Object.fromEntries(requestLines(read())));
  await waitFor('the request', () => isOpen);
  stream.close(8);
  await waitFor('its end', () => !isOpen);
  session.destroy();
  await waitFor(
    'no request in flight',
    async () => (await metric('proofgate_proxy_requests_in_flight')) === 0,
  );
});

describe('clients without a proof', () => {
  const unsigned = { ':method': 'GET', ':path': '/v1/orders/1', ':authority': 'api.shop.example' };

  it('do not hold up others when they do not take their answers, and lose them in time', async () => {
    const upstream = await upstreamWith((_request, response) => response.end());
    const { address } = await proxies.open(upstream.url, { maxRequests: 2, idleTimeoutMs: 500 });
    const session = connectHttp2(`http://${address.host}:${address.port}`, {
      settings: { initialWindowSize: 0 },
    });
    const streams = Array.from({ length: 5 }, () => session.request(unsigned));
    const ends = streams.map((stream) => {
      stream.on('error', () => undefined);
      return new Promise<number | undefined>((resolve) => stream.on('close', () => resolve(stream.rstCode)));
    });
    await Promise.all(streams.map((stream) => new Promise((resolve) => stream.on('response', resolve))));
    expect((await http1Client(address).send(read())).status).toBe(200);
    // INTERNAL_ERROR (RFC 9113 section 7).
    expect(await Promise.all(ends)).toEqual([2, 2, 2, 2, 2]);
    session.destroy();
  });

  it('do not wait for their bodies when half of the requests do', async () => {
    const upstream = await upstreamWith((_request, response) => response.end());
    const { address } = await proxies.open(upstream.url, { maxRequests: 4 });
    const session = connectHttp2(`http://${address.host}:${address.port}`);
    const statuses = Array.from({ length: 3 }, () => {
      const stream = session.request(
        { ...unsigned, ':method': 'POST', ':path': '/v1/orders', 'content-length': 9 },
        { endStream: false },
      );
      stream.on('error', () => undefined);
      return new Promise((resolve) => stream.on('response', (headers) => resolve(headers[':status'])));
    });
    expect(await Promise.race([statuses[0], statuses[1], statuses[2]])).toBe(401);
    expect(await statuses[2]).toBe(401);
    session.destroy();
  });
});
