/** Tests the limits of TLS handshakes at a real listener: bytes, and what connections can do after their handshake. */
import { once } from 'node:events';
import { connect as connectTcp, type Socket } from 'node:net';
import { type ConnectionOptions, connect, type SecureVersion, type TLSSocket } from 'node:tls';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from '@jest/globals';
import {
  type ConnectionListener,
  openConnectionListener,
} from '../../../src/process/connections/connection-listener.ts';
import { MAX_HANDSHAKE_BYTES } from '../../../src/process/connections/handshake-guard.ts';
import { makeCertificates, type TestCertificates } from '../../support/harness/certificates.ts';
import { waitFor } from '../../support/wait.ts';

const VERSIONS: readonly SecureVersion[] = ['TLSv1.2', 'TLSv1.3'];
const MIB = 1024 * 1024;

let certificates: TestCertificates;
let listener: ConnectionListener;
let refused: string[];
let peers: (string | undefined)[];
const clients: TLSSocket[] = [];

beforeAll(async () => {
  certificates = await makeCertificates('guard.test', 'spiffe://shop.example/billing');
});
afterAll(() => certificates.remove());

/** Echoes what it receives. */
beforeEach(async () => {
  refused = [];
  peers = [];
  const { cert, key } = certificates.server;
  listener = await openConnectionListener({
    listen: '127.0.0.1:0',
    maxConnections: 100,
    protocols: ['http/1.1'],
    tls: { material: { cert, key, clientCa: certificates.ca.cert }, clientNames: [] },
    metrics: { connections: () => undefined, refused: (why) => refused.push(why) },
    onConnection(connection) {
      peers.push(connection.remoteAddress);
      connection.pipe(connection);
    },
  });
});
afterEach(async () => {
  for (const client of clients.splice(0)) client.destroy();
  listener.stop();
  listener.destroy();
  await listener.closed;
});

function portOf({ address }: ConnectionListener): number {
  return Number(/:(\d+)$/.exec(address)?.[1]);
}

function open(version: SecureVersion, options: ConnectionOptions = {}): TLSSocket {
  const { cert, key } = certificates.client;
  const versions = { minVersion: version, maxVersion: version };
  const where = { host: '127.0.0.1', port: portOf(listener), rejectUnauthorized: false };
  const client = connect({ ...where, ...versions, cert, key, ...options });
  client.on('error', () => undefined);
  clients.push(client);
  return client;
}

/** The client's certificate, and the CA's until the chain has `bytes` in DER. */
function chainOf(bytes: number): string {
  const { ca, client } = certificates;
  const derBytes = Buffer.byteLength(ca.cert) * 0.7;
  return client.cert + ca.cert.repeat(Math.ceil(bytes / derBytes));
}

function closeOf(client: Socket): Promise<void> {
  client.on('error', () => undefined).resume();
  return new Promise((resolve) => client.once('close', () => resolve()));
}

async function receive(client: TLSSocket, length: number): Promise<Buffer> {
  const chunks: Buffer[] = [];
  client.on('data', (chunk: Buffer) => chunks.push(chunk));
  const received = () => Buffer.concat(chunks);
  await waitFor('the echo', async () => (received().length >= length ? true : undefined));
  return received();
}

describe.each(VERSIONS)('%s', (version) => {
  it('accepts a chain within the limit, and shows the address of the peer', async () => {
    const client = open(version, { cert: chainOf(MAX_HANDSHAKE_BYTES / 2) });
    client.write('hello');
    expect((await receive(client, 5)).toString()).toBe('hello');
    expect(peers).toEqual(['127.0.0.1']);
  });

  it('refuses a handshake beyond the limit', async () => {
    const client = open(version, { cert: chainOf(MAX_HANDSHAKE_BYTES) });
    await closeOf(client);
    await waitFor('the refusal', async () => refused[0]);
    expect({ peers, refused }).toEqual({ peers: [], refused: ['tls'] });
  });

  it('does not limit what follows the handshake, even in the same packets', async () => {
    const sent = Buffer.alloc(4 * MIB, 'proofgate');
    const client = open(version);
    client.write(sent);
    expect((await receive(client, sent.length)).equals(sent)).toBe(true);
    expect(listener.bytesReceived()).toBeGreaterThan(sent.length);
  });

  it('still answers a client that has ended its side', async () => {
    const sent = Buffer.alloc(MIB, 'x');
    const client = open(version);
    client.end(sent);
    expect((await receive(client, sent.length)).equals(sent)).toBe(true);
  });

  it('still refuses a client without a certificate of the CA', async () => {
    const other = await makeCertificates('guard.test', 'spiffe://shop.example/billing');
    await other.remove();
    for (const { cert, key } of [other.client, other.ca, { cert: '', key: '' }]) {
      await closeOf(open(version, { cert, key }));
    }
    await waitFor('the refusals', async () => refused[2]);
    expect({ peers, refused }).toEqual({ peers: [], refused: ['tls', 'tls', 'tls'] });
  });
});

it('counts a connection that is reset within its handshake', async () => {
  const client = connectTcp(portOf(listener), '127.0.0.1');
  await once(client, 'connect');
  // A TLS record with the beginning of a ClientHello.
  client.write(Buffer.from('16030102000100', 'hex'), () => client.resetAndDestroy());
  await waitFor('the refusal', async () => refused[0]);
  expect(refused).toEqual(['tls']);
});

it('refuses bytes that are no handshake', async () => {
  const client = connectTcp(portOf(listener), '127.0.0.1');
  client.write('GET / HTTP/1.1\r\nhost: a\r\n\r\n');
  await closeOf(client);
  await waitFor('the refusal', async () => refused[0]);
  expect(refused).toEqual(['tls']);
});
