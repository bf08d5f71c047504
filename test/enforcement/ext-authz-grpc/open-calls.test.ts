/** Tests the ext_authz server's limits on calls and connections, with a client that only obeys the rules of HTTP/2. */
import { once } from 'node:events';
import { type ClientHttp2Session, type ClientHttp2Stream, connect, type Settings } from 'node:http2';
import { connect as connectSocket, type Socket } from 'node:net';
import { gzipSync } from 'node:zlib';
import { afterEach, describe, expect, it } from '@jest/globals';
import type { ExtAuthzServer } from '../../../src/enforcement/ext-authz-grpc/ext-authz-server.ts';
import { CALL_LIMITS, type CallLimits } from '../../../src/process/ext-authz/open-calls.ts';
import type { DecisionTracer } from '../../../src/process/telemetry/decision-trace.ts';
import { CONSUMED, type ReplayOutcome } from '../../../src/verifier/replay/store.ts';
import { scriptedReplayStore } from '../../support/fakes/replay-store.ts';
import { rawCheckRequest } from '../../support/fixtures/check-request.ts';
import { signRequest } from '../../support/fixtures/signed-request.ts';
import {
  CHECK_PATH,
  decodeCheckResponse,
  encodeCheckRequest,
  outcomeOfResponse,
} from '../../support/harness/check-client.ts';
import { useExtAuthzServers } from '../../support/points/check-servers.ts';
import { remainingMs, waitFor } from '../../support/wait.ts';

const MAX_MESSAGE_BYTES = 1024 * 1024;
const WAIT_MS = 20_000;
const TRACE_OF_CHECK = '4bf92f3577b34da6a3ce929d0e0e4736';
const { keys, metrics, open } = useExtAuthzServers(MAX_MESSAGE_BYTES);

let sessions: ClientHttp2Session[] = [];
afterEach(() => {
  for (const session of sessions) session.destroy();
  sessions = [];
});

function newSession({ address }: ExtAuthzServer, settings: Settings = {}): ClientHttp2Session {
  const session = connect(`http://${address}`, { settings });
  // Each stream reports its own errors.
  session.on('error', () => undefined);
  sessions.push(session);
  return session;
}

function begin(
  session: ClientHttp2Session,
  path = CHECK_PATH,
  timeout?: string,
  more: { readonly [name: string]: string } = {},
): ClientHttp2Stream {
  const headers = { ':method': 'POST', ':path': path, 'content-type': 'application/grpc', te: 'trailers' };
  const stream = session.request({
    ...headers,
    ...(timeout && { 'grpc-timeout': timeout }),
    ...more,
  });
  stream.on('error', () => undefined);
  return stream;
}

/** A gRPC message: uncompressed, its length in four bytes. */
function framed(message: Buffer): Buffer {
  const head = Buffer.alloc(5);
  head.writeUInt32BE(message.byteLength, 1);
  return Buffer.concat([head, message]);
}

const validRequest = () =>
  framed(
    encodeCheckRequest(rawCheckRequest(signRequest(keys, { caller: 'billing', route: 'everything' }).wire)),
  );

interface Ended {
  readonly rstCode: number | undefined;
  readonly grpcStatus: string | undefined;
  readonly body: Buffer;
}

async function end(stream: ClientHttp2Stream): Promise<Ended> {
  const chunks: Buffer[] = [];
  let grpcStatus: string | undefined;
  const note = (headers: Record<string, unknown>) => {
    if (headers['grpc-status'] !== undefined) grpcStatus = String(headers['grpc-status']);
  };
  stream.on('data', (chunk: Buffer) => chunks.push(chunk));
  stream.on('response', note);
  stream.on('trailers', note);
  if (!stream.closed) await once(stream, 'close', { signal: AbortSignal.timeout(remainingMs(WAIT_MS)) });
  return { rstCode: stream.rstCode, grpcStatus, body: Buffer.concat(chunks) };
}

/** What was decided, in an RPC that is OK; otherwise its code, or that of the reset. */
function outcomeOf({ body, grpcStatus, rstCode }: Ended): string {
  if (grpcStatus !== '0') return `grpc ${grpcStatus}, reset ${rstCode}`;
  return outcomeOfResponse(decodeCheckResponse(body.subarray(5)));
}

async function checked(session: ClientHttp2Session): Promise<string> {
  const stream = begin(session);
  stream.end(validRequest());
  return outcomeOf(await end(stream));
}

const OVERLOADED = 'verifier_unavailable/overloaded 503';
const UNREADABLE = 'bundle_route_missing/path_not_canonical 403';

