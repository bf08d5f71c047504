/** Request bodies: bound ones are complete and verified before the upstream sees anything, unbound ones are streams. */
import { createHash } from 'node:crypto';
import { type ClientHttp2Stream, connect as connectHttp2 } from 'node:http2';
import { connect, type Socket } from 'node:net';
import { describe, expect, it, test } from '@jest/globals';
import type { WireAddress } from '../../../src/tools/conformance/wire/exchange.ts';
import { encodeHttp1, http1Client, sendBytes } from '../../../src/tools/conformance/wire/http1.ts';
import { http2Client, requestLines } from '../../../src/tools/conformance/wire/http2.ts';
import { type OpenProxy, useProxies, useUpstreams } from '../../support/points/proxy-fixture.ts';
import { attestedCaller } from '../../support/site/callers.ts';
import { ROUTES } from '../../support/site/routes.ts';
import { waitFor } from '../../support/wait.ts';

const proxies = useProxies();
const upstreamWith = useUpstreams();

interface Received {
  readonly method: string;
  readonly sha256: string;
  readonly framing: string;
}

/** Records requests that arrive in full. */
async function recording(): Promise<{ readonly url: string; readonly arrived: Received[]; begun(): number }> {
  const arrived: Received[] = [];
  let begun = 0;
  const { url } = await upstreamWith((request, response) => {
    begun += 1;
    const hash = createHash('sha256');
    request.on('data', (chunk: Buffer) => hash.update(chunk));
    request.on('error', () => undefined);
    request.on('end', () => {
      const { headers, method = '' } = request;
      const framing = headers['transfer-encoding'] ?? `length ${headers['content-length']}`;
      arrived.push({ method, sha256: hash.digest('hex'), framing });
      response.end('ok');
    });
  });
  return { url, arrived, begun: () => begun };
}

const sha256 = (bytes: Buffer) => createHash('sha256').update(bytes).digest('hex');
const LONG = Buffer.alloc(1_000_000, '0123456789');

const inFlight = async ({ metric }: OpenProxy) => metric('proofgate_proxy_requests_in_flight');
const onDisk = async ({ metric }: OpenProxy) => metric('proofgate_proxy_spooled_bytes');

