/** Verifiers on one Redis, behind a real Envoy, that replace one another under load. */
import { mkdtemp } from 'node:fs/promises';
import { join } from 'node:path';
import { envoyVersions, type RunningEnvoy, startEnvoy } from '../../support/harness/envoy.ts';
import {
  type ConfigEdit,
  closeAtOnce,
  patient,
  shipped,
  type VerifierAddress,
} from '../../support/harness/envoy-config.ts';
import { freePort } from '../../support/harness/free-port.ts';
import { TestRedisServer } from '../../support/harness/redis-server.ts';
import { type Service, startProofgate } from '../../support/harness/sidecar.ts';
import { startUpstream, type Upstream } from '../../support/harness/upstream.ts';
import { AUTH_SITE, ProofSource } from '../replay/proof-source.ts';

/**
 * Whether Envoy and verifiers wait as long as they are shipped to (`PROOFGATE_TEST_TIMEOUTS=shipped`), on a machine that does nothing else. A
 * machine that is busy testing is late for its own reasons, and would refuse good requests for them.
 */
export const HAS_SHIPPED_TIMEOUTS = process.env.PROOFGATE_TEST_TIMEOUTS === 'shipped';

/** Edits for a second verifier, which Envoy asks for its health, too. */
export function besideVerifier(port: number): readonly ConfigEdit[] {
  return [
    // A machine that is busy testing answers late: that is no verifier that has gone.
    ...(HAS_SHIPPED_TIMEOUTS
      ? []
      : [{ path: [...shipped.verifierCluster, 'health_checks', 0, 'timeout'], value: '8s' }]),
    {
      path: [...shipped.verifierCluster, 'load_assignment', 'endpoints', 0, 'lb_endpoints', 1],
      value: { endpoint: { address: { socket_address: { address: '127.0.0.1', port_value: port } } } },
    },
  ];
}

export interface RollStageOptions {
  readonly verifier: VerifierAddress;
  readonly edits?: readonly ConfigEdit[];
  readonly healthChecks?: boolean;
}

export class RollStage {
  readonly redis: TestRedisServer;
  readonly source: ProofSource;
  readonly upstream: Upstream;
  #envoy: RunningEnvoy | undefined;
  readonly #verifiers = new Set<Service>();

  private constructor(redis: TestRedisServer, source: ProofSource, upstream: Upstream) {
    this.redis = redis;
    this.source = source;
    this.upstream = upstream;
  }

  static async set(): Promise<RollStage> {
    const upstream = await startUpstream({ answer: 'short' });
    return new RollStage(await TestRedisServer.start(), await ProofSource.create(), upstream);
  }

  get envoy(): RunningEnvoy {
    if (this.#envoy === undefined) throw new Error('there is no Envoy');
    return this.#envoy;
  }

  /** Two threads, so that there are connections to lose. */
  async startEnvoy({ verifier, edits = [], healthChecks = false }: RollStageOptions): Promise<void> {
    this.#envoy = await startEnvoy(envoyVersions[1], {
      verifier,
      upstream: { host: this.upstream.host, port: this.upstream.port },
      concurrency: 2,
      healthChecks,
      edits: [closeAtOnce, ...(HAS_SHIPPED_TIMEOUTS ? [] : patient), ...edits],
    });
  }

  /** A verifier that is ready, on its port. */
  async startVerifier(port: number, flags: readonly string[] = []): Promise<Service> {
    const folder = await mkdtemp(join(this.source.directory, 'verifier-'));
    const admin = `127.0.0.1:${await freePort()}`;
    const verifier = await startProofgate(
      [
        ...['verifier', '--auth-site', AUTH_SITE, '--state-dir', folder],
        ...(HAS_SHIPPED_TIMEOUTS ? [] : ['--redis-timeout', '7s']),
        ...['--bundle', this.source.bundleDirectory, '--bundle-key', this.source.bundleKeyFile],
        ...['--listen', `127.0.0.1:${port}`, '--admin-listen', admin, '--audit-file', join(folder, 'audit')],
        ...flags,
      ],
      {
        env: { PROOFGATE_REPLAY: this.redis.url },
        readyUrl: `http://${admin}/readyz`,
      },
    );
    this.#verifiers.add(verifier);
    return verifier;
  }

  /** SIGTERM, and an orderly end. */
  async stopVerifier(verifier: Service): Promise<void> {
    this.#verifiers.delete(verifier);
    await verifier.stop();
  }

  async strike(): Promise<void> {
    for (const verifier of this.#verifiers) await verifier.stop();
    await this.#envoy?.stop();
    await this.upstream.stop();
    await this.source.remove();
    await this.redis.stop();
  }
}