/** How often the ext_authz server has refused for that reason since the test began. */
async function refusals(why: string): Promise<number> {
  const text = await metrics.registry.getSingleMetricAsString('proofgate_grpc_refused_total');
  return Number(new RegExp(`\\{why="${why}"\\} (\\d+)`).exec(text)?.[1] ?? 0);
}

/** Checks that ended with that code so far. */
async function handled(code: string): Promise<number> {
  const text = await metrics.registry.getSingleMetricAsString('grpc_server_handled_total');
  return Number(new RegExp(`grpc_method="Check",grpc_code="${code}"\\} (\\d+)`).exec(text)?.[1] ?? 0);
}

const limits = (changed: Partial<CallLimits>) => ({ callLimits: { ...CALL_LIMITS, ...changed } });
const half = (bytes = 100) => validRequest().subarray(0, bytes);

describe('a request that stays incomplete', () => {
  it('is denied after a while, and no other is', async () => {
    const { events, ...extAuthz } = await open(limits({ transferTimeoutMs: 500 }));
    const before = await refusals('slow');
    const session = newSession(extAuthz);
    const silent = begin(session);
    const trickling = begin(session);
    trickling.write(half());
    const ends = [end(silent), end(trickling)];
    expect(await checked(session)).toBe('allowed');
    expect((await Promise.all(ends)).map(outcomeOf)).toEqual([OVERLOADED, OVERLOADED]);
    expect(events.map(({ outcome, detail }) => [outcome, detail])).toEqual([
      ['allowed', undefined],
      ['denied', 'overloaded'],
      ['denied', 'overloaded'],
    ]);
    expect(await checked(session)).toBe('allowed');
    expect(await refusals('slow')).toBe(before + 2);
  });

  it('is reset when its peer does not take the denial', async () => {
    const extAuthz = await open(limits({ transferTimeoutMs: 500 }));
    // RFC 9113 section 6.9.2: no byte of an answer may be sent.
    const session = newSession(extAuthz, { initialWindowSize: 0 });
    expect(outcomeOf(await end(begin(session)))).toBe('grpc undefined, reset 8');
    expect(await checked(newSession(extAuthz))).toBe('allowed');
  });

  it('is ended when its deadline has passed, though its client goes on', async () => {
    const extAuthz = await open();
    const before = await handled('DEADLINE_EXCEEDED');
    const stream = begin(newSession(extAuthz), CHECK_PATH, '50m');
    stream.write(half());
    const ended = await end(stream);
    expect([ended.grpcStatus, ended.rstCode]).toEqual(['4', 0]);
    expect(await handled('DEADLINE_EXCEEDED')).toBe(before + 1);
  });

  it('may not pile up bytes', async () => {
    const maxMessageBytes = 4 * MAX_MESSAGE_BYTES;
    const extAuthz = await open({ ...limits({ maxIncompleteBytes: 2_000_000 }), maxMessageBytes });
    const before = await refusals('bytes');
    const session = newSession(extAuthz);
    const head = Buffer.alloc(5);
    head.writeUInt32BE(3_000_000, 1);
    // Three of a megabyte each, none of them complete.
    const streams = [0, 1, 2].map(() => begin(session));
    const ends = streams.map(end);
    const piece = Buffer.alloc(50_000);
    for (const stream of streams) stream.write(head);
    const pouring = setInterval(() => {
      for (const stream of streams) if (!stream.closed) stream.write(piece);
    }, 10);
    try {
      expect((await Promise.all(ends)).map(outcomeOf)).toEqual(Array(3).fill(OVERLOADED));
    } finally {
      clearInterval(pouring);
    }
    expect(await refusals('bytes')).toBe(before + 3);
    expect(await checked(session)).toBe('allowed');
  });
});

describe('a call whose messages may be compressed', () => {
  it.each(['gzip', 'deflate', 'br'])('is denied, and nothing is unpacked: %s', async (encoding) => {
    const extAuthz = await open();
    const before = await refusals('compressed');
    const session = newSession(extAuthz);
    const stream = begin(session, CHECK_PATH, undefined, { 'grpc-encoding': encoding });
    const bomb = framed(gzipSync(Buffer.alloc(3 * MAX_MESSAGE_BYTES)));
    bomb.writeUInt8(1, 0);
    stream.end(bomb);
    expect(outcomeOf(await end(stream))).toBe(UNREADABLE);
    expect(await refusals('compressed')).toBe(before + 1);
    expect(await checked(session)).toBe('allowed');
  });

  it('is taken when it names no compression', async () => {
    const session = newSession(await open());
    const stream = begin(session, CHECK_PATH, undefined, { 'grpc-encoding': 'identity' });
    stream.end(validRequest());
    expect(outcomeOf(await end(stream))).toBe('allowed');
  });
});

