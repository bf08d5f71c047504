/** Tests the ext_authz server itself, on real sockets: its answers, and input that must not bring it down. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, mkdtempSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { connect, createServer, type Server, type Socket } from 'node:net';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { afterAll, afterEach, describe, expect, it } from '@jest/globals';
import {
  type ExtAuthzServer,
  type ExtAuthzServerOptions,
  ListenError,
  openExtAuthzServer,
} from '../../../src/enforcement/ext-authz-grpc/ext-authz-server.ts';
import { CONSUMED, type ReplayOutcome } from '../../../src/verifier/replay/store.ts';
import { scriptedReplayStore } from '../../support/fakes/replay-store.ts';
import { mergedCheckRequest, rawCheckRequest } from '../../support/fixtures/check-request.ts';
import { type RequestPlan, signRequest, type WireRequest } from '../../support/fixtures/signed-request.ts';
import { createTestVerifier, type TestVerifierOptions } from '../../support/fixtures/test-verifier.ts';
import {
  type CheckClient,
  encodeCheckRequest,
  openCheckClient,
  outcomeOfResponse,
  rpcCode,
} from '../../support/harness/check-client.ts';
import { useExtAuthzServers } from '../../support/points/check-servers.ts';

const MAX_MESSAGE_BYTES = 64 * 1024;
const { keys, metrics, open, snapshot } = useExtAuthzServers(MAX_MESSAGE_BYTES);
const folder = mkdtempSync(path.join(tmpdir(), 'proofgate-ext-authz-'));
const opened: { clients: CheckClient[]; servers: Server[] } = { clients: [], servers: [] };

afterEach(async () => {
  for (const client of opened.clients.splice(0)) client.close();
  for (const server of opened.servers.splice(0)) await new Promise((resolve) => server.close(resolve));
});
afterAll(() => rmSync(folder, { recursive: true }));

interface Fixture {
  readonly extAuthz: ExtAuthzServer;
  readonly client: CheckClient;
}

async function start(
  options: Partial<ExtAuthzServerOptions> = {},
  verifierOptions: TestVerifierOptions = {},
): Promise<Fixture> {
  const extAuthz = await open(options, verifierOptions);
  return { extAuthz, client: newClient(extAuthz.address) };
}

function newClient(address: string): CheckClient {
  const client = openCheckClient(address);
  opened.clients.push(client);
  return client;
}

let sockets = 0;
function socketPath(): string {
  sockets += 1;
  return path.join(folder, `${sockets}.sock`);
}

const wireOf = (plan: RequestPlan = { caller: 'billing', route: 'everything' }): WireRequest =>
  signRequest(keys, plan).wire;

async function outcome(client: CheckClient, wire: WireRequest): Promise<string> {
  return outcomeOfResponse(await client.check(rawCheckRequest(wire)));
}

describe.each(['TCP', 'a Unix socket'])('on %s', (transport) => {
  const listen = () => (transport === 'TCP' ? '127.0.0.1:0' : `unix:${socketPath()}`);

  it('allows once, and denies', async () => {
    const { client, extAuthz } = await start({ listen: listen() });
    expect(extAuthz.address).toMatch(transport === 'TCP' ? /^127\.0\.0\.1:[1-9]\d+$/ : /^unix:\//);
    const wire = wireOf();
    expect(await outcome(client, wire)).toBe('allowed');
    expect(await outcome(client, wire)).toBe('jti_replay 403');
    expect(await outcome(client, { ...wireOf(), target: '/' })).toBe('bundle_route_missing/no_match 403');
    const merged = await client.check(mergedCheckRequest(wireOf()));
    expect(outcomeOfResponse(merged)).toBe('allowed');
  });

  it('answers many at once', async () => {
    const { client } = await start(
      { listen: listen() },
      { store: scriptedReplayStore(async () => CONSUMED) },
    );
    const outcomes = await Promise.all(Array.from({ length: 100 }, () => outcome(client, wireOf())));
    expect(new Set(outcomes)).toEqual(new Set(['allowed']));
  });
});

describe('an answer is an OK RPC', () => {
  it('for a message of nothing', async () => {
    const { client } = await start();
    const response = await client.checkBytes(Buffer.alloc(0));
    expect(outcomeOfResponse(response)).toBe('bundle_route_missing/path_not_canonical 403');
  });

  it('while no bundle is loaded', async () => {
    const { client } = await start({}, { snapshot: undefined });
    expect(await outcome(client, wireOf())).toBe('bundle_policy_missing 503');
    expect(outcomeOfResponse(await client.checkBytes(Buffer.from([0xff])))).toBe('bundle_policy_missing 503');
  });

  it('where the verifier fails, or its decision cannot be encoded', async () => {
    const broken = () => {
      throw new Error('boom');
    };
    const decision = {
      kind: 'allowed',
      decisionId: 'x',
      get route() {
        return broken();
      },
    } as never;
    const checks = [broken, () => decision, async () => decision, async () => broken()];
    for (const check of checks) {
      const errors: unknown[] = [];
      const onInternalError = (error: unknown) => errors.push(error);
      const { client } = await start({ verifier: { check }, onInternalError });
      expect(await outcome(client, wireOf())).toBe('verifier_unavailable/internal 503');
      expect(errors).toEqual([new Error('boom')]);
    }
  });

  it('also when it is larger than what may come in', async () => {
    const { client } = await start({ maxMessageBytes: 8 * 1024 });
    const wire = wireOf();
    const more = Array.from({ length: 200 }, (_, number) => ({
      name: `x-proofgate-${number}-abcdef`,
      value: '',
    }));
    const response = await client.check(rawCheckRequest({ ...wire, headers: [...wire.headers, ...more] }));
    expect(outcomeOfResponse(response)).toBe('allowed');
    expect(response.ok_response?.headers_to_remove).toHaveLength(203);
  });

  it('is counted as one', async () => {
    const counted = async () =>
      (await metrics.registry.getSingleMetricAsString('grpc_server_handled_total')).match(
        /grpc_code="OK"} (\d+)/,
      )?.[1];
    const { client } = await start();
    const before = Number((await counted()) ?? 0);
    await outcome(client, wireOf());
    await client.checkBytes(Buffer.from([0xff, 0xff]));
    expect(Number(await counted())).toBe(before + 2);
  });
});

describe('more than it takes', () => {
  const tooMuch = 'bundle_route_missing/path_not_canonical 403';

  /** A request that would be allowed, made longer by a field that the verifier does not read. */
  function padded(length: number): Buffer {
    const bytes = encodeCheckRequest(rawCheckRequest(wireOf()));
    const lengthBytes = 3;
    const rest = length - bytes.byteLength - 1 - lengthBytes;
    // Field 15, length-delimited, its length in three bytes.
    const varint = [(rest & 0x7f) | 0x80, ((rest >> 7) & 0x7f) | 0x80, rest >> 14];
    return Buffer.concat([bytes, Buffer.from([0x7a, ...varint]), Buffer.alloc(rest)]);
  }

  it('is denied, from the first byte over the limit', async () => {
    const { client } = await start();
    expect(outcomeOfResponse(await client.checkBytes(padded(MAX_MESSAGE_BYTES)))).toBe('allowed');
    expect(outcomeOfResponse(await client.checkBytes(padded(MAX_MESSAGE_BYTES + 1)))).toBe(tooMuch);
    expect(outcomeOfResponse(await client.checkBytes(padded(MAX_MESSAGE_BYTES * 20)))).toBe(tooMuch);
    expect(await outcome(client, wireOf())).toBe('allowed');
  });
});

