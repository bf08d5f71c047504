/**
 * A server under load, as a child process of the benchmark: the broker's application over TLS, or the floor. The floor asks for
 * the same client certificate, reads the body and answers with one Ed25519 signature; it verifies nothing.
 * It gets a {@link ServerJob} as its first message, answers with its port, and after that each message with its CPU time.
 */
import { constants, createPrivateKey, sign } from 'node:crypto';
import type { RequestListener } from 'node:http';
import { createServer, type Server } from 'node:https';
import type { AddressInfo } from 'node:net';
import { TLSSocket } from 'node:tls';
import { pino } from 'pino';
import { Registry } from 'prom-client';
import { createBrokerApp } from '../../src/broker/api/broker-app.ts';
import { createBrokerMetrics } from '../../src/broker/broker-metrics.ts';
import type { Connection } from '../../src/broker/broker-ports.ts';
import { parseDenyList } from '../../src/broker/deny-list.ts';
import { parseSoftwareKeys } from '../../src/broker/software-keys.ts';
import { signMessage } from '../../src/protocol/signature.ts';
import { parseSigningKey } from '../../src/protocol/signing.ts';
import { readBundleJson } from '../../src/spiffe/bundles/bundle-document.ts';
import { BundleStore } from '../../src/spiffe/bundles/bundle-store.ts';

export interface ServerJob {
  readonly kind: 'broker' | 'floor';
  readonly brokerUrl: string;
  readonly trustDomain: string;
  /** PEM. */
  readonly tls: { readonly cert: string; readonly key: string };
  readonly signingKey: string;
  readonly bundle: unknown;
  /** YAML. */
  readonly softwareKeys: string;
}

const tlsServer = (job: ServerJob, handler: RequestListener): Server =>
  createServer(
    { ...job.tls, requestCert: true, rejectUnauthorized: false, secureOptions: constants.SSL_OP_NO_TICKET },
    handler,
  );

/** As in `proofgate broker`: read once for each connection. */
const connections = new WeakMap<TLSSocket, Connection>();

function connectionOf(socket: unknown): Connection {
  if (!(socket instanceof TLSSocket)) return { kind: 'plain' };
  const known = connections.get(socket) ?? readConnection(socket);
  connections.set(socket, known);
  return known;
}

function readConnection(socket: TLSSocket): Connection {
  const leaf = socket.getPeerX509Certificate();
  return {
    kind: 'tls',
    clientCertificates: leaf === undefined ? [] : [leaf.raw],
    isResumed: socket.isSessionReused(),
  };
}

async function startBroker(job: ServerJob): Promise<Server> {
  const bundles = new BundleStore();
  const read = readBundleJson(job.bundle);
  if (read.kind !== 'bundle') throw new Error(read.text);
  bundles.addSource()([{ trustDomain: job.trustDomain, ...read }]);
  const { privateKey, publicKey } = parseSigningKey(job.signingKey);
  const key = {
    keyId: 'bench-1',
    trustDomain: job.trustDomain,
    publicKey,
    sign: async (bytes: Uint8Array) => signMessage(publicKey.algorithm, privateKey, bytes),
  };
  let server: Server | undefined;
  const unlimited = 1_000_000_000;
  const app = await createBrokerApp({
    settings: {
      publicUrl: job.brokerUrl,
      issuer: job.brokerUrl,
      passportTtlSeconds: 300,
      acceptsJwtSvids: false,
      servesProofs: false,
      limits: {
        requestsPerSecondPerAddress: unlimited,
        requestsPerSecondPerIdentity: unlimited,
        holderKeysPerIdentity: 8,
      },
    },
    ports: {
      signingKeys: { current: () => key, published: () => [key], trustDomains: () => [job.trustDomain] },
      trustBundles: bundles,
      softwareKeys: parseSoftwareKeys(job.softwareKeys),
      denyList: parseDenyList('{}'),
      signingProfiles: { fitting: () => [] },
      challengeKeys: () => [Buffer.alloc(32, 1)],
      connectionOf: ({ socket }) => connectionOf(socket),
      audit: { record: (event) => JSON.stringify(event).length > 0 },
      metrics: createBrokerMetrics(new Registry()),
      nowMs: Date.now,
    },
    log: pino({ level: 'silent' }),
    createServer: (handler) => {
      server = tlsServer(job, handler);
      return server;
    },
  });
  await app.listen({ host: '127.0.0.1', port: 0 });
  if (server === undefined) throw new Error('the application created no server');
  return server;
}

async function startFloor(job: ServerJob): Promise<Server> {
  const key = createPrivateKey(job.signingKey);
  const message = Buffer.alloc(500, 1);
  const server = tlsServer(job, (request, response) => {
    request.resume().on('end', () => {
      const passport = `${message.toString('base64url')}.${sign(null, message, key).toString('base64url')}`;
      response.writeHead(200, { 'content-type': 'application/json' }).end(JSON.stringify({ passport }));
    });
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  return server;
}

process.once('message', async (job: ServerJob) => {
  const server = await (job.kind === 'broker' ? startBroker(job) : startFloor(job));
  process.send?.((server.address() as AddressInfo).port);
  process.on('message', () => {
    const { system, user } = process.cpuUsage();
    process.send?.(user + system);
  });
});
process.on('disconnect', () => process.exit(0));