describe('a Check that grpc-js finds fault with', () => {
  it.each<[string, Buffer, string | undefined]>([
    ['no message', Buffer.alloc(0), undefined],
    ['two messages', Buffer.concat([validRequest(), validRequest()]), undefined],
    ['a message over its limit', oversized(), undefined],
    ['a deadline that is none', validRequest(), 'soon'],
  ])('is denied: %s', async (_what, bytes, timeout) => {
    const { events, store, ...extAuthz } = await open();
    const stream = begin(newSession(extAuthz), CHECK_PATH, timeout);
    stream.end(bytes);
    expect(outcomeOf(await end(stream))).toBe(UNREADABLE);
    expect([events.length, store.claims]).toEqual([1, []]);
  });

  function oversized(): Buffer {
    const bytes = Buffer.alloc(100);
    bytes.writeUInt32BE(MAX_MESSAGE_BYTES + 1, 1);
    return bytes;
  }
});

describe('too many', () => {
  it('Checks are denied before they begin', async () => {
    const { events, ...extAuthz } = await open(limits({ maxCalls: 3 }));
    const before = await refusals('calls');
    const session = newSession(extAuthz);
    const held = [begin(session), begin(session), begin(session)];
    expect([await checked(session), await checked(session)]).toEqual([OVERLOADED, OVERLOADED]);
    expect(events).toMatchObject(Array(2).fill({ outcome: 'denied', detail: 'overloaded' }));
    expect(await refusals('calls')).toBe(before + 2);
    for (const stream of held) stream.end(validRequest());
    expect((await Promise.all(held.map(end))).map(outcomeOf)).toEqual(Array(3).fill('allowed'));
    expect(await checked(session)).toBe('allowed');
  });

  it('other calls are refused before they begin', async () => {
    const session = newSession(await open(limits({ maxCalls: 1 })));
    const held = begin(session);
    const refused = begin(session, '/grpc.health.v1.Health/Check');
    // RESOURCE_EXHAUSTED
    expect((await end(refused)).grpcStatus).toBe('8');
    held.end(validRequest());
    expect(outcomeOf(await end(held))).toBe('allowed');
  });

  it('streams on one connection are ruled out when it begins', async () => {
    const session = newSession(await open());
    await once(session, 'remoteSettings');
    expect(session.remoteSettings.maxConcurrentStreams).toBe(1024);
  });

  it('connections are closed at once', async () => {
    const extAuthz = await open({ maxConnections: 2 });
    const before = await refusals('connections');
    const [host, port] = extAuthz.address.split(':');
    const sockets: Socket[] = [];
    const dial = async () => {
      const socket = connectSocket(Number(port), host);
      socket.on('error', () => undefined);
      sockets.push(socket);
      await once(socket, 'connect');
      socket.resume();
      return socket;
    };
    try {
      const first = await dial();
      await dial();
      const third = await dial();
      if (!third.closed) await once(third, 'close');
      expect(await refusals('connections')).toBe(before + 1);
      first.destroy();
      await waitFor('room for another', async () => {
        const session = newSession(extAuthz);
        return (await checked(session)) === 'allowed' ? true : undefined;
      });
    } finally {
      for (const socket of sockets) socket.destroy();
    }
  });
});

describe('a caller that is gone', () => {
  it.each(['a passed deadline', 'a cancelled call'])(
    '%s consumes no jti, and is recorded with its trace',
    async (how) => {
      const answers: ((outcome: ReplayOutcome) => void)[] = [];
      const store = scriptedReplayStore(() => new Promise((resolve) => answers.push(resolve)));
      const { events, ...extAuthz } = await open({}, { store });
      const code = how === 'a passed deadline' ? 'DEADLINE_EXCEEDED' : 'CANCELLED';
      const before = await handled(code);
      const timeout = how === 'a passed deadline' ? '200m' : undefined;
      const traceparent = `00-${TRACE_OF_CHECK}-00f067aa0ba902b7-01`;
      const stream = begin(newSession(extAuthz), CHECK_PATH, timeout, { traceparent });
      stream.end(validRequest());
      await waitFor('the store to be asked', () => (answers.length > 0 ? true : undefined));
      if (how === 'a cancelled call') stream.close(8);
      const ended = await end(stream);
      expect(ended.grpcStatus).toBe(how === 'a passed deadline' ? '4' : undefined);
      await waitFor('the call to be counted', async () =>
        (await handled(code)) > before ? true : undefined,
      );
      answers[0]?.(CONSUMED);
      await waitFor('the record', () => events[0]);
      // The proof was consumed, but no request was let through.
      expect(events).toMatchObject([
        {
          outcome: 'denied',
          reason: 'verifier_unavailable',
          detail: 'overloaded',
          trace_id: TRACE_OF_CHECK,
        },
      ]);
    },
  );

  it('while the process was blocked is not evaluated', async () => {
    const { events, store, ...extAuthz } = await open();
    const session = newSession(extAuthz);
    expect(await checked(session)).toBe('allowed');
    const stream = begin(session, CHECK_PATH, '400m');
    const ended = end(stream);
    stream.end(validRequest());
    // Client and server are one process here: what was written is read after this.
    setImmediate(() => {
      const until = performance.now() + 300;
      while (performance.now() < until);
    });
    const { body } = await ended;
    expect(outcomeOfResponse(decodeCheckResponse(body.subarray(5)))).toBe(
      'verifier_unavailable/overloaded 503',
    );
    expect([store.claims.length, events.length]).toEqual([1, 2]);
  });
});

