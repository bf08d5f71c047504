import { afterEach, describe, expect, it } from '@jest/globals';
import { parseRequestUrl } from '../../../src/caller/request-url.ts';
import { type RequestToSend, type ResponseHead, sendRequest } from '../../../src/caller/sign/send-request.ts';
import {
  type Answer,
  type LocalServer,
  selfSignedIdentity,
  startServer,
  type TlsIdentity,
} from '../../support/caller/local-server.ts';

const servers: LocalServer[] = [];
afterEach(async () => {
  for (const server of servers.splice(0)) await server.close();
});

async function serve(answer: Answer, identity?: TlsIdentity): Promise<LocalServer> {
  const server = await startServer(answer, identity);
  servers.push(server);
  return server;
}

function requestTo(server: LocalServer, members: Partial<RequestToSend> = {}): RequestToSend {
  return {
    method: 'GET',
    url: parseRequestUrl(`http://127.0.0.1:${server.port}/`),
    headers: [],
    body: undefined,
    timeoutMs: 5000,
    caPem: undefined,
    connectTo: undefined,
    ...members,
  };
}

interface WholeAnswer extends ResponseHead {
  readonly body: string;
}

function send(request: RequestToSend): Promise<WholeAnswer> {
  return sendRequest(request, async (head, body) => {
    const chunks: Buffer[] = [];
    for await (const chunk of body) chunks.push(Buffer.from(chunk));
    return { ...head, body: Buffer.concat(chunks).toString() };
  });
}

const OK: Answer = (_seen, response) => {
  response.setHeader('X-Answer', ['a', 'b']);
  response.end('fine');
};

describe('sendRequest over HTTP', () => {
  it('sends target, host and headers as given, and gives back the answer', async () => {
    const server = await serve(OK);
    const target = '/v1/%C3%A9/{x}?q=%2f..&"=|';
    const answer = await send(
      requestTo(server, {
        url: parseRequestUrl(`http://127.0.0.1:${server.port}${target}`),
        headers: [
          { name: 'X-Tenant', value: 'a, b' },
          { name: 'Accept', value: 'a/a' },
          { name: 'accept', value: 'b/b' },
        ],
      }),
    );
    expect(answer).toMatchObject({ statusCode: 200, statusText: 'OK', body: 'fine' });
    expect(answer.headers.filter(({ name }) => name === 'X-Answer').map(({ value }) => value)).toEqual([
      'a',
      'b',
    ]);
    const [seen] = server.seen;
    expect(seen).toMatchObject({ method: 'GET', target });
    expect(seen?.headers).toMatchObject({
      host: `127.0.0.1:${server.port}`,
      'x-tenant': 'a, b',
      connection: 'close',
    });
    expect(seen?.headers).not.toHaveProperty('content-length');
    expect(seen?.rawHeaders.filter((text) => /^[ab]\/[ab]$/.test(text))).toEqual(['a/a', 'b/b']);
  });

  it.each([
    ['POST', undefined, '0'],
    ['PUT', 'abc', '3'],
    ['DELETE', 'abc', '3'],
    ['DELETE', undefined, undefined],
  ])('%s with body %p has Content-Length %p', async (method, content, length) => {
    const server = await serve(OK);
    const body = content === undefined ? undefined : Buffer.from(content);
    await send(requestTo(server, { method, body }));
    expect(server.seen[0]?.headers['content-length']).toBe(length);
    expect(server.seen[0]?.headers).not.toHaveProperty('transfer-encoding');
    expect(server.seen[0]?.body.toString()).toBe(content ?? '');
  });

  it('connects elsewhere while the request stays for its origin', async () => {
    const server = await serve(OK);
    const url = parseRequestUrl('http://api.shop.example/v1');
    await send(requestTo(server, { url, connectTo: { host: '127.0.0.1', port: server.port } }));
    expect(server.seen[0]?.headers.host).toBe('api.shop.example');
  });

  it('follows no redirect', async () => {
    const server = await serve((_seen, response) => {
      response.writeHead(302, { Location: '/elsewhere' }).end();
    });
    expect(await send(requestTo(server))).toMatchObject({ statusCode: 302, body: '' });
    expect(server.seen).toHaveLength(1);
  });

  it.each(['get', 'CONNECT'])('refuses the method %s', async (method) => {
    const server = await serve(OK);
    await expect(send(requestTo(server, { method }))).rejects.toMatchObject({ code: 'method_invalid' });
  });

  it('is unreachable when the connection is refused, and where the connection ends without an answer', async () => {
    const server = await serve((_seen, _response, socket) => socket.destroy());
    await expect(send(requestTo(server))).rejects.toMatchObject({ code: 'unreachable' });
    await server.close();
    await expect(send(requestTo(server))).rejects.toMatchObject({ code: 'unreachable' });
    expect(server.seen).toHaveLength(1);
  });

  it('tells an answer that was cut short', async () => {
    const server = await serve((_seen, response, socket) => {
      response.writeHead(200, { 'Content-Length': '10' });
      response.write('half', () => setTimeout(() => socket.destroy(), 50));
    });
    await expect(send(requestTo(server))).rejects.toMatchObject({ code: 'response_incomplete' });
  });

  it('times out before the answer and within it', async () => {
    const silent = await serve(() => {});
    await expect(send(requestTo(silent, { timeoutMs: 100 }))).rejects.toMatchObject({ code: 'timed_out' });
    const slow = await serve((_seen, response) => {
      response.write('half');
    });
    await expect(send(requestTo(slow, { timeoutMs: 300 }))).rejects.toMatchObject({ code: 'timed_out' });
  });

  it('passes on an error of the response reader', async () => {
    const server = await serve(OK);
    const failing = sendRequest(requestTo(server), async () => {
      throw new Error('enough');
    });
    await expect(failing).rejects.toThrow('enough');
  });
});