describe.each([
  ['HTTP/1.1', http1Client],
  ['HTTP/2', http2Client],
] as const)('%s', (_protocol, client) => {
  it.each(['length', 'open'] as const)('a long bound body arrives unchanged, framing %s', async (framing) => {
    const upstream = await recording();
    const proxy = await proxies.open(upstream.url);
    const request = proxies.sign({ route: ROUTES.createOrder, body: LONG, framing });
    expect((await client(proxy.address).send(request)).status).toBe(200);
    expect(upstream.arrived).toEqual([{ method: 'POST', sha256: sha256(LONG), framing: 'length 1000000' }]);
    await waitFor('nothing on disk', async () => (await onDisk(proxy)) === 0);
    expect(await proxy.spooledFiles()).toEqual([]);
  });

  it('a long body that differs in its last byte does not arrive', async () => {
    const upstream = await recording();
    const proxy = await proxies.open(upstream.url);
    const changed = Buffer.from(LONG);
    changed[LONG.length - 1] = 0;
    const request = { ...proxies.sign({ route: ROUTES.createOrder, body: LONG }), body: changed };
    const response = await client(proxy.address).send(request);
    expect(JSON.parse(response.body.toString())).toMatchObject({ status: 403, detail: 'content-sha256' });
    expect(upstream.begun()).toBe(0);
    await waitFor('nothing on disk', async () => (await onDisk(proxy)) === 0);
  });

  it.each(['length', 'open'] as const)('a body above the maximum is 413, framing %s', async (framing) => {
    const upstream = await recording();
    const proxy = await proxies.open(upstream.url, { maxBodyBytes: 500_000 });
    const request = proxies.sign({ route: ROUTES.createOrder, body: LONG, framing });
    expect((await client(proxy.address).send(request)).status).toBe(413);
    expect(upstream.begun()).toBe(0);
    expect(proxy.verified.store.claims).toEqual([]);
    await waitFor('nothing on disk', async () => (await onDisk(proxy)) === 0);
  });

  it.each(['length', 'open'] as const)(
    'without a valid proof nothing goes to disk, framing %s',
    async (framing) => {
      const upstream = await recording();
      const proxy = await proxies.open(upstream.url, { spoolDirectory: '/nowhere' });
      const signed = proxies.sign({ route: ROUTES.createOrder, body: LONG, framing });
      const headers = signed.headers?.filter(([name]) => name !== 'x-proofgate-signature') ?? [];
      const response = await client(proxy.address).send({ ...signed, headers });
      expect(JSON.parse(response.body.toString())).toMatchObject({ status: 401, detail: 'proof_missing' });
      expect(upstream.begun()).toBe(0);
    },
  );

  it('a disk that cannot be written is 503 and consumes no proof', async () => {
    const upstream = await recording();
    const proxy = await proxies.open(upstream.url, { spoolDirectory: '/nowhere' });
    const response = await client(proxy.address).send(
      proxies.sign({ route: ROUTES.createOrder, body: LONG }),
    );
    expect(response.status).toBe(503);
    expect(response.body.toString()).toContain('spool_unavailable');
    expect(proxy.verified.store.claims).toEqual([]);
  });

  it('bodies that have no room together are 503, and the room is free again after them', async () => {
    const upstream = await recording();
    const proxy = await proxies.open(upstream.url, { maxSpoolBytes: LONG.length - 1 });
    const answer = async (body: Buffer) => {
      const response = await client(proxy.address).send(proxies.sign({ route: ROUTES.createOrder, body }));
      return [response.status, response.body.includes('spool_unavailable')];
    };
    expect(await answer(LONG)).toEqual([503, true]);
    await waitFor('nothing on disk', async () => (await onDisk(proxy)) === 0);
    expect(await answer(LONG.subarray(1))).toEqual([200, false]);
  });

  it('an unbound body arrives unchanged', async () => {
    const upstream = await recording();
    const proxy = await proxies.open(upstream.url);
    const request = proxies.sign({ route: ROUTES.upload, body: LONG, framing: 'open' });
    expect((await client(proxy.address).send(request)).status).toBe(200);
    expect(upstream.arrived).toEqual([{ method: 'PUT', sha256: sha256(LONG), framing: 'chunked' }]);
  });

  it('a bound body that takes too long is 408', async () => {
    const upstream = await recording();
    const proxy = await proxies.open(upstream.url, { bodyTimeoutMs: 200 });
    expect(await statusOfHalf(client === http1Client, proxy.address)).toBe(408);
    expect(upstream.begun()).toBe(0);
  });

  it('request trailers do not arrive', async () => {
    const trailers: string[] = [];
    const upstream = await upstreamWith((request, response) => {
      request.resume().on('end', () => {
        trailers.push(...request.rawTrailers);
        response.end();
      });
    });
    const proxy = await proxies.open(upstream.url);
    const request = proxies.sign({ route: ROUTES.upload, body: 'x' });
    const answer = await client(proxy.address).send({ ...request, trailers: [['x-late', '1']] });
    expect(answer.status).toBe(200);
    expect(trailers).toEqual([]);
  });
});

/** Sends half of a bound body and waits for the response. */
function statusOfHalf(isHttp1: boolean, address: WireAddress): Promise<number> {
  const request = proxies.sign({ route: ROUTES.createOrder, body: LONG, framing: 'length' });
  if (isHttp1) {
    return sendBytes(address, encodeHttp1(request).subarray(0, 30_000), 'POST').then(({ status }) => status);
  }
  return new Promise((resolve) => {
    const session = connectHttp2(`http://${address.host}:${address.port}`);
    const stream = session.request(Object.fromEntries(requestLines(request)));
    stream.on('response', (headers) => {
      resolve(Number(headers[':status']));
      session.destroy();
    });
    stream.on('error', () => undefined);
    stream.write(LONG.subarray(0, 30_000));
  });
}