describe('a traced Check', () => {
  it('has the trace of the call first, then that of the request', async () => {
    const begun: (readonly (string | undefined)[])[] = [];
    const observed: string[] = [];
    const tracer: DecisionTracer = {
      begin: (...parents) => {
        begun.push(parents);
        return {
          stepTook: (step) => observed.push(step),
          decided: ({ outcome, routeId }) => observed.push(`${outcome} ${routeId}`),
        };
      },
      close: async () => undefined,
    };
    const session = newSession(await open({ tracer }));
    const { wire } = signRequest(keys, { caller: 'billing', route: 'everything' });
    const headers = [...wire.headers, { name: 'traceparent', value: 'of the request' }];
    const traced = framed(encodeCheckRequest(rawCheckRequest({ ...wire, headers })));
    for (const [message, traceparent] of [
      [traced, 'of the call'],
      [traced, undefined],
      [validRequest(), undefined],
    ] as const) {
      const stream = begin(session, CHECK_PATH, undefined, traceparent === undefined ? {} : { traceparent });
      stream.end(message);
      await end(stream);
    }
    expect(begun).toEqual([
      ['of the call', 'of the request'],
      [undefined, 'of the request'],
      [undefined, undefined],
    ]);
    expect(observed.slice(0, 3)).toEqual(['pipeline', 'replay', 'allowed everything']);
  });

  it('is recorded with the trace of the call where the request has none', async () => {
    const { events, ...extAuthz } = await open();
    const session = newSession(extAuthz);
    const stream = begin(session, CHECK_PATH, undefined, {
      traceparent: `00-${TRACE_OF_CHECK}-00f067aa0ba902b7-01`,
    });
    stream.end(validRequest());
    await end(stream);
    expect(events).toMatchObject([{ outcome: 'allowed', trace_id: TRACE_OF_CHECK }]);
  });

  it('is decided all the same when its trace cannot begin', async () => {
    const session = newSession(
      await open({ tracer: { begin: () => undefined, close: async () => undefined } }),
    );
    expect(await checked(session)).toBe('allowed');
  });
});

describe('drain', () => {
  it.each([
    ['/grpc.health.v1.Health/Watch', framed(Buffer.alloc(0))],
    ['/grpc.reflection.v1.ServerReflection/ServerReflectionInfo', undefined],
  ])('does not wait for watchers: %s', async (path, message) => {
    const extAuthz = await open({ reflection: true });
    const stream = begin(newSession(extAuthz), path);
    const ended = end(stream);
    if (message === undefined) stream.write(framed(Buffer.from([0x3a, 0])));
    else stream.end(message);
    await once(stream, 'data');
    await extAuthz.drain(WAIT_MS);
    // UNAVAILABLE
    expect((await ended).grpcStatus).toBe('14');
  });
});

it('health reports only changes to a watcher', async () => {
  const extAuthz = await open();
  const stream = begin(newSession(extAuthz), '/grpc.health.v1.Health/Watch');
  const seen: Buffer[] = [];
  stream.on('data', (chunk: Buffer) => seen.push(chunk));
  stream.end(framed(Buffer.alloc(0)));
  const received = () => Buffer.concat(seen).toString('hex');
  const [notServing, serving] = [framed(Buffer.from([8, 2])), framed(Buffer.from([8, 1]))];
  const until = (text: string) => waitFor(text, () => (received() === text ? true : undefined));
  await until(notServing.toString('hex'));
  for (const isServing of [false, true, true, true, false]) extAuthz.setServing(isServing);
  await until(Buffer.concat([notServing, serving, notServing]).toString('hex'));
});