describe('health and reflection', () => {
  const HEALTH = '/grpc.health.v1.Health/Check';
  const asked = (service: string) => Buffer.from([0x0a, service.length, ...Buffer.from(service)]);
  const SERVING = Buffer.from([0x08, 1]);
  const NOT_SERVING = Buffer.from([0x08, 2]);

  it.each(['', 'envoy.service.auth.v3.Authorization'])(
    'reports for %j the configured status',
    async (service) => {
      const { client, extAuthz } = await start();
      expect(await client.call(HEALTH, asked(service))).toEqual(NOT_SERVING);
      extAuthz.setServing(true);
      expect(await client.call(HEALTH, asked(service))).toEqual(SERVING);
      extAuthz.setServing(false);
      expect(await client.call(HEALTH, asked(service))).toEqual(NOT_SERVING);
    },
  );

  it('knows no other service', async () => {
    const { client } = await start();
    expect(await rpcCode(client.call(HEALTH, asked('other')))).toBe('NOT_FOUND');
    expect(await rpcCode(client.call('/other.Service/Check', Buffer.alloc(0)))).toBe('UNIMPLEMENTED');
  });

  it.each(['v1', 'v1alpha'])('reflection %s lists the service', async (version) => {
    const { client } = await start({ reflection: true });
    const method = `/grpc.reflection.${version}.ServerReflection/ServerReflectionInfo`;
    const answer = await client.stream(method, Buffer.from([0x3a, 0]));
    expect(answer.toString('latin1')).toContain('envoy.service.auth.v3.Authorization');
  });

  it.each(['v1', 'v1alpha'])('reflection %s is not there unless it is asked for', async (version) => {
    const { client } = await start();
    const method = `/grpc.reflection.${version}.ServerReflection/ServerReflectionInfo`;
    expect(await rpcCode(client.stream(method, Buffer.from([0x3a, 0])))).toBe('UNIMPLEMENTED');
  });
});

