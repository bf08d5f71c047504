/** What happens on a connection: pipelining, HEAD, `Expect`, aborted and large bodies, upgrades. */
import { once } from 'node:events';
import { createServer, type RequestListener, type ServerResponse } from 'node:http';
import { afterEach, describe, expect, it } from '@jest/globals';
import { proofgate } from '../../../src/enforcement/middleware/node-handler.ts';
import type { WireRequest } from '../../../src/tools/conformance/wire/exchange.ts';
import {
  encodeHttp1,
  http1Client,
  openSocket,
  sendBytes,
  statusesUntilClosed,
} from '../../../src/tools/conformance/wire/http1.ts';
import { type App, KINDS, listening, runningApp } from '../../support/points/middleware-apps.ts';
import { useMiddleware } from '../../support/points/open-middleware.ts';
import { derivedKeyCaller } from '../../support/site/callers.ts';
import { ROUTES, type SiteRoute } from '../../support/site/routes.ts';
import { signedRequest, withHeader, withMoreHeaders } from '../../support/site/signed-request.ts';
import { waitFor } from '../../support/wait.ts';

const MAX_BODY_BYTES = 100_000;
const middleware = useMiddleware(KINDS, { maxBodyBytes: MAX_BODY_BYTES });

const signed = (route: SiteRoute, body?: string): WireRequest => {
  const { site } = middleware;
  return signedRequest(site, {
    caller: derivedKeyCaller(site),
    route,
    ...(body === undefined ? {} : { body }),
  });
};
const unsigned = (request: WireRequest) => withHeader(request, 'x-proofgate-signature');
const bytesOf = (...requests: readonly WireRequest[]) => Buffer.concat(requests.map(encodeHttp1));
const closing = (request: WireRequest) => withMoreHeaders(request, [['Connection', 'close']]);

/** Everything that the server sends until it closes, or until the text is there. */
async function conversation(app: Pick<App, 'address'>, bytes: Uint8Array, until?: RegExp) {
  const socket = openSocket(app.address);
  let text = '';
  let isClosed = false;
  socket.on('data', (chunk: Buffer) => {
    text += chunk.toString('latin1');
  });
  socket.on('close', () => {
    isClosed = true;
  });
  socket.on('error', () => undefined);
  socket.write(bytes);
  await waitFor(String(until ?? 'the end of the connection'), () => isClosed || until?.test(text));
  return { socket, text: () => text };
}

function open(app: Pick<App, 'address'>) {
  const socket = openSocket(app.address).on('error', () => undefined);
  const ended = new Promise((resolve) => socket.once('close', resolve));
  return { socket, ended };
}