test('an unbound body is a stream: the upstream sees its start before its end is sent', async () => {
  let seen = 0;
  let isComplete = false;
  let isBroken = false;
  const upstream = await upstreamWith((request, response) => {
    request.on('data', (chunk: Buffer) => {
      seen += chunk.length;
    });
    request.on('end', () => {
      isComplete = true;
      response.end();
    });
    request.on('error', () => {
      isBroken = true;
    });
  });
  const proxy = await proxies.open(upstream.url);
  const bytes = encodeHttp1(proxies.sign({ route: ROUTES.upload, body: LONG, framing: 'length' }));
  const socket = connect(proxy.address);
  socket.write(bytes.subarray(0, 100_000));
  await waitFor('the start', () => seen > 10_000);
  // The client leaves, so the upstream must not take the body for complete.
  socket.destroy();
  await waitFor('the end', async () => (await inFlight(proxy)) === 0);
  expect(isComplete).toBe(false);
  await waitFor('the upstream request to break off', () => isBroken);
});

/** RST_STREAM of the first stream (RFC 9113 section 6.4). */
const resetFrame = (code: number) => Buffer.from([0, 0, 4, 3, 0, 0, 0, 0, 1, 0, 0, 0, code]);

test.each([
  ['a reset without an error', (socket: Socket) => socket.write(resetFrame(0))],
  ['a reset', (socket: Socket) => socket.write(resetFrame(8))],
  ['the end of the connection', (socket: Socket) => socket.destroy()],
] as const)('HTTP/2: after %s an unbound body does not look complete', async (_name, end) => {
  let state = 'none';
  const upstream = await upstreamWith((request, response) => {
    state = 'begun';
    request.resume();
    request.on('end', () => {
      state = 'complete';
      response.end();
    });
    request.on('error', () => {
      state = 'broken';
    });
  });
  const { address } = await proxies.open(upstream.url);
  const socket = connect(address);
  const session = connectHttp2(`http://${address.host}:${address.port}`, { createConnection: () => socket });
  session.on('error', () => undefined);
  const request = proxies.sign({ route: ROUTES.upload, body: LONG });
  const stream: ClientHttp2Stream = session.request(Object.fromEntries(requestLines(request)));
  stream.on('error', () => undefined);
  stream.write(LONG.subarray(0, 50_000));
  await waitFor('the start', () => state === 'begun');
  end(socket);
  await waitFor('the end', () => state !== 'begun');
  expect(state).toBe('broken');
  socket.destroy();
});

test('an upstream that does not read holds the client back', async () => {
  const upstream = await upstreamWith((request) => request.pause());
  const proxy = await proxies.open(upstream.url);
  const socket = connect(proxy.address).on('error', () => undefined);
  const request = proxies.sign({ route: ROUTES.upload, framing: 'open', body: 'x' });
  socket.write(encodeHttp1(request).subarray(0, -6));
  let accepted = 0;
  const chunk = Buffer.from(`10000\r\n${'y'.repeat(65_536)}\r\n`);
  const pump = () => {
    while (accepted < 200_000_000) {
      accepted += chunk.length;
      if (!socket.write(chunk)) {
        socket.once('drain', pump);
        return;
      }
    }
  };
  pump();
  let before = -1;
  await waitFor('the client to wait', async () => {
    const stopped = before === accepted;
    before = accepted;
    await new Promise((resolve) => setTimeout(resolve, 200));
    return stopped;
  });
  expect(accepted).toBeLessThan(30_000_000);
  socket.destroy();
});