describe('an address', () => {
  it('that is taken is a ListenError', async () => {
    const { extAuthz } = await start();
    await expect(start({ listen: extAuthz.address })).rejects.toBeInstanceOf(ListenError);
    const onSocket = await start({ listen: `unix:${socketPath()}` });
    await expect(start({ listen: onSocket.extAuthz.address })).rejects.toBeInstanceOf(ListenError);
    expect(await outcome(onSocket.client, wireOf())).toBe('allowed');
  });

  it('that another program listens on is left alone', async () => {
    const socket = socketPath();
    const other = createServer();
    opened.servers.push(other);
    await new Promise<void>((resolve) => other.listen(socket, resolve));
    await expect(start({ listen: `unix:${socket}` })).rejects.toBeInstanceOf(ListenError);
    expect(existsSync(socket)).toBe(true);
  });

  it('of a program too busy to answer is left alone', async () => {
    const socket = socketPath();
    const busy = spawn(process.execPath, ['-e', LISTEN_AND_SAY_SO, socket], {
      stdio: ['ignore', 'pipe', 'inherit'],
    });
    await once(busy.stdout, 'data');
    // It accepts no connections: they queue until the backlog is full.
    busy.kill('SIGSTOP');
    const waiting: Socket[] = [];
    while (!(await isRefusedForNow(socket, waiting))) expect(waiting.length).toBeLessThan(10_000);
    await expect(start({ listen: `unix:${socket}` })).rejects.toBeInstanceOf(ListenError);
    expect(existsSync(socket)).toBe(true);
    for (const connection of waiting) connection.destroy();
    busy.kill('SIGKILL');
    await once(busy, 'exit');
  });

  it('that a killed process left behind is taken over', async () => {
    const socket = socketPath();
    const made = socketPath();
    const other = createServer();
    await new Promise<void>((resolve) => other.listen(made, resolve));
    // Closing a server removes its socket path. Under another name the socket stays, without a listener.
    renameSync(made, socket);
    await new Promise((resolve) => other.close(resolve));
    expect(existsSync(socket)).toBe(true);
    const { client } = await start({ listen: `unix:${socket}` });
    expect(await outcome(client, wireOf())).toBe('allowed');
  });

  it('that is a file is no socket, and stays', async () => {
    const file = socketPath();
    writeFileSync(file, 'precious');
    await expect(start({ listen: `unix:${file}` })).rejects.toBeInstanceOf(ListenError);
    expect(readFileSync(file, 'utf8')).toBe('precious');
  });

  it('in a folder that is not there is a ListenError', async () => {
    const opened = start({ listen: `unix:${folder}/none/x.sock` });
    // And not the system's error, EACCES.
    await expect(opened).rejects.toThrow(new ListenError(`the folder ${folder}/none does not exist`));
  });
});

