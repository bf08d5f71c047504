/** While bodies are received at the forward-auth server and in middleware: a share for each caller, and one body for a proof. */
import type { Socket } from 'node:net';
import { afterAll, afterEach, beforeAll, describe, expect, it } from '@jest/globals';
import { Registry } from 'prom-client';
import { createExtAuthzHttpMetrics } from '../../src/enforcement/ext-authz-http/ext-authz-http-metrics.ts';
import { openExtAuthzHttpServer } from '../../src/enforcement/ext-authz-http/ext-authz-http-server.ts';
import { CHECK_PATH, HTTP_PROFILES } from '../../src/enforcement/ext-authz-http/profiles.ts';
import { parseTrustedPeers } from '../../src/enforcement/ext-authz-http/trusted-peers.ts';
import type { HeaderLine, WireAddress } from '../../src/tools/conformance/wire/exchange.ts';
import { encodeHttp1, http1Client, openSocket } from '../../src/tools/conformance/wire/http1.ts';
import { recordingReplayStore } from '../support/fakes/replay-store.ts';
import { createTestVerifier } from '../support/fixtures/test-verifier.ts';
import { KINDS } from '../support/points/middleware-apps.ts';
import { useMiddleware } from '../support/points/open-middleware.ts';
import { loadSnapshot } from '../support/points/oracle.ts';
import { attestedCaller, type Caller, derivedKeyCaller } from '../support/site/callers.ts';
import { AUTHORITY, ROUTES } from '../support/site/routes.ts';
import { signedRequest, withMoreHeaders } from '../support/site/signed-request.ts';
import { nowSeconds } from '../support/site/site.ts';
import { waitFor } from '../support/wait.ts';

/** A quarter of the 64 MiB for all bodies. */
const SHARE_BYTES = 16 * 1_048_576;
const middleware = useMiddleware(KINDS, { maxBodyBytes: SHARE_BYTES });

let forwardAuth: Awaited<ReturnType<typeof openExtAuthzHttpServer>>;
beforeAll(async () => {
  const snapshot = await loadSnapshot(middleware.site, middleware.bundle);
  const { internalErrors, verifier } = createTestVerifier({
    currentSnapshot: () => snapshot,
    nowMs: Date.now,
    store: recordingReplayStore(nowSeconds(), 4_000),
  });
  const trustedPeers = parseTrustedPeers(['127.0.0.0/8']);
  forwardAuth = await openExtAuthzHttpServer({
    ...{ verifier, metrics: createExtAuthzHttpMetrics(new Registry()), tracer: undefined, tls: undefined },
    ...{ listen: '127.0.0.1:0', maxBodyBytes: SHARE_BYTES, maxConnections: 100 },
    trustedPeers: 'includes' in trustedPeers ? trustedPeers : undefined,
    reader: {
      ...{ profile: HTTP_PROFILES.traefik, bodyMode: 'forwarded', secret: undefined },
      origin: { scheme: 'http', authority: AUTHORITY },
    },
    onInternalError: (error) => internalErrors.push(error),
  });
});
afterAll(() => forwardAuth?.drain(0));

const sockets: Socket[] = [];
afterEach(() => {
  for (const socket of sockets.splice(0)) socket.destroy();
});

function opened(address: WireAddress, bytes: Uint8Array) {
  let text = '';
  const socket = openSocket(address).on('error', () => undefined);
  socket.on('data', (chunk: Buffer) => {
    text += chunk.toString('latin1');
  });
  sockets.push(socket);
  socket.write(bytes);
  const status = () => /^HTTP\/1\.1 ([2-5]\d\d)/.exec(text)?.[1];
  // The connection of a refused body may be reset, and the answer lost, while the rest is being sent.
  return { socket, text: () => text, status, isRefused: () => status() === '503' || socket.destroyed };
}

const sign = (caller: Caller, more: readonly HeaderLine[] = []) =>
  withMoreHeaders(
    signedRequest(middleware.site, { caller, route: ROUTES.createOrder, body: 'a', framing: 'open' }),
    more,
  );
const ours = () => derivedKeyCaller(middleware.site);

/** The head, and the begin of a body that never ends. */
const withoutEnd = (request: ReturnType<typeof sign>, body: Uint8Array) => {
  const head = encodeHttp1(request);
  return Buffer.concat([head.subarray(0, head.indexOf('\r\n\r\n') + 4), body]);
};

const LONG = Buffer.concat([
  Buffer.from(`${(SHARE_BYTES - 65_536).toString(16)}\r\n`),
  Buffer.alloc(SHARE_BYTES - 65_536),
]);

type Signed = ReturnType<typeof sign>;
const unchanged = (request: Signed) => request;

/** Where a request goes, and what becomes of it on the way. */
const PLACES: readonly (readonly [string, () => WireAddress, (request: Signed) => Signed])[] = [
  [
    'forward-auth server',
    () => ({ host: '127.0.0.1', port: Number(/:(\d+)$/.exec(forwardAuth.address)?.[1]) }),
    // As Traefik asks.
    (request) =>
      withMoreHeaders({ ...request, target: CHECK_PATH }, [
        ['X-Forwarded-Method', request.method],
        ['X-Forwarded-Uri', request.target],
      ]),
  ],
  ...KINDS.map((kind) => [`middleware of ${kind}`, () => middleware.app(kind).address, unchanged] as const),
];

describe.each(PLACES)('%s', (_name, addressOf, asSent) => {
  it('denies a proof whose body is being received, and takes it after that broke off', async () => {
    const address = addressOf();
    const request = asSent(sign(ours(), [['Expect', '100-continue']]));
    const first = opened(address, withoutEnd(request, Buffer.from('1\r\n')));
    await waitFor('leave to go on', () => first.text().includes('100 Continue'));
    const second = opened(address, encodeHttp1(request));
    await waitFor('the denial', () => second.text().includes(' 403 '));
    expect(first.status()).toBeUndefined();
    first.socket.destroy();
    const statusNow = async () => (await http1Client(address).send(request)).status;
    await waitFor('the proof to be free', async () => (await statusNow()) === 200);
    expect(await statusNow()).toBe(403);
  });

  it('gives one caller a quarter of the room, and the rest to others', async () => {
    const address = addressOf();
    const held = [0, 1].map(() => opened(address, withoutEnd(asSent(sign(ours())), LONG)));
    await waitFor('a refusal', () => held.some(({ isRefused }) => isRefused()));
    expect(held.map(({ isRefused }) => isRefused()).sort()).toEqual([false, true]);
    const other = attestedCaller(middleware.site);
    expect((await http1Client(address).send(asSent(sign(other)))).status).toBe(200);
  });
});