describe('Expect: 100-continue', () => {
  const expecting = (route: typeof ROUTES.createOrder | typeof ROUTES.upload) =>
    proxies.sign({ route, body: 'hello', framing: 'length', otherHeaders: [['Expect', '100-continue']] });

  const begin = async (
    address: WireAddress,
    head: Buffer,
  ): Promise<{ socket: Socket; text: () => string }> => {
    const socket = connect(address);
    let text = '';
    socket.on('data', (chunk) => {
      text += chunk.toString('latin1');
    });
    socket.write(head);
    await waitFor('an answer', () => text.includes('\r\n\r\n'));
    return { socket, text: () => text };
  };

  it.each(['createOrder', 'upload'] as const)('%s: 100, then the response', async (name) => {
    const upstream = await recording();
    const proxy = await proxies.open(upstream.url);
    const bytes = encodeHttp1(expecting(ROUTES[name]));
    const { socket, text } = await begin(proxy.address, bytes.subarray(0, -5));
    expect(text()).toBe('HTTP/1.1 100 Continue\r\n\r\n');
    socket.write('hello');
    await waitFor('the response', () => text().includes('HTTP/1.1 200 OK'));
    expect(upstream.arrived.map(({ sha256: hash }) => hash)).toEqual([sha256(Buffer.from('hello'))]);
    socket.destroy();
  });

  it.each(['createOrder', 'upload'] as const)('%s without a proof: the denial, no 100', async (name) => {
    const upstream = await recording();
    const proxy = await proxies.open(upstream.url);
    const signed = expecting(ROUTES[name]);
    const headers = signed.headers?.filter(([header]) => header !== 'authorization') ?? [];
    const { text } = await begin(proxy.address, encodeHttp1({ ...signed, headers }).subarray(0, -5));
    expect(text()).toMatch(/^HTTP\/1\.1 401 /);
    expect(proxy.verified.events).toHaveLength(1);
    expect(upstream.begun()).toBe(0);
  });

  it('another expectation is 417', async () => {
    const upstream = await recording();
    const proxy = await proxies.open(upstream.url);
    const request = proxies.sign({ route: ROUTES.readOrder, otherHeaders: [['Expect', 'coffee']] });
    expect((await http1Client(proxy.address).send(request)).status).toBe(417);
  });
});