const LISTEN_AND_SAY_SO =
  "require('net').createServer().listen({ path: process.argv[1], backlog: 1 }, () => console.log('listening'))";

/** Whether the listener's queue is full; otherwise the connection waits in it. */
async function isRefusedForNow(socket: string, waiting: Socket[]): Promise<boolean> {
  const connection = connect(socket);
  waiting.push(connection);
  try {
    await once(connection, 'connect');
    return false;
  } catch (error) {
    expect(error).toMatchObject({ code: 'EAGAIN' });
    return true;
  }
}

it('says once that it is about to listen, when its last library is loaded', async () => {
  const at = socketPath();
  const events: string[] = [];
  const extAuthz = await openExtAuthzServer({
    verifier: createTestVerifier({ snapshot }).verifier,
    metrics,
    bodyMode: 'buffered',
    listen: `unix:${at}`,
    maxMessageBytes: MAX_MESSAGE_BYTES,
    get reflection() {
      events.push('libraries');
      return true;
    },
    beforeListening: () => events.push(existsSync(at) ? 'listening' : 'not listening'),
  });
  expect(events).toEqual(['libraries', 'not listening']);
  expect(await outcome(newClient(extAuthz.address), wireOf())).toBe('allowed');
  await extAuthz.drain(0);
});

describe('drain', () => {
  function pendingStore() {
    let answer: (outcome: ReplayOutcome) => void = () => undefined;
    let asked: () => void = () => undefined;
    const isAsked = new Promise<void>((resolve) => {
      asked = resolve;
    });
    const store = scriptedReplayStore(
      () =>
        new Promise((resolve) => {
          answer = resolve;
          asked();
        }),
    );
    return { store, isAsked, answer: (outcome: ReplayOutcome) => answer(outcome) };
  }

  it.each(['TCP', 'unix'])('finishes what is in flight and takes nothing new (%s)', async (transport) => {
    const { answer, isAsked, store } = pendingStore();
    const listen = transport === 'TCP' ? '127.0.0.1:0' : `unix:${socketPath()}`;
    const { client, extAuthz } = await start({ listen }, { store });
    const inFlight = outcome(client, wireOf());
    await isAsked;
    let isDrained = false;
    const drained = extAuthz.drain(20_000).then(() => {
      isDrained = true;
    });
    expect(await rpcCode(newClient(extAuthz.address).check(rawCheckRequest(wireOf())))).toBe('UNAVAILABLE');
    expect(isDrained).toBe(false);
    answer(CONSUMED);
    expect(await inFlight).toBe('allowed');
    await drained;
    expect(await rpcCode(client.check(rawCheckRequest(wireOf())))).toBe('UNAVAILABLE');
    if (transport === 'unix') expect(existsSync(listen.slice('unix:'.length))).toBe(false);
  });

  it('gives up on what does not end', async () => {
    const { isAsked, store } = pendingStore();
    const { client, extAuthz } = await start({}, { store });
    const inFlight = rpcCode(client.check(rawCheckRequest(wireOf())));
    await isAsked;
    await extAuthz.drain(1);
    expect(await inFlight).toBe('CANCELLED');
  });

  it('ends connections that stay open for nothing', async () => {
    const { extAuthz } = await start();
    const [host, port] = extAuthz.address.split(':');
    const idle = connect(Number(port), host);
    await once(idle, 'connect');
    idle.resume();
    const closed = once(idle, 'close');
    await extAuthz.drain(1);
    await closed;
  });

  it('ends at once where nothing is in flight', async () => {
    const { client, extAuthz } = await start();
    expect(await outcome(client, wireOf())).toBe('allowed');
    await extAuthz.drain(20_000);
  });
});
