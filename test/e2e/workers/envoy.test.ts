/** Tests how a real Envoy spreads its Checks over workers: by its threads, and by the number of Checks on a connection. */
import { afterAll, beforeAll, expect, it } from '@jest/globals';
import { http1Client } from '../../../src/tools/conformance/wire/http1.ts';
import { envoyVersions, startEnvoy } from '../../support/harness/envoy.ts';
import type { ConfigEdit } from '../../support/harness/envoy-config.ts';
import { closeAtOnce, patient, shipped } from '../../support/harness/envoy-config.ts';
import { TestRedisServer } from '../../support/harness/redis-server.ts';
import { startUpstream, type Upstream } from '../../support/harness/upstream.ts';
import { ProofSource } from '../replay/proof-source.ts';
import { decisionsByWorker, type RunningWorkers, startWorkers } from './worker-fixture.ts';

const WORKERS = 3;
const AT_ONCE = 40;
const REQUESTS = 400;

let redis: TestRedisServer;
let source: ProofSource;
let upstream: Upstream;
let workers: RunningWorkers;
beforeAll(async () => {
  redis = await TestRedisServer.start();
  source = await ProofSource.create();
  upstream = await startUpstream({});
  workers = await startWorkers(source, { redisUrl: redis.url, workers: WORKERS });
});
afterAll(async () => {
  await workers?.service.stop();
  await upstream?.stop();
  await source?.remove();
  await redis?.stop();
});

/** On the cluster of the verifier. */
const streamsOfConnection = (count: number): ConfigEdit => ({
  path: [
    ...shipped.verifierCluster,
    'typed_extension_protocol_options',
    'envoy.extensions.upstreams.http.v3.HttpProtocolOptions',
    'explicit_http_config',
    'http2_protocol_options',
    'max_concurrent_streams',
  ],
  value: count,
});

/** Decisions of each worker for requests that come over many connections at once. */
async function spread(concurrency: number, edits: readonly ConfigEdit[]): Promise<readonly number[]> {
  const [host = '', port] = workers.listen.split(':');
  const envoy = await startEnvoy(envoyVersions[1], {
    verifier: { kind: 'tcp', host, port: Number(port) },
    upstream: { host: upstream.host, port: upstream.port },
    concurrency,
    edits: [closeAtOnce, ...patient, ...edits],
  });
  try {
    const before = decisionsByWorker((await workers.get('/metrics')).text);
    const client = http1Client({ host: envoy.host, port: envoy.port });
    let left = REQUESTS;
    const send = async () => {
      while (left-- > 0) {
        const { status } = await client.send(source.mint().request);
        expect(status).toBe(200);
      }
    };
    await Promise.all(Array.from({ length: AT_ONCE }, send));
    const after = decisionsByWorker((await workers.get('/metrics')).text);
    return [...after]
      .map(([worker, count]) => count - (before.get(worker) ?? 0))
      .filter((count) => count > 0);
  } finally {
    await envoy.stop();
  }
}

it('one thread keeps one connection, so one worker has it all', async () => {
  const counts = await spread(1, []);
  process.stdout.write(`one thread: ${counts}\n`);
  expect(counts).toHaveLength(1);
});

it('one thread that may put few checks on a connection opens more', async () => {
  const counts = await spread(1, [streamsOfConnection(4)]);
  process.stdout.write(`one thread, 4 checks a connection: ${counts}\n`);
  expect(counts).toHaveLength(WORKERS);
});

it('each thread has a connection of its own', async () => {
  const counts = await spread(WORKERS, []);
  process.stdout.write(`${WORKERS} threads: ${counts}\n`);
  expect(counts).toHaveLength(WORKERS);
});
