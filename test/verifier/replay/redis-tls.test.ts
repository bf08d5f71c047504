import { afterAll, afterEach, beforeAll, describe, expect, it } from '@jest/globals';
import type { RedisReplayStoreOptions } from '../../../src/verifier/replay/redis.ts';
import { CONSUMED, REPLAYED, type ReplayStore, UNAVAILABLE } from '../../../src/verifier/replay/store.ts';
import { makeCertificates, type TestCertificates } from '../../support/harness/certificates.ts';
import { freePort } from '../../support/harness/free-port.ts';
import { TestRedisServer } from '../../support/harness/redis-server.ts';
import { waitUntil } from '../../support/wait.ts';
import { claimAt } from './claims.ts';
import { nowSeconds, problemOf, TestRedisStores, untilAnswered } from './redis-stores.ts';

/** Servers keep a plain port as well, for the tests' own commands. */
interface TlsServer {
  readonly server: TestRedisServer;
  readonly tlsPort: number;
}

const stores = new TestRedisStores();
let certificates: TestCertificates;
let servers: TestRedisServer[] = [];

beforeAll(async () => {
  certificates = await makeCertificates('redis.test', 'spiffe://example.test/verifier', ['127.0.0.1']);
});
afterAll(() => certificates.remove());
afterEach(async () => {
  await stores.closeAll();
  for (const server of servers) await server.stop();
  servers = [];
});

async function start(settings: readonly string[] = [], sentinel?: readonly string[]): Promise<TlsServer> {
  const tlsPort = await freePort();
  const { ca, server: leaf } = certificates;
  const tls = [
    ...['--tls-port', `${tlsPort}`, '--tls-cert-file', leaf.certPath, '--tls-key-file', leaf.keyPath],
    ...['--tls-ca-cert-file', ca.certPath, '--tls-auth-clients', 'no', '--tls-replication', 'yes'],
  ];
  const server = await TestRedisServer.startWith({
    settings: [...tls, ...settings],
    ...(sentinel === undefined ? {} : { sentinel }),
  });
  servers.push(server);
  return { server, tlsPort };
}

/** With the tests' own authority, unless `options` say otherwise. */
function open(url: string, options: Partial<RedisReplayStoreOptions> = {}): ReplayStore {
  return stores.open(url, { certificateAuthorities: certificates.ca.cert, ...options });
}

async function consumesOnce(store: ReplayStore): Promise<void> {
  const claim = claimAt(nowSeconds());
  // A Cluster takes seconds to form: the verifier's clock advances meanwhile.
  const consume = () => store.consume({ ...claim, nowSeconds: nowSeconds() });
  const outcome = await untilAnswered(consume).catch((error: unknown) => {
    throw new Error(`${error}: ${problemOf(store)}`);
  });
  expect(outcome).toEqual(CONSUMED);
  expect(await consume()).toEqual(REPLAYED);
}

describe('redis over TLS', () => {
  it('consumes', async () => {
    const { tlsPort } = await start();
    await consumesOnce(open(`rediss://127.0.0.1:${tlsPort}`));
  });

  it('trusts only the authorities given', async () => {
    const { server, tlsPort } = await start(['--requirepass', 'verysecret']);
    const other = await makeCertificates('redis.test', 'spiffe://example.test/other');
    try {
      const url = `rediss://:verysecret@127.0.0.1:${tlsPort}`;
      const store = open(url, { certificateAuthorities: other.ca.cert });
      await waitUntil(() => /cannot connect to Redis at .*(?:SIGNATURE|CERT)/.test(problemOf(store)));
      expect(await store.consume(claimAt(nowSeconds()))).toEqual(UNAVAILABLE.store);
      expect(problemOf(store)).not.toMatch(/verysecret/);
      expect(await server.command('PING')).toMatch(/^-NOAUTH/);
    } finally {
      await other.remove();
    }
  });

  it('trusts no other when the environment disables verification', async () => {
    const { tlsPort } = await start();
    process.env.NODE_TLS_REJECT_UNAUTHORIZED = '0';
    try {
      const store = open(`rediss://localhost:${tlsPort}`);
      await waitUntil(() => /ERR_TLS_CERT_ALTNAME_INVALID/.test(problemOf(store)));
      expect(await store.consume(claimAt(nowSeconds()))).toEqual(UNAVAILABLE.store);
    } finally {
      delete process.env.NODE_TLS_REJECT_UNAUTHORIZED;
    }
  });

  it('wants the certificate to name the host', async () => {
    const { tlsPort } = await start();
    // An address of this machine that is not in the certificate.
    const store = open(`rediss://localhost:${tlsPort}`);
    await waitUntil(() => /ERR_TLS_CERT_ALTNAME_INVALID/.test(problemOf(store)));
    expect(await store.consume(claimAt(nowSeconds()))).toEqual(UNAVAILABLE.store);
  });

  it('does not fall back: TLS to a plain port and plain to a TLS port are refused', async () => {
    const { server, tlsPort } = await start();
    for (const url of [`rediss://127.0.0.1:${server.port}`, `redis://127.0.0.1:${tlsPort}`]) {
      const store = open(url, { connectTimeoutMs: 300 });
      await waitUntil(() => !problemOf(store).startsWith('connecting'));
      expect(await store.consume(claimAt(nowSeconds()))).toEqual(UNAVAILABLE.store);
    }
  });

  it('speaks TLS to Sentinels and to the primary that they name, each with its own login', async () => {
    const primary = await start(['--requirepass', 'data-secret', '--masterauth', 'data-secret']);
    const sentinel = await start(
      ['--requirepass', 'sentinel-secret'],
      [`sentinel monitor replay 127.0.0.1 ${primary.tlsPort} 1`, 'sentinel auth-pass replay data-secret'],
    );
    const url = `rediss-sentinel://:data-secret@127.0.0.1:${sentinel.tlsPort}/replay`;
    const login = (password: string) => ({
      sentinelLogin: { username: undefined, revealPassword: () => password },
    });
    await consumesOnce(open(url, login('sentinel-secret')));
    const stranger = open(url, login('guessed-wrong'));
    await waitUntil(() => /no Sentinel names the primary replay: .*\(WRONGPASS\)/.test(problemOf(stranger)));
    const silent = open(url);
    await waitUntil(() => /no Sentinel names the primary replay: .*\(NOAUTH\)/.test(problemOf(silent)));
    expect(problemOf(stranger) + problemOf(silent)).not.toMatch(/secret|guessed/);
  });

  it('speaks TLS to all nodes of a Cluster', async () => {
    const settings = async () => [
      ...['--cluster-enabled', 'yes', '--tls-cluster', 'yes', '--cluster-port', `${await freePort()}`],
      ...['--min-replicas-to-write', '1', '--repl-diskless-sync-delay', '0'],
    ];
    const primary = await start(await settings());
    const busPort = await freePort();
    const replica = await start([...(await settings()), '--cluster-port', `${busPort}`]);
    await primary.server.ask('CLUSTER', 'ADDSLOTSRANGE', '0', '16383');
    await primary.server.ask('CLUSTER', 'MEET', '127.0.0.1', `${replica.tlsPort}`, `${busPort}`);
    const id = String(await primary.server.ask('CLUSTER', 'MYID'));
    const replicate = () => replica.server.ask('CLUSTER', 'REPLICATE', id).catch(() => '');
    await waitUntil(async () => (await replicate()) === 'OK');
    await consumesOnce(open(`rediss-cluster://127.0.0.1:${replica.tlsPort}`));
  });
});
