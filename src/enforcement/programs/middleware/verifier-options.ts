/**
 * Options of `Verifier.open`: docs/operate/middleware.md. They are separate from the code that reads them, so that
 * their declarations refer to nothing else.
 */
import type { Logger } from '../../../process/telemetry/log.ts';

export interface VerifierOptions {
  /** The Auth Site whose bundle decides. */
  readonly authSite: string;
  /** The origin that callers sign, such as `https://api.example`. Requests for another `Host` are denied. */
  readonly externalOrigin: string;
  /** Directory for the highest accepted revision and for bundles from Control. It must exist; each process needs its own. */
  readonly stateDir: string;
  /** Files with the public keys (JWK or PEM) that sign bundles. */
  readonly bundleKeys: readonly string[];
  /** Number of bundle keys that must have signed. Default 1. */
  readonly bundleThreshold?: number | undefined;
  /** Files with the public keys that sign freshness statements. Default: the bundle keys. */
  readonly freshnessKeys?: readonly string[] | undefined;
  /** Number of freshness keys that must have signed. Default 1. */
  readonly freshnessThreshold?: number | undefined;
  /** Files with the public keys that sign break-glass statements, and nothing else. */
  readonly breakGlassKeys?: readonly string[] | undefined;
  /** File of the break-glass statement, watched for changes. It need not exist. */
  readonly breakGlassFile?: string | undefined;
  /** URL of the Control that delivers bundles. At least one of this and `bundle` is required. */
  readonly controlUrl?: string | undefined;
  /** File with the target's token for Control; read again for each request. */
  readonly tokenFile?: string | undefined;
  /** CA certificates (PEM) for the connection to Control. */
  readonly controlCaFile?: string | undefined;
  /** Directory of the signed bundle, watched for changes. */
  readonly bundle?: string | undefined;
  /** Allows plain HTTP for tokens and audit events. Default false. */
  readonly allowPlainHttp?: boolean | undefined;
  /** `memory` (one process, and a bundle with `single_verifier: true`), or `redis://…`, `redis-sentinel://…`, `redis-cluster://…`. */
  readonly replay: string;
  /** Maximum number of stored proofs, with `memory`. Default 1,000,000. */
  readonly maxReplayRecords?: number | undefined;
  /** Maximum time for an answer of Redis. Default 100. */
  readonly redisTimeoutMs?: number | undefined;
  /** File with the password for Redis, if the URL has none. */
  readonly redisPasswordFile?: string | undefined;
  /** CA certificates (PEM) to trust with `rediss://`. */
  readonly redisCaFile?: string | undefined;
  /** User name for the Sentinels. */
  readonly redisSentinelUser?: string | undefined;
  /** File with the password for the Sentinels. */
  readonly redisSentinelPasswordFile?: string | undefined;
  /** `min-replicas-to-write` of every Redis, if `CONFIG GET` is forbidden. */
  readonly redisMinReplicasToWrite?: number | undefined;
  /** `min-replicas-max-lag` of every Redis, if `CONFIG GET` is forbidden. */
  readonly redisMinReplicasMaxLagMs?: number | undefined;
  /** `cluster-node-timeout` of every Redis, if `CONFIG GET` is forbidden. */
  readonly redisClusterNodeTimeoutMs?: number | undefined;
  /** File with the keys of nonces for DPoP, the same for every process. Default: a random one, for a single process. */
  readonly dpopNonceKeyFile?: string | undefined;
  /** Maximum number of requests of one key in a minute. Default 600,000. */
  readonly holderQuota?: number | undefined;
  /** Maximum number of requests of one issuer and subject in a minute. Default 1,200,000. */
  readonly subjectQuota?: number | undefined;
  /** Maximum age of the bundle on realtime routes. Default 10,000. */
  readonly realtimeStalenessMs?: number | undefined;
  /** Maximum number of requests that wait for the replay store. Default 1024. */
  readonly maxInFlight?: number | undefined;
  /** Maximum size of a bound body; a larger one is answered with 413. Default 1 MiB. */
  readonly maxBodyBytes?: number | undefined;
  /** `required`: deny a request whose audit event cannot be written. Default `best-effort`. */
  readonly audit?: 'best-effort' | 'required' | undefined;
  /** File for audit events, JSON lines. `-`, the default without `auditUrl`, is standard output. */
  readonly auditFile?: string | undefined;
  /** Collector that receives audit events in batches. */
  readonly auditUrl?: string | undefined;
  /** File with the collector's token; read again for each batch. */
  readonly auditTokenFile?: string | undefined;
  /** CA certificates (PEM) for the connection to the collector. */
  readonly auditCaFile?: string | undefined;
  /** Compresses requests to the collector. Default false. */
  readonly auditGzip?: boolean | undefined;
  /** Maximum size of queued audit events. Default 16 MiB. */
  readonly auditQueueBytes?: number | undefined;
  /** Directory for denied requests, the newest 1,000 or 64 MiB, without secrets; `proofgate explain` reads them. */
  readonly captureDenied?: string | undefined;
  /** Writes these requests whole, with passports, proofs, headers and bodies. Default false. */
  readonly captureCredentials?: boolean | undefined;
  /**
   * `ROUTE=TIME`: denied requests of the route run their handlers without a proof until then, if the bundle also says observe. Times
   * are in UTC, such as `2026-12-05T00:00:00Z`, at most 30 days ahead.
   */
  readonly allowObserve?: readonly string[] | undefined;
  /** The same for requests that no route matches. */
  readonly allowObserveUnmatched?: string | undefined;
  /** File that keeps the shapes of paths that no route matches. */
  readonly observePathsFile?: string | undefined;
  /** Receives log lines, such as pino or `console`. Default: none are written. */
  readonly logger?: Logger | undefined;
}
