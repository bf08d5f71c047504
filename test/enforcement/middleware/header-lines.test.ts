/** Node drops header lines beyond a number from every view, and its parser goes on: what a request hides there is never handled. */
import { createServer, type Server } from 'node:http';
import { connect, type Socket } from 'node:net';
import { afterEach, describe, expect, it } from '@jest/globals';
import { proofgate } from '../../../src/enforcement/middleware/node-handler.ts';
import { MAX_HEADER_LINES } from '../../../src/protocol/header-line-limit.ts';
import { type HeaderLine, pairs } from '../../../src/tools/conformance/wire/exchange.ts';
import { encodeHttp1, http1Client, sendBytes } from '../../../src/tools/conformance/wire/http1.ts';
import { type App, KINDS, listening, runningApp } from '../../support/points/middleware-apps.ts';
import { useMiddleware } from '../../support/points/open-middleware.ts';
import { derivedKeyCaller } from '../../support/site/callers.ts';
import { ROUTES } from '../../support/site/routes.ts';
import { signedRequest, withHeader, withMoreHeaders } from '../../support/site/signed-request.ts';

const middleware = useMiddleware(KINDS);
const apps: Pick<App, 'close'>[] = [];
afterEach(async () => {
  for (const app of apps.splice(0)) await app.close();
});

const read = () =>
  signedRequest(middleware.site, { caller: derivedKeyCaller(middleware.site), route: ROUTES.readOrder });
const fillers = (count: number): readonly HeaderLine[] =>
  Array.from({ length: count }, (): HeaderLine => ['a', '']);

/** A correctly signed request without a body, then filler lines, then what was not signed. */
function hiding(lines: readonly string[], body: string, filler = 1_100): Buffer {
  const head = encodeHttp1(withMoreHeaders(read(), fillers(filler))).subarray(0, -2);
  return Buffer.concat([head, Buffer.from(`${[...lines, '', ''].join('\r\n')}${body}`)]);
}

const HIDDEN: readonly (readonly [string, readonly string[], string])[] = [
  ['a body with a length', ['Content-Length: 5'], 'extra'],
  ['a body in chunks', ['Transfer-Encoding: chunked'], '5\r\nextra\r\n0\r\n\r\n'],
  ['trailers', ['Transfer-Encoding: chunked'], '0\r\nX-Proofgate-Subject: root\r\n\r\n'],
  ['a connection option', ['Connection: authorization'], ''],
  ['a second host', ['Host: api.other.example'], ''],
  ['a method override', ['X-HTTP-Method-Override: DELETE'], ''],
  ['a subject', ['X-Proofgate-Subject: root'], ''],
  ['a second signature', ['X-Proofgate-Signature: other'], ''],
  ['nothing', [], ''],
];

describe.each(KINDS)('%s', (kind) => {
  it.each(HIDDEN)('refuses a request that hides %s behind many lines', async (_what, lines, body) => {
    const app = middleware.app(kind);
    const { body: problem, status } = await sendBytes(app.address, hiding(lines, body), 'GET');
    expect([status, JSON.parse(problem.toString()).type]).toEqual([
      431,
      'urn:proofgate:fault:headers_too_large',
    ]);
    expect(app.handled).toEqual([]);
  });

  it('hands on all lines of a request that has as many as are allowed', async () => {
    const app = middleware.app(kind);
    const request = read();
    const more = MAX_HEADER_LINES - 1 - (request.headers?.length ?? 0);
    expect((await http1Client(app.address).send(withMoreHeaders(request, fillers(more)))).status).toBe(200);
    const [handled] = app.handled;
    expect(pairs(handled?.raw ?? []).filter(([name]) => name === 'a').length).toBe(more);
    const oneMore = withMoreHeaders(read(), fillers(more + 1));
    expect((await http1Client(app.address).send(oneMore)).status).toBe(431);
  });
});

describe('whatever the application says to its server', () => {
  const SMALL = 20;
  const MORE_THAN_SMALL = 60;

  async function start(server: Server): Promise<App['address']> {
    const running = runningApp(await listening(server));
    apps.push(running);
    return running.address;
  }

  const bodies: string[] = [];
  const create = () =>
    createServer(
      proofgate(middleware.verifier, async (request, response) => {
        bodies.push(Buffer.concat(await request.toArray()).toString());
        response.end('handled');
      }),
    );
  it.each(['before', 'after'])('%s it is protected, no body is hidden', async (when) => {
    const server = create();
    if (when === 'before') server.maxHeadersCount = SMALL;
    const address = await start(middleware.verifier.protect(server));
    server.maxHeadersCount = SMALL;
    const bytes = hiding(['Content-Length: 5'], 'extra', MORE_THAN_SMALL);
    expect((await sendBytes(address, bytes, 'GET')).status).toBe(403);
    expect((await sendBytes(address, encodeHttp1(read()), 'GET')).status).toBe(200);
    expect(bodies.splice(0)).toEqual(['']);
  });

  it('denies on a connection that is older than the protection', async () => {
    const server = create();
    server.maxHeadersCount = SMALL;
    server.once('request', (_request, response) => response.end());
    const [own] = server.listeners('request');
    if (own === undefined) throw new Error('the server has no handler');
    server.off('request', own as () => void);
    const { port } = await start(server);
    const socket = connect(port, '127.0.0.1');
    await answerTo(socket, encodeHttp1(withHeader(read(), 'authorization')));
    server.on('request', own as () => void);
    middleware.verifier.protect(server);
    const answer = await answerTo(socket, hiding(['Content-Length: 5'], 'extra', MORE_THAN_SMALL));
    expect(answer).toMatch(/^HTTP\/1\.1 503 .*verifier_unavailable/s);
    expect(bodies).toEqual([]);
    socket.destroy();
  });
});

function answerTo(socket: Socket, bytes: Uint8Array): Promise<string> {
  socket.write(bytes);
  return new Promise((resolve) => socket.once('data', (chunk) => resolve(chunk.toString('latin1'))));
}