describe('a body that is not complete', () => {
  /** Sends the head and the given part of the body; the answer is what has arrived. */
  const opened = (address: WireAddress, bytes: Buffer) => {
    let text = '';
    const socket = connect(address).on('error', () => undefined);
    socket.on('data', (chunk) => {
      text += chunk.toString('latin1');
    });
    socket.write(bytes);
    return { socket, status: () => /^HTTP\/1\.1 (\d+)/.exec(text)?.[1], text: () => text };
  };
  const signedBytes = (body: Buffer, framing: 'length' | 'open', caller = proxies.caller) =>
    encodeHttp1(proxies.sign({ route: ROUTES.createOrder, body, framing, caller }));
  const isHeld = async (proxy: OpenProxy, bytes: number) =>
    waitFor('the bytes on disk', async () => (await onDisk(proxy)) >= bytes);

  it('without a length and a proof is denied before its end', async () => {
    const proxy = await proxies.open((await recording()).url);
    const signed = proxies.sign({ route: ROUTES.createOrder, body: 'abc', framing: 'open' });
    const headers = signed.headers?.filter(([name]) => name !== 'authorization') ?? [];
    const { socket, status } = opened(proxy.address, encodeHttp1({ ...signed, headers }).subarray(0, -5));
    await waitFor('the denial', () => status() !== undefined);
    expect(status()).toBe('401');
    socket.destroy();
  });

  it.each(['length', 'open'] as const)(
    'uses its proof once in this process, framing %s: the second is a replay, and the first arrives',
    async (framing) => {
      const upstream = await recording();
      const proxy = await proxies.open(upstream.url);
      const bytes = signedBytes(LONG, framing);
      const first = opened(proxy.address, bytes.subarray(0, 200_000));
      await isHeld(proxy, 100_000);
      const second = opened(proxy.address, bytes.subarray(0, 200_000));
      await waitFor('the denial', () => second.text().includes('jti_replay'));
      expect(second.status()).toBe('403');
      expect(proxy.verified.store.claims).toEqual([]);
      first.socket.write(bytes.subarray(200_000));
      await waitFor('the response', () => first.status() !== undefined);
      expect(first.status()).toBe('200');
      expect(upstream.arrived).toHaveLength(1);
      for (const { socket } of [first, second]) socket.destroy();
    },
  );

  it('that broke off leaves its proof unused', async () => {
    const upstream = await recording();
    const proxy = await proxies.open(upstream.url);
    const bytes = signedBytes(LONG, 'length');
    const first = opened(proxy.address, bytes.subarray(0, 200_000));
    await isHeld(proxy, 100_000);
    first.socket.destroy();
    await waitFor('the end', async () => (await inFlight(proxy)) === 0);
    const second = opened(proxy.address, bytes);
    await waitFor('the response', () => second.status() !== undefined);
    expect(second.status()).toBe('200');
    second.socket.destroy();
  });

  it('takes the share of its caller on disk, and nothing of the others', async () => {
    const upstream = await recording();
    // A quarter is two of these bodies, and part of a third.
    const proxy = await proxies.open(upstream.url, { maxSpoolBytes: 10_000_000, maxBodyBytes: 1_000_000 });
    const held = [0, 1].map(() => opened(proxy.address, signedBytes(LONG, 'length').subarray(0, -1)));
    await isHeld(proxy, 1_900_000);
    const third = opened(proxy.address, signedBytes(LONG, 'length').subarray(0, -1));
    await waitFor('the refusal', () => third.text().includes('spool_unavailable'));
    const other = opened(proxy.address, signedBytes(LONG, 'length', attestedCaller(proxies.site)));
    await waitFor('the response', () => other.status() !== undefined);
    expect(other.status()).toBe('200');
    for (const { socket } of [...held, third, other]) socket.destroy();
  });

  it('takes the share of its caller in memory, and nothing of the others', async () => {
    const upstream = await recording();
    // A quarter of eight.
    const proxy = await proxies.open(upstream.url, { maxRequests: 8 });
    const begin = () => opened(proxy.address, signedBytes(Buffer.from('abc'), 'open').subarray(0, -5));
    const held = [begin(), begin()];
    await waitFor('both', async () => (await inFlight(proxy)) === 2);
    const third = begin();
    await waitFor('the refusal', () => third.text().includes('overloaded'));
    expect(third.status()).toBe('503');
    const other = opened(
      proxy.address,
      signedBytes(Buffer.from('abc'), 'open', attestedCaller(proxies.site)),
    );
    await waitFor('the response', () => other.status() !== undefined);
    expect(other.status()).toBe('200');
    for (const { socket } of [...held, third, other]) socket.destroy();
  });

  it('of announced length counts before its bytes are there; beyond the share of strangers the proof comes first', async () => {
    const proxy = await proxies.open((await recording()).url, { maxRequests: 16 });
    const stranger = Buffer.from(
      'POST /v1/orders HTTP/1.1\r\nHost: api.shop.example\r\nContent-Length: 65536\r\n\r\n',
    );
    // A quarter of sixteen.
    const held = [0, 1, 2, 3].map(() => opened(proxy.address, stranger));
    await waitFor('all four', async () => (await inFlight(proxy)) === 4);
    const fifth = opened(proxy.address, stranger);
    await waitFor('the denial', () => fifth.status() !== undefined);
    expect(fifth.status()).toBe('401');
    expect(held.map(({ status }) => status())).toEqual([undefined, undefined, undefined, undefined]);
    for (const { socket } of [...held, fifth]) socket.destroy();
  });
});