describe.each(KINDS)('%s', (kind) => {
  it('verifies each of several requests on one connection by itself', async () => {
    const app = middleware.app(kind);
    const { readOrder, createOrder } = ROUTES;
    const again = signed(readOrder);
    const requests = [
      signed(createOrder, 'a'),
      unsigned(signed(readOrder)),
      again,
      again,
      closing(signed(readOrder)),
    ];
    expect(await statusesUntilClosed(app.address, bytesOf(...requests))).toEqual([200, 401, 200, 403, 200]);
    expect(app.handled.map(({ body }) => body.toString()).sort()).toEqual(['', '', 'a']);
  });

  it('answers HEAD without a body', async () => {
    const app = middleware.app(kind);
    const request = { ...signed(ROUTES.readOrder), method: 'HEAD' };
    const { text } = await conversation(app, bytesOf(closing(request)));
    expect(text()).toMatch(/^HTTP\/1\.1 403 /);
    expect(text().split('\r\n\r\n')[1]).toBe('');
    expect(app.handled).toEqual([]);
  });

  it('asks for a body only when the request would not be denied anyway', async () => {
    const app = middleware.app(kind);
    const expecting = (request: WireRequest) =>
      withMoreHeaders(request, [
        ['Expect', '100-continue'],
        ['Connection', 'close'],
      ]);
    const whole = encodeHttp1(expecting(signed(ROUTES.createOrder, 'body')));
    const { socket, text } = await conversation(app, whole.subarray(0, -4), /100 Continue\r\n\r\n/);
    expect(app.handled).toEqual([]);
    socket.write('body');
    await waitFor('the answer', () => / 200 OK/.test(text()));
    expect(app.handled.map(({ body }) => body.toString())).toEqual(['body']);
    const denied = encodeHttp1(expecting(unsigned(signed(ROUTES.createOrder, 'body'))));
    const answer = await conversation(app, denied.subarray(0, -4));
    expect(answer.text()).toMatch(/^HTTP\/1\.1 401 /);
    expect(app.handled.length).toBe(1);
  });

  it('streams an unbound body, with `Expect` too', async () => {
    const app = middleware.app(kind);
    const body = 'x'.repeat(3 * MAX_BODY_BYTES);
    const request = withMoreHeaders(signed(ROUTES.upload, body), [['Expect', '100-continue']]);
    expect((await http1Client(app.address).send(request)).status).toBe(200);
    expect(app.handled[0]?.body.length).toBe(body.length);
  });

  it('knows no other expectation', async () => {
    const app = middleware.app(kind);
    const request = withMoreHeaders(signed(ROUTES.readOrder), [['Expect', 'the-unexpected']]);
    expect((await http1Client(app.address).send(request)).status).toBe(417);
    expect(app.handled).toEqual([]);
  });

  it.each(['length', 'open'] as const)(
    'answers 413 for a bound body that is too large, framed by %s',
    async (framing) => {
      const app = middleware.app(kind);
      const largest = { ...signed(ROUTES.createOrder, 'x'.repeat(MAX_BODY_BYTES)), framing };
      const larger = { ...signed(ROUTES.createOrder, 'x'.repeat(MAX_BODY_BYTES + 1)), framing };
      expect((await http1Client(app.address).send(largest)).status).toBe(200);
      const head = encodeHttp1(larger);
      // The last bytes are not sent: an answer that came before them is not lost.
      const { text } = await conversation(app, head.subarray(0, framing === 'length' ? -MAX_BODY_BYTES : -7));
      expect(text()).toMatch(/^HTTP\/1\.1 413 [\s\S]*connection: close/i);
      expect(app.handled.length).toBe(1);
    },
  );

  it('denies before it receives a large body', async () => {
    const app = middleware.app(kind);
    const bytes = encodeHttp1(unsigned(signed(ROUTES.createOrder, 'x'.repeat(MAX_BODY_BYTES))));
    const { text } = await conversation(app, bytes.subarray(0, -MAX_BODY_BYTES));
    expect(text()).toMatch(/^HTTP\/1\.1 401 /);
  });

  it('neither decides on nor handles a request whose body was cut off', async () => {
    const app = middleware.app(kind);
    const before = (await middleware.opened.decisions()).length;
    for (const framing of ['length', 'open'] as const) {
      const bytes = encodeHttp1({ ...signed(ROUTES.createOrder, 'cut off'), framing });
      const socket = openSocket(app.address);
      socket.end(bytes.subarray(0, -8));
      socket.resume();
      await new Promise((resolve) => socket.once('close', resolve));
    }
    // A later request shows that the server goes on.
    expect((await http1Client(app.address).send(signed(ROUTES.readOrder))).status).toBe(200);
    expect([(await middleware.opened.decisions()).length, app.handled.length]).toEqual([before + 1, 1]);
  });

  it.each([
    ['no host', (text: string) => text.replace(/Host: .*\r\n/, '')],
    ['two hosts', (text: string) => text.replace(/(Host: .*\r\n)/, '$1$1')],
    [
      'a Connection option that names a header',
      (text: string) => text.replace(/(Host: .*\r\n)/, '$1Connection: x-tenant\r\n'),
    ],
    ['no version', (text: string) => text.replace(' HTTP/1.1', '')],
  ])('answers 400 for %s', async (_what, change) => {
    const app = middleware.app(kind);
    const bytes = Buffer.from(change(encodeHttp1(signed(ROUTES.readOrder)).toString('latin1')), 'latin1');
    expect((await sendBytes(app.address, bytes, 'GET')).status).toBe(400);
    expect(app.handled).toEqual([]);
  });
});

