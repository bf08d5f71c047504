/** Tests the broker's listener: client certificates, no resumed session, and connections that close with their certificate. */
import { execFile } from 'node:child_process';
import { X509Certificate } from 'node:crypto';
import { mkdtemp, rm } from 'node:fs/promises';
import { connect } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createServer as createTlsServer, type SecureVersion } from 'node:tls';
import { afterAll, afterEach, beforeAll, describe, expect, it } from '@jest/globals';
import { createBrokerServer } from '../../../src/broker/program/broker-listener.ts';
import { ClientConnections } from '../../../src/broker/program/client-connections.ts';
import { makeCertificates, type TestCertificates } from '../../support/harness/certificates.ts';
import { remainingMs, waitFor } from '../../support/wait.ts';
import {
  connectWithTls,
  type FixtureOptions,
  fingerprint,
  type ListenerFixture,
  openFixture,
  RawClient,
} from './listener-fixture.ts';

const VERSIONS: readonly SecureVersion[] = ['TLSv1.2', 'TLSv1.3'];
const SPIFFE_ID = 'spiffe://shop.example/billing';

let certificates: TestCertificates;
let folder: string;
let fixture: ListenerFixture | undefined;
const clients: RawClient[] = [];

beforeAll(async () => {
  certificates = await makeCertificates('broker.test', SPIFFE_ID);
  folder = await mkdtemp(join(tmpdir(), 'proofgate-broker-'));
});
afterEach(async () => {
  for (const { socket } of clients.splice(0)) socket.destroy();
  await fixture?.drain(0);
  fixture = undefined;
});
afterAll(async () => {
  await certificates.remove();
  await rm(folder, { recursive: true });
});

function material() {
  const { cert, key } = certificates.server;
  return { cert, key, clientCa: undefined };
}

async function open(options: Partial<FixtureOptions> = {}): Promise<ListenerFixture> {
  fixture = await openFixture({ tls: material(), ...options });
  return fixture;
}

async function connectTo({ port }: ListenerFixture, version: SecureVersion, options = {}) {
  const connected = await connectWithTls(port, version, options);
  clients.push(connected.client);
  return connected;
}

/** The client's certificate and key. */
function svid() {
  const { cert, key } = certificates.client;
  return { cert, key };
}

function certificateEndMs(): number {
  return Date.parse(new X509Certificate(certificates.client.cert).validTo);
}

describe.each(VERSIONS)('%s', (version) => {
  it('shows the certificates as the client presented them, leaf first', async () => {
    const broker = await open();
    const chain = `${certificates.client.cert}${certificates.ca.cert}`;
    const { client } = await connectTo(broker, version, { cert: chain, key: certificates.client.key });
    const expected = [certificates.client, certificates.ca].map(
      ({ cert }) => new X509Certificate(cert).fingerprint256,
    );
    expect(await client.ask()).toEqual({ kind: 'tls', isResumed: false, certificates: expected });
  });

  it('takes a client without a certificate', async () => {
    const { client } = await connectTo(await open(), version);
    expect(await client.ask()).toEqual({ kind: 'tls', isResumed: false, certificates: [] });
  });

  it('resumes no session, also after a change of its own certificate', async () => {
    const broker = await open();
    for (const _ of ['before', 'after']) {
      const first = await connectTo(broker, version, svid());
      expect((await first.client.ask()).certificates).toHaveLength(1);
      // TLS 1.3: the tickets have arrived before the answer.
      const [session] = first.sessions;
      const second = await connectTo(broker, version, { session });
      expect(second.tls.isSessionReused()).toBe(false);
      expect(await second.client.ask()).toEqual({ kind: 'tls', isResumed: false, certificates: [] });
      broker.setTlsMaterial(material());
    }
  });

  it('shows no certificate of a session that was resumed all the same', async () => {
    const connections = new ClientConnections(false, Date.now, () => undefined);
    const http = createBrokerServer((request, response) => {
      const shown = connections.connectionOf(request);
      const certificates = shown.kind === 'tls' ? shown.clientCertificates.map(fingerprint) : undefined;
      response.end(JSON.stringify({ ...shown, clientCertificates: undefined, certificates }));
    });
    const server = createTlsServer(
      { ...material(), requestCert: true, rejectUnauthorized: false },
      (socket) => {
        connections.take(socket);
        http.emit('connection', socket);
      },
    );
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    const address = server.address();
    const port = typeof address === 'object' && address !== null ? address.port : 0;
    try {
      const first = await connectWithTls(port, version, svid());
      clients.push(first.client);
      expect((await first.client.ask()).certificates).toHaveLength(1);
      const second = await connectWithTls(port, version, { session: first.sessions[0] });
      clients.push(second.client);
      expect(second.tls.isSessionReused()).toBe(true);
      expect(await second.client.ask()).toEqual({ kind: 'tls', isResumed: true, certificates: [] });
    } finally {
      server.close();
      http.close();
    }
  });

  it('closes a connection when its certificate ends, after the answer in progress', async () => {
    // Clock: one is idle and one has a request in progress when the certificate ends.
    const broker = await open({ nowMs: () => certificateEndMs() - 300 });
    const idle = await connectTo(broker, version, svid());
    const busy = await connectTo(broker, version, svid());
    await idle.client.ask();
    busy.client.send('/slow');
    await waitFor('the request', async () => broker.slow[0]);
    await idle.client.ended;
    await waitFor('both to close', async () => broker.closed[1]);
    expect(broker.closed).toEqual(['certificate_ended', 'certificate_ended']);
    broker.slow[0]?.end('{}');
    await busy.client.ended;
    expect(busy.client.text).toMatch(/^HTTP\/1\.1 200 OK\r\nconnection: close\r\n/i);
  });

  it('answers on a connection whose certificate had ended before', async () => {
    const broker = await open({ nowMs: () => certificateEndMs() + 1 });
    const { client } = await connectTo(broker, version, svid());
    expect((await client.ask()).certificates).toHaveLength(1);
    expect(broker.closed).toEqual([]);
  });

  it('closes connections with a certificate when trust bundles change, and leaves the others', async () => {
    const broker = await open();
    const [idle, busy, anonymous] = [
      await connectTo(broker, version, svid()),
      await connectTo(broker, version, svid()),
      await connectTo(broker, version),
    ];
    await Promise.all([idle.client.ask(), anonymous.client.ask()]);
    busy.client.send('/slow');
    await waitFor('the request', async () => broker.slow[0]);
    broker.connections.closeCertified();
    expect(broker.closed).toEqual(['bundles_changed', 'bundles_changed']);
    await idle.client.ended;
    expect(busy.client.socket.destroyed).toBe(false);
    broker.slow[0]?.end('{}');
    await busy.client.ended;
    expect(busy.client.text).toMatch(/connection: close/i);
    expect((await anonymous.client.ask()).kind).toBe('tls');
  });
});

