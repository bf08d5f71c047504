/** Control settings. Source: docs/control.md "Running Control". */

import {
  choice,
  duration,
  integer,
  list,
  optional,
  required,
  type SettingValues,
  text,
  toggle,
  withDefault,
} from '../../program/settings.ts';
import { LOG_LEVELS } from '../../telemetry/log-level.ts';

const DAY_MS = 24 * 3600 * 1000;
const RATE = { min: 1, max: 1_000_000 };

const STORAGE = {
  dataDir: required(
    text('--data-dir <directory>', 'keeps the embedded database and the key files; must be there'),
  ),
  databaseUrl: optional(
    text('--database-url <url>', 'postgres://… for several instances; default: an embedded database'),
  ),
  databaseUrlFile: optional(
    text('--database-url-file <file>', 'holds the database URL, so that no password stands in arguments'),
  ),
  masterKeyFile: optional(
    text(
      '--master-key-file <file>',
      'seals what the database keeps; default: master-key in the data directory',
    ),
  ),
  bootstrapTokenFile: optional(
    text(
      '--bootstrap-token-file <file>',
      'where the first start writes the bootstrap token; default: bootstrap-token in the data directory',
    ),
  ),
  resetBootstrapToken: toggle(
    '--reset-bootstrap-token',
    "make the file's bootstrap token, or a new one when there is no file, the one that holds",
    false,
  ),
};

const NETWORK = {
  listen: withDefault(text('--listen <address>', 'where the API is served, as HOST:PORT'), '127.0.0.1:9193'),
  adminListen: withDefault(
    text('--admin-listen <address>', '/livez, /readyz and /metrics, as HOST:PORT'),
    '127.0.0.1:9194',
  ),
  publicUrls: list(
    text('--public-url <url>', 'how clients reach it, the first for browsers; default: the listen address'),
  ),
  tlsCert: optional(
    text('--tls-cert <file>', 'certificate chain (PEM) to serve with; read again when it changes'),
  ),
  tlsKey: optional(text('--tls-key <file>', 'its private key (PEM)')),
  allowPlainHttp: toggle(
    '--allow-plain-http',
    'serve without TLS beyond loopback, such as behind a proxy',
    false,
  ),
  trustedProxies: list(
    text('--trusted-proxy <cidr>', "proxies whose X-Forwarded-For names the client's address"),
  ),
  issuerNetworks: list(
    text(
      '--allow-issuer-network <cidr>',
      'addresses that are not public where an issuer may be fetched from',
    ),
  ),
  issuerCaFile: optional(
    text('--issuer-ca-file <file>', "certificates (PEM) to trust for issuers, beside the system's"),
  ),
};

const OPERATORS = {
  oidcIssuer: optional(text('--oidc-issuer <url>', "the operators' identity provider (OpenID Connect)")),
  oidcClientId: optional(text('--oidc-client-id <id>', 'how it knows this Control')),
  oidcClientSecretFile: optional(text('--oidc-client-secret-file <file>', 'holds the client secret')),
  oidcCaFile: optional(
    text('--oidc-ca-file <file>', "certificates (PEM) to trust for it, instead of the system's"),
  ),
  oidcGroupsClaim: optional(
    text('--oidc-groups-claim <name>', 'claim that lists groups, to which roles can be granted'),
  ),
  oidcScope: withDefault(text('--oidc-scope <scopes>', 'what to ask it for'), 'openid profile email'),
  sessionLifetimeMs: withDefault(
    duration('--session-lifetime <duration>', 'an operator signs in again after that long', {
      minMs: 60_000,
      maxMs: 7 * DAY_MS,
    }),
    '8h',
  ),
};

const ENROLLMENT = {
  workloadImage: withDefault(
    text('--workload-image <image>', 'holds proofgate, for the snippets of the Enrollment Command Generator'),
    'proofgate:latest',
  ),
  workloadCaConfigmap: optional(
    text(
      '--workload-ca-configmap <name>',
      "ConfigMap with ca.crt in workloads' namespaces, for the same, where Control's certificate is of a private CA",
    ),
  ),
};

const LIMITS = {
  addressRate: withDefault(
    integer('--address-rate <count>', 'enrollment requests a second from one address', RATE),
    '20',
  ),
  policyRate: withDefault(
    integer('--policy-rate <count>', 'challenges and submissions a second for one policy', RATE),
    '50',
  ),
  operatorRate: withDefault(
    integer('--operator-rate <count>', 'requests a second of one operator or token', RATE),
    '50',
  ),
  targetRate: withDefault(integer('--target-rate <count>', 'requests a second of one target', RATE), '50'),
  auditRetentionMs: withDefault(
    retention('--audit-retention <duration>', 'audit events are kept that long'),
    '9600h',
  ),
  keyRetentionMs: withDefault(
    retention('--key-retention <duration>', 'ended keys and decided enrollments are kept that long'),
    '720h',
  ),
  drainTimeoutMs: withDefault(
    duration('--drain-timeout <duration>', 'most time that SIGTERM leaves to requests in flight'),
    '10s',
  ),
  logLevel: withDefault(
    choice('--log-level <level>', 'how much the log on standard error says', LOG_LEVELS),
    'info',
  ),
};

function retention(specification: string, description: string) {
  return duration(specification, description, { minMs: 2 * 3_600_000, maxMs: 3650 * DAY_MS });
}

export const CONTROL_SETTINGS = { ...STORAGE, ...NETWORK, ...OPERATORS, ...ENROLLMENT, ...LIMITS };

export type ControlSettings = SettingValues<typeof CONTROL_SETTINGS>;