describe('what never reaches a framework', () => {
  const apps: Pick<App, 'close'>[] = [];
  afterEach(async () => {
    for (const app of apps.splice(0)) await app.close();
  });

  /** A protected server with listeners of the application for every event. */
  async function start(handle: RequestListener = (_request, response) => response.end('handled')) {
    const events: string[] = [];
    const { verifier } = middleware;
    const server = createServer(proofgate(verifier, handle));
    server.on('upgrade', (request, socket) => {
      events.push(`upgrade ${'proof' in request}`);
      socket.end('HTTP/1.1 101 Switching Protocols\r\n\r\n');
    });
    server.on('connect', (_request, socket) => {
      events.push('connect');
      socket.end('HTTP/1.1 200 OK\r\n\r\n');
    });
    server.on('checkContinue', (_request, response) => {
      events.push('checkContinue');
      response.end();
    });
    server.on('checkExpectation', (_request, response) => {
      events.push('checkExpectation');
      response.end();
    });
    const app = runningApp(await listening(verifier.protect(server)));
    apps.push(app);
    return { app, events };
  }
  const upgrading = (request: WireRequest, protocol = 'websocket') =>
    withMoreHeaders(request, [
      ['Connection', 'upgrade'],
      ['Upgrade', protocol],
      ['Sec-WebSocket-Key', 'AAAAAAAAAAAAAAAAAAAAAA=='],
      ['Sec-WebSocket-Version', '13'],
    ]);

  const offering = (request: WireRequest) =>
    withMoreHeaders(request, [
      ['Connection', 'Upgrade, HTTP2-Settings'],
      ['Upgrade', 'h2c'],
      ['HTTP2-Settings', 'AAMAAABkAAQAoAAAAAIAAAAA'],
    ]);

  it('a WebSocket without a proof is denied and destroyed', async () => {
    const { app, events } = await start();
    const { text } = await conversation(app, bytesOf(upgrading(unsigned(signed(ROUTES.whoAmI)))));
    expect([text().slice(0, 12), events]).toEqual(['HTTP/1.1 401', []]);
    expect(text()).toContain('proof_missing');
  });

  it.each<[string, SiteRoute, (request: WireRequest) => WireRequest]>([
    ['on a route that does not say so', ROUTES.readOrder, (request) => upgrading(request)],
    ['to another protocol', ROUTES.whoAmI, (request) => upgrading(request, 'tls/1.0')],
    ['to two protocols', ROUTES.whoAmI, (request) => upgrading(request, 'websocket, tls/1.0')],
    ['by another method', ROUTES.upload, (request) => upgrading(request)],
    ['without a key', ROUTES.whoAmI, (request) => withHeader(upgrading(request), 'sec-websocket-key')],
    ['with a body', ROUTES.whoAmI, (request) => upgrading({ ...request, body: 'x' })],
  ])(
    'an upgrade %s is refused and destroyed, and its proof is not consumed',
    async (_what, route, change) => {
      const { app, events } = await start();
      const request = signed(route);
      const { text } = await conversation(app, bytesOf(change(request)));
      expect([text().slice(0, 12), events]).toEqual(['HTTP/1.1 400', []]);
      expect(text()).toContain('urn:proofgate:fault:upgrade_refused');
      expect((await http1Client(app.address).send(request)).status).toBe(200);
    },
  );

  it('an upgrade over HTTP/1.0 is refused and destroyed, and its proof is not consumed', async () => {
    const { app, events } = await start();
    const request = signed(ROUTES.whoAmI);
    const bytes = bytesOf(upgrading(request)).toString('latin1').replace(' HTTP/1.1', ' HTTP/1.0');
    const { text } = await conversation(app, Buffer.from(bytes, 'latin1'));
    expect([text().slice(8, 12), events]).toEqual([' 400', []]);
    expect(text()).toContain('urn:proofgate:fault:upgrade_refused');
    expect((await http1Client(app.address).send(request)).status).toBe(200);
  });

  it('a verified WebSocket reaches its listener, with the proof, once', async () => {
    const { app, events } = await start();
    const bytes = bytesOf(upgrading(signed(ROUTES.whoAmI)));
    expect((await conversation(app, bytes)).text()).toMatch(/^HTTP\/1\.1 101 /);
    expect((await conversation(app, bytes)).text()).toMatch(/^HTTP\/1\.1 403 [\s\S]*jti_replay/);
    expect(events).toEqual(['upgrade true']);
  });

  it('a verified WebSocket that one protected server hands to another is verified once', async () => {
    const { verifier } = middleware;
    const [first, second] = [verifier.protect(createServer()), verifier.protect(createServer())];
    first.on('upgrade', (...parts) => second.emit('upgrade', ...parts));
    second.on('upgrade', (_request, socket) => socket.end('HTTP/1.1 101 Switching Protocols\r\n\r\n'));
    const app = runningApp(await listening(first));
    apps.push(app);
    const { text } = await conversation(app, bytesOf(upgrading(signed(ROUTES.whoAmI))));
    expect(text()).toMatch(/^HTTP\/1\.1 101 /);
  });

  it('an upgrade without a listener is a request, with bytes that belong to no body', async () => {
    const app = middleware.app('node');
    for (const request of [signed(ROUTES.whoAmI), signed(ROUTES.createOrder, 'body')]) {
      const { body, status } = await http1Client(app.address).send(upgrading(request));
      expect([status, JSON.parse(body.toString()).detail]).toEqual([403, 'body_unavailable']);
    }
  });

  it.each([
    ['GET', ROUTES.whoAmI, undefined],
    ['POST', ROUTES.createOrder, 'one order'],
  ] as const)(
    'an offer of h2c with a %s is ignored, also beside a listener',
    async (_method, route, body) => {
      const { app, events } = await start();
      const request = offering(signed(route, body));
      const { text } = await conversation(app, bytesOf(request, signed(ROUTES.whoAmI)));
      expect([text().slice(0, 12), events]).toEqual(['HTTP/1.1 200', []]);
      // Node.js drops what came with the request, so nothing else is answered.
      expect(text().match(/HTTP\/1\.1/g)).toHaveLength(1);
      expect(text()).toMatch(/connection: close/i);
      const denied = await conversation(app, bytesOf(offering(unsigned(signed(route, body)))));
      expect([denied.text().slice(0, 12), events]).toEqual(['HTTP/1.1 401', []]);
    },
  );

  it.each(KINDS)('no handler sees an offer of h2c: %s', async (kind) => {
    const app = middleware.app(kind);
    const request = offering(signed(ROUTES.createOrder, 'one order'));
    expect((await http1Client(app.address).send(request)).status).toBe(200);
    const [{ body, headers, raw } = { body: '', headers: {}, raw: [] }] = app.handled;
    expect([body.toString(), Object.keys(headers)]).toEqual([
      'one order',
      expect.not.arrayContaining(['upgrade']),
    ]);
    expect(raw).toEqual(expect.not.arrayContaining(['Upgrade']));
  });

  it('what follows an ignored offer on its connection is not handled, whatever a handler wants', async () => {
    const responses: ServerResponse[] = [];
    const { app } = await start((_request, response) => {
      responses.push(response.setHeader('Connection', 'keep-alive'));
    });
    for (const isPending of [true, false]) {
      responses.length = 0;
      const { socket, ended } = open(app);
      socket.write(bytesOf(offering(signed(ROUTES.whoAmI))));
      await waitFor('the first request', () => responses.length === 1);
      if (!isPending) {
        responses[0]?.end('handled');
        await once(socket, 'data');
      }
      socket.write(bytesOf(signed(ROUTES.whoAmI)));
      await ended;
      expect(responses.length).toBe(1);
    }
  });

  it.each(['', 'Connection: Upgrade\r\nUpgrade: h2c\r\n'])('CONNECT is destroyed: %j', async (lines) => {
    const { app, events } = await start();
    const { text } = await conversation(
      app,
      Buffer.from(`CONNECT a.example:443 HTTP/1.1\r\nHost: a.example\r\n${lines}\r\n`),
    );
    expect([text(), events]).toEqual(['', []]);
  });

  it('`Expect` reaches no listener of the application', async () => {
    const { app, events } = await start();
    const expecting = (value: string) =>
      withMoreHeaders(unsigned(signed(ROUTES.readOrder)), [['Expect', value]]);
    expect((await http1Client(app.address).send(expecting('100-continue'))).status).toBe(401);
    expect((await http1Client(app.address).send(expecting('other'))).status).toBe(417);
    expect(events).toEqual([]);
  });
});