/** Runs `openssl s_client` with one request and returns its output. */
async function openssl(port: number, flags: readonly string[], input: string): Promise<string> {
  return new Promise((resolve) => {
    const args = ['s_client', '-connect', `127.0.0.1:${port}`, '-servername', 'broker.test', ...flags];
    const child = execFile('openssl', args, { timeout: remainingMs(10_000) }, (_error, stdout, stderr) =>
      resolve(`${stdout}${stderr}`),
    );
    child.stdin?.on('error', () => undefined);
    child.stdin?.write(input);
    child.stdout?.on('data', (text: string) => {
      if (text.includes('"kind"')) child.stdin?.end();
    });
  });
}

const REQUEST = 'GET / HTTP/1.1\r\nhost: broker\r\nconnection: close\r\n\r\n';

it.each([
  ['-tls1_2', []],
  ['-tls1_2', ['-no_ticket']],
  ['-tls1_3', []],
  ['-tls1_3', ['-no_ticket']],
])('openssl s_client %s %p resumes no session', async (version, ticketFlags) => {
  const { port } = await open();
  const session = join(folder, `session${version}${ticketFlags.length}`);
  const { certPath, keyPath } = certificates.client;
  const flags = [version, ...ticketFlags];
  const first = await openssl(
    port,
    [...flags, '-ign_eof', '-cert', certPath, '-key', keyPath, '-sess_out', session],
    REQUEST,
  );
  expect(first).toContain('"certificates":["');
  const second = await openssl(port, [...flags, '-ign_eof', '-sess_in', session], REQUEST);
  expect(second).toContain('"isResumed":false,"certificates":[]');
  expect(second).not.toContain('Reused,');
});

it('refuses to renegotiate, which could show another certificate (TLS 1.2)', async () => {
  const { port } = await open();
  // The line "R" makes openssl renegotiate.
  const output = await openssl(port, ['-tls1_2'], 'R\n');
  expect(output).toMatch(/no renegotiation|NO_RENEGOTIATION/i);
});

it('says that a connection came over plain HTTP, or over a Unix socket', async () => {
  const overTcp = await open({ tls: undefined });
  const tcp = new RawClient(connect(overTcp.port, '127.0.0.1'));
  clients.push(tcp);
  expect(await tcp.ask()).toEqual({ kind: 'plain' });
  await overTcp.drain(0);
  const path = join(folder, 'broker.sock');
  await open({ tls: undefined, listen: `unix:${path}` });
  const unix = new RawClient(connect(path));
  clients.push(unix);
  expect(await unix.ask()).toEqual({ kind: 'unix_socket' });
});

it('drains: answers requests in progress, closes idle connections, takes no others', async () => {
  const broker = await open({ tls: undefined });
  const [idle, busy] = [connect(broker.port, '127.0.0.1'), connect(broker.port, '127.0.0.1')].map(
    (socket) => {
      const client = new RawClient(socket);
      clients.push(client);
      return client;
    },
  );
  await idle?.ask();
  busy?.send('/slow');
  await waitFor('the request', async () => broker.slow[0]);
  const drained = broker.drain(5_000);
  await idle?.ended;
  broker.slow[0]?.end('{}');
  await busy?.ended;
  await drained;
  expect(busy?.text).toMatch(/connection: close/i);
  const late = new RawClient(connect(broker.port, '127.0.0.1'));
  await late.ended;
  expect(late.text).toBe('');
});

it('ends a drain in time although a request never ends', async () => {
  const broker = await open({ tls: undefined });
  const client = new RawClient(connect(broker.port, '127.0.0.1'));
  clients.push(client);
  client.send('/slow');
  await waitFor('the request', async () => broker.slow[0]);
  await broker.drain(50);
  await client.ended;
  expect(client.text).toBe('');
});
