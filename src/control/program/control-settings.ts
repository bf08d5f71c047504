/** Control settings. Source: docs/operate/control.md "Running Control". */

import { adminListenSetting } from '../../process/settings/listen-address.ts';
import {
  duration,
  integer,
  list,
  optional,
  required,
  type SettingValues,
  text,
  toggle,
  withDefault,
} from '../../process/settings/settings.ts';
import { DRAIN_AND_LOG_SETTINGS } from '../../process/settings/shutdown-settings.ts';

const DAY_MS = 24 * 3600 * 1000;
const RATE = { min: 1, max: 1_000_000 };

/** Also of `proofgate control rotate-master-key`. */
export const DATABASE_SETTINGS = {
  dataDir: required(
    text('--data-dir <directory>', 'existing directory for the embedded database and the key files'),
  ),
  databaseUrl: optional(
    text('--database-url <url>', 'postgres://… for several instances; default: the embedded database'),
  ),
  databaseUrlFile: optional(
    text('--database-url-file <file>', 'file with the database URL, so that no password is in the arguments'),
  ),
  masterKeyFile: optional(
    text(
      '--master-key-file <file>',
      'keys that encrypt secrets in the database; default: master-key in the data directory',
    ),
  ),
};
export type DatabaseSettings = SettingValues<typeof DATABASE_SETTINGS>;

const STORAGE = {
  ...DATABASE_SETTINGS,
  bootstrapTokenFile: optional(
    text(
      '--bootstrap-token-file <file>',
      'file that the first start writes the bootstrap token to; default: bootstrap-token in the data directory',
    ),
  ),
  resetBootstrapToken: toggle(
    '--reset-bootstrap-token',
    'replace the bootstrap token by the one in the file, or by a new one when there is no file',
    false,
  ),
};

const NETWORK = {
  listen: withDefault(text('--listen <address>', 'address of the API, as HOST:PORT'), '127.0.0.1:9193'),
  adminListen: adminListenSetting('127.0.0.1:9194'),
  publicUrls: list(
    text(
      '--public-url <url>',
      'URL under which clients reach Control, the first for browsers; default: the listen address',
    ),
  ),
  tlsCert: optional(
    text('--tls-cert <file>', 'certificate chain (PEM) of the API; reloaded when it changes'),
  ),
  tlsKey: optional(text('--tls-key <file>', 'its private key (PEM)')),
  allowPlainHttp: toggle(
    '--allow-plain-http',
    'serve without TLS on other addresses than loopback, such as behind a proxy',
    false,
  ),
  trustedProxies: list(
    text('--trusted-proxy <cidr>', "proxies whose X-Forwarded-For gives the client's address"),
  ),
  issuerNetworks: list(text('--allow-issuer-network <cidr>', 'private addresses that issuers may have')),
  issuerCaFile: optional(
    text('--issuer-ca-file <file>', "CA certificates (PEM) for issuers, in addition to the system's"),
  ),
  issuerProxy: optional(
    text('--issuer-proxy <url>', 'HTTP proxy that leads to issuers, such as http://proxy.example:3128'),
  ),
};

const OPERATORS = {
  oidcIssuer: optional(text('--oidc-issuer <url>', "the operators' identity provider (OpenID Connect)")),
  oidcClientId: optional(text('--oidc-client-id <id>', 'client ID of this Control at the identity provider')),
  oidcClientSecretFile: optional(text('--oidc-client-secret-file <file>', 'file with the client secret')),
  oidcCaFile: optional(
    text('--oidc-ca-file <file>', "CA certificates (PEM) for the identity provider, instead of the system's"),
  ),
  oidcGroupsClaim: optional(
    text('--oidc-groups-claim <name>', 'claim that lists groups, to which roles can be granted'),
  ),
  oidcScope: withDefault(text('--oidc-scope <scopes>', 'scopes to request'), 'openid profile email'),
  sessionLifetimeMs: withDefault(
    duration('--session-lifetime <duration>', 'lifetime of an operator’s session', {
      minMs: 60_000,
      maxMs: 7 * DAY_MS,
    }),
    '8h',
  ),
};

const ENROLLMENT = {
  workloadImage: withDefault(
    text(
      '--workload-image <image>',
      'image with proofgate, for the snippets of the Enrollment Command Generator',
    ),
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
    retention('--audit-retention <duration>', 'how long to keep audit events'),
    '9600h',
  ),
  keyRetentionMs: withDefault(
    retention('--key-retention <duration>', 'how long to keep ended keys and decided enrollments'),
    '720h',
  ),
  ...DRAIN_AND_LOG_SETTINGS,
};

function retention(specification: string, description: string) {
  return duration(specification, description, { minMs: 2 * 3_600_000, maxMs: 3650 * DAY_MS });
}

export const CONTROL_SETTINGS = { ...STORAGE, ...NETWORK, ...OPERATORS, ...ENROLLMENT, ...LIMITS };

export type ControlSettings = SettingValues<typeof CONTROL_SETTINGS>;
