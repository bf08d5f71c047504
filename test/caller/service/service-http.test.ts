/** Tests how the HTTP client handles servers: size limits, redirects, certificates, closed connections. */
import { afterEach, describe, expect, it } from '@jest/globals';
import { parseControlUrl } from '../../../src/caller/enroll/control-url.ts';
import type { ServiceRequest } from '../../../src/caller/service/service-http.ts';
import { ServiceHttp } from '../../../src/caller/service/service-http.ts';
import {
  type Answer,
  type LocalServer,
  selfSignedIdentity,
  startServer,
  type TlsIdentity,
} from '../../support/caller/local-server.ts';

const ended: (() => Promise<void>)[] = [];
afterEach(async () => {
  for (const end of ended.splice(0)) await end();
});

async function serve(answer: Answer, identity?: TlsIdentity): Promise<LocalServer> {
  const server = await startServer(answer, identity);
  ended.push(() => server.close());
  return server;
}

function httpTo(url: string, caPem?: string): ServiceHttp {
  const http = new ServiceHttp({ url: parseControlUrl(url), caPem });
  ended.push(() => http.close());
  return http;
}

function request(members: Partial<ServiceRequest> = {}): ServiceRequest {
  return {
    method: 'GET',
    path: '/v1/enrollments/e',
    authorization: undefined,
    body: undefined,
    timeoutMs: 5000,
    stop: new AbortController().signal,
    ...members,
  };
}

describe('an exchange', () => {
  it('sends what it is given below the base URL, and gives back the answer', async () => {
    const server = await serve((_seen, response) => {
      response.writeHead(429, {
        'Content-Type': 'Application/Problem+JSON; charset=utf-8',
        'Retry-After': '7',
      });
      response.end('{"code":"x"}');
    });
    const http = httpTo(`http://127.0.0.1:${server.port}/control/`);
    const sent = request({ method: 'POST', body: '{"a":1}', authorization: 'Proofgate-Key 1.x' });
    expect(await http.exchange(sent)).toEqual({
      kind: 'answer',
      statusCode: 429,
      mediaType: 'application/problem+json',
      body: '{"code":"x"}',
      retryAfterMs: 7000,
    });
    expect(server.seen[0]).toMatchObject({ method: 'POST', target: '/control/v1/enrollments/e' });
    expect(server.seen[0]?.body.toString()).toBe('{"a":1}');
    expect(server.seen[0]?.headers).toMatchObject({
      'content-type': 'application/json',
      authorization: 'Proofgate-Key 1.x',
    });
  });

  it('follows no redirect', async () => {
    const server = await serve((_seen, response) =>
      response.writeHead(302, { Location: '/elsewhere' }).end(),
    );
    const http = httpTo(`http://127.0.0.1:${server.port}`);
    expect(await http.exchange(request())).toMatchObject({ kind: 'answer', statusCode: 302 });
    expect(server.seen).toHaveLength(1);
  });

  it.each<[string, Answer, string]>([
    [
      'is larger than it may be',
      (_seen, response) => response.end(Buffer.alloc(5 * 1024 * 1024)),
      'answer_invalid',
    ],
    ['is not UTF-8', (_seen, response) => response.end(Buffer.from([0x22, 0xff, 0x22])), 'answer_invalid'],
    ['is not HTTP', (_seen, _response, socket) => socket.write('SSH-2.0-x\r\n\r\n'), 'answer_invalid'],
    [
      'has a head without end',
      (_seen, _response, socket) => socket.write(`HTTP/1.1 200 OK\r\nA: ${'x'.repeat(99_999)}`),
      'answer_invalid',
    ],
    ['does not come', (_seen, _response, socket) => socket.destroy(), 'connection_lost'],
    [
      'is cut short',
      (_seen, response, socket) => {
        response.writeHead(200, { 'Content-Length': '10' });
        response.write('half', () => socket.end());
      },
      'connection_lost',
    ],
  ])('tells an answer that %s', async (_what, answer, cause) => {
    const server = await serve(answer);
    const http = httpTo(`http://127.0.0.1:${server.port}`);
    expect(await http.exchange(request())).toEqual({ kind: 'unclear', cause });
    expect(server.seen).toHaveLength(1);
  });

  it('ends when its time is up, before the answer and within it', async () => {
    const silent = await serve(() => {});
    const slow = await serve((_seen, response) => void response.write('half'));
    for (const { port } of [silent, slow]) {
      const http = httpTo(`http://127.0.0.1:${port}`);
      expect(await http.exchange(request({ timeoutMs: 100 }))).toEqual({
        kind: 'unclear',
        cause: 'timed_out',
      });
    }
  });

  it('ends at once when it is stopped', async () => {
    const stop = new AbortController();
    const server = await serve(() => stop.abort());
    const http = httpTo(`http://127.0.0.1:${server.port}`);
    const reply = await http.exchange(request({ stop: stop.signal }));
    expect(reply).toEqual({ kind: 'unclear', cause: 'stopped' });
  });

  it('says that nothing was sent when the connection is refused', async () => {
    const server = await serve(() => {});
    const { port } = server;
    await server.close();
    const http = httpTo(`http://127.0.0.1:${port}`);
    expect(await http.exchange(request())).toEqual({ kind: 'unreachable', cause: 'ECONNREFUSED' });
  });
});

describe('TLS', () => {
  const identity = selfSignedIdentity('localhost');

  it('trusts whom the CA file names, for the name in the URL', async () => {
    const server = await serve((_seen, response) => response.end('{}'), identity);
    const http = httpTo(`https://localhost:${server.port}`, identity.certificatePem);
    expect(await http.exchange(request())).toMatchObject({ kind: 'answer', statusCode: 200 });
  });

  it('sends nothing to anybody else', async () => {
    const server = await serve((_seen, response) => response.end('{}'), identity);
    const stranger = httpTo(`https://localhost:${server.port}`);
    expect(await stranger.exchange(request())).toMatchObject({ kind: 'unreachable' });
    const misnamed = httpTo(`https://127.0.0.1:${server.port}`, identity.certificatePem);
    const reply = await misnamed.exchange(request());
    expect(reply).toEqual({ kind: 'unreachable', cause: 'ERR_TLS_CERT_ALTNAME_INVALID' });
    expect(server.seen).toHaveLength(0);
  });

  it('refuses a CA file without certificates', () => {
    expect(() => httpTo('https://localhost', 'nonsense')).toThrow(
      expect.objectContaining({ code: 'ca_invalid' }),
    );
  });
});
