/** Settings of `proofgate broker`. Source: docs/operate/cli.md. */

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
import { AUDIT_SETTINGS } from '../../verifier/assembly/audit-settings.ts';
import { DEFAULT_BROKER_LIMITS, MAX_PASSPORT_TTL_SECONDS } from '../broker-ports.ts';

const COUNT = { min: 1, max: 1_000_000 };

const LISTENER = {
  publicUrl: required(
    text('--public-url <url>', 'URL under which callers reach the broker; they sign it with each request'),
  ),
  listen: withDefault(
    text('--listen <address>', 'address for callers: HOST:PORT or unix:PATH'),
    '127.0.0.1:9196',
  ),
  tlsCertFile: optional(
    text(
      '--tls-cert-file <file>',
      'certificate (PEM) of the listener, required beyond loopback; reloaded when it changes',
    ),
  ),
  tlsKeyFile: optional(text('--tls-key-file <file>', 'private key (PEM) of that certificate')),
  maxConnections: withDefault(
    integer('--max-connections <count>', 'maximum number of connections', { min: 1, max: 65_536 }),
    '1024',
  ),
  adminListen: adminListenSetting('127.0.0.1:9197'),
};

const KEYS = {
  keyDir: required(
    text('--key-dir <directory>', 'signing keys, as <trust domain>/<key ID>.pem; reloaded when they change'),
  ),
  trustDomains: list(
    text('--trust-domain <name>', 'trust domain to issue passports for; default: those of the key directory'),
  ),
  challengeKeyFile: optional(
    text(
      '--challenge-key-file <file>',
      'key of the challenges, the same for every replica; default: a random one, for a single process',
    ),
  ),
};

const PASSPORTS = {
  issuer: optional(text('--issuer <name>', 'iss of the passports; default: the public URL')),
  passportTtlMs: withDefault(
    duration('--passport-ttl <duration>', 'lifetime of a passport, in whole seconds', {
      minMs: 1_000,
      maxMs: MAX_PASSPORT_TTL_SECONDS * 1_000,
    }),
    '5m',
  ),
  acceptJwtSvid: toggle('--accept-jwt-svid', 'accept JWT-SVIDs as proof', false),
  serveProofs: toggle(
    '--serve-proofs',
    "also sign requests for callers, over TLS with a client certificate of the caller's key, or a Unix socket",
    false,
  ),
  profiles: optional(
    text('--profiles <directory>', 'signing profile files for callers; reloaded when they change'),
  ),
};

const CALLERS = {
  spiffeSocket: optional(
    text(
      '--spiffe-socket <address>',
      'Workload API that delivers trust bundles, such as unix:///run/spire/agent.sock',
    ),
  ),
  spiffeBundles: list(
    text(
      '--spiffe-bundle <domain=file>',
      'trust bundle of a trust domain, a SPIFFE bundle or PEM; reloaded when it changes',
    ),
  ),
  spiffeBundleEndpoints: list(
    text(
      '--spiffe-bundle-endpoint <domain=url,profile>',
      'bundle endpoint of a trust domain: TD=URL,https_web or TD=URL,https_spiffe,SPIFFE-ID',
    ),
    '\n',
  ),
  spiffeBundleCaFile: optional(
    text(
      '--spiffe-bundle-ca-file <file>',
      "CA certificates (PEM) for https_web bundle endpoints, in addition to the system's",
    ),
  ),
  spiffeBundleNetworks: list(
    text('--spiffe-bundle-network <cidr>', 'private addresses that bundle endpoints may have'),
  ),
  softwareKeys: optional(
    text('--software-keys <file>', 'registered keys of callers without an SVID; reloaded when it changes'),
  ),
  denyFile: optional(text('--deny-file <file>', 'callers that get no passport; reloaded when it changes')),
};

const LIMITS = {
  addressRate: withDefault(
    integer('--address-rate <count>', 'requests a second from one address', COUNT),
    `${DEFAULT_BROKER_LIMITS.requestsPerSecondPerAddress}`,
  ),
  identityRate: withDefault(
    integer('--identity-rate <count>', 'verified requests a second of one identity', COUNT),
    `${DEFAULT_BROKER_LIMITS.requestsPerSecondPerIdentity}`,
  ),
  maxHolderKeys: withDefault(
    integer('--max-holder-keys <count>', 'maximum number of holder keys of one identity in 5 minutes', COUNT),
    `${DEFAULT_BROKER_LIMITS.holderKeysPerIdentity}`,
  ),
};

const OPERATION = {
  ...AUDIT_SETTINGS,
  allowPlainHttp: toggle('--allow-plain-http', 'allow plain HTTP for audit events', false),
  ...DRAIN_AND_LOG_SETTINGS,
};

export const BROKER_SETTINGS = { ...LISTENER, ...KEYS, ...PASSPORTS, ...CALLERS, ...LIMITS, ...OPERATION };

export type BrokerProcessSettings = SettingValues<typeof BROKER_SETTINGS>;