describe('sendRequest over HTTPS', () => {
  const identity = selfSignedIdentity('api.shop.example');

  it("holds the server to the URL's name, wherever it connects", async () => {
    const server = await serve(OK, identity);
    const connectTo = { host: '127.0.0.1', port: server.port };
    const caPem = identity.certificatePem;
    const url = parseRequestUrl('https://api.shop.example/v1');
    expect(await send(requestTo(server, { url, connectTo, caPem }))).toMatchObject({ statusCode: 200 });
    expect(server.seen[0]?.headers.host).toBe('api.shop.example');
    const other = parseRequestUrl('https://other.shop.example/v1');
    await expect(send(requestTo(server, { url: other, connectTo, caPem }))).rejects.toMatchObject({
      code: 'unreachable',
    });
    const address = parseRequestUrl(`https://127.0.0.1:${server.port}/v1`);
    await expect(send(requestTo(server, { url: address, caPem }))).rejects.toMatchObject({
      code: 'unreachable',
    });
    expect(server.seen).toHaveLength(1);
  });

  it('trusts no unknown authority', async () => {
    const server = await serve(OK, identity);
    const connectTo = { host: '127.0.0.1', port: server.port };
    const url = parseRequestUrl('https://api.shop.example/v1');
    await expect(send(requestTo(server, { url, connectTo }))).rejects.toMatchObject({ code: 'unreachable' });
    const caPem = selfSignedIdentity('api.shop.example').certificatePem;
    await expect(send(requestTo(server, { url, connectTo, caPem }))).rejects.toMatchObject({
      code: 'unreachable',
    });
    expect(server.seen).toHaveLength(0);
  });

  it.each(['', 'nonsense', '-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n'])(
    'refuses %p for a CA file',
    async (caPem) => {
      const server = await serve(OK, identity);
      const url = parseRequestUrl(`https://127.0.0.1:${server.port}/`);
      await expect(send(requestTo(server, { url, caPem }))).rejects.toMatchObject({ code: 'ca_invalid' });
    },
  );
});
