/** Verifier settings. Source: docs/cli.md. */

import {
  choice,
  duration,
  integer,
  list,
  optional,
  required,
  requiredList,
  type SettingValues,
  text,
  toggle,
  withDefault,
} from '../../program/settings.ts';
import { LOG_LEVELS } from '../../telemetry/log-level.ts';
import { DECISION_SETTINGS, FRESHNESS_SIGNERS } from './decision-settings.ts';

export const VERIFIER_SETTINGS = {
  authSite: required(text('--auth-site <name>', 'the Auth Site that this verifier serves')),
  bundle: optional(
    text('--bundle <directory>', 'where the signed bundle lies; watched; not needed with --control-url'),
  ),
  controlUrl: optional(text('--control-url <url>', 'Control to follow in the background')),
  controlTokenFile: optional(
    text('--control-token-file <file>', "the target's token; read anew for each request to Control"),
  ),
  controlCaFile: optional(text('--control-ca-file <file>', 'certificates (PEM) to trust Control by')),
  allowPlainHttp: toggle(
    '--allow-plain-http',
    'let tokens and audit events cross a network in the clear',
    false,
  ),
  bundleKeys: requiredList(text('--bundle-key <file>', 'public key (JWK or PEM) that signs bundles')),
  bundleThreshold: withDefault(
    integer('--bundle-threshold <count>', 'how many of the bundle keys must have signed', {
      min: 1,
      max: 16,
    }),
    '1',
  ),
  ...FRESHNESS_SIGNERS,
  stateDir: required(
    text('--state-dir <directory>', 'keeps the highest revision ever accepted, and what came from Control'),
  ),
  listen: withDefault(
    text('--listen <address>', 'where Envoy reaches it: HOST:PORT or unix:PATH'),
    '127.0.0.1:9191',
  ),
  tlsCertFile: optional(text('--tls-cert-file <file>', 'certificate (PEM) of the gRPC port; followed')),
  tlsKeyFile: optional(text('--tls-key-file <file>', 'private key (PEM) of that certificate')),
  tlsClientCaFile: optional(
    text('--tls-client-ca-file <file>', 'certificates (PEM) that clients of the gRPC port must be of'),
  ),
  tlsClientSans: list(
    text('--tls-client-san <name>', 'URI or DNS name that a client certificate must have; default: any'),
  ),
  maxConnections: withDefault(
    integer('--max-connections <count>', 'most connections to the gRPC port at a time', {
      min: 1,
      max: 65_536,
    }),
    '1024',
  ),
  grpcReflection: toggle('--grpc-reflection', 'let the gRPC port describe its services', false),
  adminListen: withDefault(
    text('--admin-listen <address>', '/livez, /readyz and /metrics, as HOST:PORT'),
    '127.0.0.1:9192',
  ),
  replay: required(
    text(
      '--replay <store>',
      'memory (one verifier process, bundle says single_verifier), or redis://…, redis-sentinel://…, redis-cluster://…',
    ),
  ),
  redisTimeoutMs: optional(
    duration('--redis-timeout <duration>', 'within this long Redis must answer (default: 100ms)', {
      minMs: 10,
      maxMs: 10_000,
    }),
  ),
  redisCaFile: optional(text('--redis-ca-file <file>', 'certificates (PEM) to trust with rediss://')),
  redisSentinelUser: optional(text('--redis-sentinel-user <name>', 'user name that the Sentinels want')),
  redisSentinelPasswordFile: optional(
    text('--redis-sentinel-password-file <file>', 'password that the Sentinels want, one line'),
  ),
  redisMinReplicasToWrite: optional(
    integer('--redis-min-replicas-to-write <count>', 'of every Redis, where CONFIG GET is forbidden', {
      min: 0,
      max: 1_000,
    }),
  ),
  redisMinReplicasMaxLagMs: optional(
    duration('--redis-min-replicas-max-lag <duration>', 'of every Redis, where CONFIG GET is forbidden'),
  ),
  redisClusterNodeTimeoutMs: optional(
    duration('--redis-cluster-node-timeout <duration>', 'of every Redis, where CONFIG GET is forbidden'),
  ),
  holderQuota: withDefault(
    integer('--holder-quota <count>', 'most requests of one key a minute', { min: 1, max: 1_000_000_000 }),
    '600000',
  ),
  maxReplayRecords: optional(
    integer(
      '--max-replay-records <count>',
      'with --replay memory: most proofs remembered (default: 1000000)',
      {
        min: 1000,
        max: 50_000_000,
      },
    ),
  ),
  ...DECISION_SETTINGS,
  auditFile: optional(
    text(
      '--audit-file <file>',
      'where decisions are recorded, JSON lines; - (the default without --audit-url) is standard output',
    ),
  ),
  auditUrl: optional(text('--audit-url <url>', 'collector that decisions are sent to in batches')),
  auditTokenFile: optional(
    text('--audit-token-file <file>', "the collector's token; read anew for each batch"),
  ),
  auditCaFile: optional(text('--audit-ca-file <file>', 'certificates (PEM) to trust the collector by')),
  auditGzip: toggle('--audit-gzip', 'compress what is sent to the collector', false),
  auditQueueBytes: withDefault(
    integer('--audit-queue-bytes <count>', 'most bytes of decisions that may wait to be written or sent', {
      min: 65_536,
      max: 1_073_741_824,
    }),
    '16777216',
  ),
  audit: withDefault(
    choice('--audit <mode>', 'required refuses what cannot be recorded', ['best-effort', 'required']),
    'best-effort',
  ),
  maxMessageBytes: withDefault(
    integer('--max-message-bytes <count>', 'most bytes of one check: headers and buffered body', {
      min: 65_536,
      max: 268_435_456,
    }),
    '4194304',
  ),
  otlpEndpoint: optional(
    text('--otlp-endpoint <url>', 'OpenTelemetry collector (OTLP over HTTP) that sampled decisions go to'),
  ),
  maxInFlight: withDefault(
    integer('--max-in-flight <count>', 'most checks that may wait for the replay store', {
      min: 1,
      max: 1_000_000,
    }),
    '1024',
  ),
  workers: withDefault(
    integer('--workers <count>', 'verifier processes behind the one address; more than 1 needs Redis', {
      min: 1,
      max: 64,
    }),
    '1',
  ),
  drainDelayMs: withDefault(
    duration(
      '--drain-delay <duration>',
      'how long SIGTERM still lets checks in while health already says no, 0s to 1h',
      { minMs: 0, maxMs: 3_600_000 },
    ),
    '0s',
  ),
  drainTimeoutMs: withDefault(
    duration('--drain-timeout <duration>', 'most time that SIGTERM leaves to checks in flight'),
    '10s',
  ),
  logLevel: withDefault(
    choice('--log-level <level>', 'how much the log on standard error says', LOG_LEVELS),
    'info',
  ),
};

export type VerifierSettings = SettingValues<typeof VERIFIER_SETTINGS>;
