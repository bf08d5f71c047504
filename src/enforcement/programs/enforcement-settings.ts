/** Settings that every program with a verifier has. Source: docs/operate/cli.md. */

import { usageError } from '../../process/program/errors.ts';
import { adminListenSetting } from '../../process/settings/listen-address.ts';
import {
  duration,
  integer,
  list,
  optional,
  parsed,
  required,
  requiredList,
  type SettingValues,
  text,
  toggle,
  withDefault,
} from '../../process/settings/settings.ts';
import type { SHUTDOWN_SETTINGS } from '../../process/settings/shutdown-settings.ts';
import { isIdentifier } from '../../protocol/identifiers.ts';
import type { AUDIT_SETTINGS } from '../../verifier/assembly/audit-settings.ts';
import { FRESHNESS_SIGNERS, type ORIGIN_AND_STALENESS } from './decision-settings.ts';
import type { DPOP_SETTINGS } from './dpop-settings.ts';
import type { OBSERVATION_SETTINGS } from './observation-settings.ts';

/** The Auth Site and its bundle. */
export const BUNDLE_SETTINGS = {
  authSite: required(
    parsed(text('--auth-site <name>', 'the Auth Site that this verifier serves'), parseAuthSite),
  ),
  bundle: optional(
    text(
      '--bundle <directory>',
      'directory of the signed bundle, watched for changes; not needed with --control-url',
    ),
  ),
  controlUrl: optional(text('--control-url <url>', 'URL of the Control that delivers bundles')),
  controlTokenFile: optional(
    text('--control-token-file <file>', "the target's token; read again for each request to Control"),
  ),
  controlCaFile: optional(
    text('--control-ca-file <file>', 'CA certificates (PEM) for the connection to Control'),
  ),
  allowPlainHttp: toggle('--allow-plain-http', 'allow plain HTTP for tokens and audit events', false),
  bundleKeys: requiredList(text('--bundle-key <file>', 'public key (JWK or PEM) that signs bundles')),
  bundleThreshold: withDefault(
    integer('--bundle-threshold <count>', 'number of bundle keys that must have signed', {
      min: 1,
      max: 16,
    }),
    '1',
  ),
  ...FRESHNESS_SIGNERS,
  breakGlassKeys: list(
    text('--break-glass-key <file>', 'public key that signs break-glass statements, and nothing else'),
  ),
  breakGlassFile: optional(
    text(
      '--break-glass-file <file>',
      'file of the break-glass statement, watched for changes; need not exist',
    ),
  ),
  stateDir: required(
    text(
      '--state-dir <directory>',
      'directory for the highest accepted revision and for bundles from Control',
    ),
  ),
};

/** Admin listener and replay store. */
export const ADMIN_AND_REPLAY_SETTINGS = {
  adminListen: adminListenSetting('127.0.0.1:9192'),
  replay: required(
    text(
      '--replay <store>',
      'memory (one verifier process, bundle says single_verifier), or redis://…, redis-sentinel://…, redis-cluster://…',
    ),
  ),
  redisTimeoutMs: optional(
    duration('--redis-timeout <duration>', 'maximum time for an answer of Redis (default: 100ms)', {
      minMs: 10,
      maxMs: 10_000,
    }),
  ),
  redisPasswordFile: optional(
    text('--redis-password-file <file>', 'file with the password for Redis, one line, if the URL has none'),
  ),
  redisCaFile: optional(text('--redis-ca-file <file>', 'certificates (PEM) to trust with rediss://')),
  redisSentinelUser: optional(text('--redis-sentinel-user <name>', 'user name for the Sentinels')),
  redisSentinelPasswordFile: optional(
    text('--redis-sentinel-password-file <file>', 'file with the password for the Sentinels, one line'),
  ),
  redisMinReplicasToWrite: optional(
    integer(
      '--redis-min-replicas-to-write <count>',
      'min-replicas-to-write of every Redis, if CONFIG GET is forbidden',
      {
        min: 0,
        max: 1_000,
      },
    ),
  ),
  redisMinReplicasMaxLagMs: optional(
    duration(
      '--redis-min-replicas-max-lag <duration>',
      'min-replicas-max-lag of every Redis, if CONFIG GET is forbidden',
    ),
  ),
  redisClusterNodeTimeoutMs: optional(
    duration(
      '--redis-cluster-node-timeout <duration>',
      'cluster-node-timeout of every Redis, if CONFIG GET is forbidden',
    ),
  ),
  holderQuota: withDefault(
    integer('--holder-quota <count>', 'maximum number of requests of one key in a minute', {
      min: 1,
      max: 1_000_000_000,
    }),
    '600000',
  ),
  subjectQuota: withDefault(
    integer('--subject-quota <count>', 'maximum number of requests of one issuer and subject in a minute', {
      min: 1,
      max: 1_000_000_000,
    }),
    '1200000',
  ),
  maxReplayRecords: optional(
    integer(
      '--max-replay-records <count>',
      'with --replay memory: maximum number of stored proofs (default: 1000000)',
      {
        min: 1000,
        max: 50_000_000,
      },
    ),
  ),
};

export const CAPTURE_SETTINGS = {
  captureDenied: optional(
    text(
      '--capture-denied <directory>',
      'where to write denied requests for explain, the newest 1,000 or 64 MiB, without secrets',
    ),
  ),
  captureCredentials: toggle(
    '--capture-credentials',
    'write these requests whole, with passports, proofs, headers and bodies',
    false,
  ),
};

export const LOAD_SETTINGS = {
  otlpEndpoint: optional(
    parsed(
      text('--otlp-endpoint <url>', 'OpenTelemetry collector (OTLP over HTTP) for sampled decisions'),
      parseOtlpEndpoint,
    ),
  ),
  maxInFlight: withDefault(
    integer('--max-in-flight <count>', 'maximum number of checks that wait for the replay store', {
      min: 1,
      max: 1_000_000,
    }),
    '1024',
  ),
};

function parseAuthSite(text: string): string {
  if (isIdentifier(text)) return text;
  throw usageError('bad_auth_site', '--auth-site must be 1 to 512 visible ASCII characters without spaces');
}

function parseOtlpEndpoint(text: string): URL {
  const url = URL.canParse(text) ? new URL(text) : undefined;
  const isHttp = url?.protocol === 'http:' || url?.protocol === 'https:';
  if (url === undefined || !isHttp || url.username !== '' || url.search !== '' || url.hash !== '') {
    throw usageError(
      'bad_otlp_endpoint',
      '--otlp-endpoint must be http:// or https://HOST[:PORT][/PATH], such as http://127.0.0.1:4318',
    );
  }
  return url;
}

type EnforcementGroups = typeof BUNDLE_SETTINGS &
  typeof ADMIN_AND_REPLAY_SETTINGS &
  typeof ORIGIN_AND_STALENESS &
  typeof AUDIT_SETTINGS &
  typeof CAPTURE_SETTINGS &
  typeof LOAD_SETTINGS &
  typeof SHUTDOWN_SETTINGS;

/** The middleware has none of the last line. */
export type EnforcementSettings = SettingValues<EnforcementGroups> &
  Partial<SettingValues<typeof OBSERVATION_SETTINGS & typeof DPOP_SETTINGS>>;
