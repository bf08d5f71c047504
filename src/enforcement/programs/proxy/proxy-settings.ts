/** Settings of `proofgate proxy`. Source: docs/operate/cli.md. */

import {
  duration,
  integer,
  list,
  optional,
  required,
  type SettingValues,
  text,
  withDefault,
} from '../../../process/settings/settings.ts';
import { SHUTDOWN_SETTINGS } from '../../../process/settings/shutdown-settings.ts';
import { AUDIT_SETTINGS } from '../../../verifier/assembly/audit-settings.ts';
import { ORIGIN_AND_STALENESS } from '../decision-settings.ts';
import {
  ADMIN_AND_REPLAY_SETTINGS,
  BUNDLE_SETTINGS,
  CAPTURE_SETTINGS,
  LOAD_SETTINGS,
} from '../enforcement-settings.ts';

const LISTENER_SETTINGS = {
  listen: required(
    text('--listen <address>', 'address for clients: HOST:PORT, :PORT for every address, or unix:PATH'),
  ),
  tlsCertFile: optional(
    text('--tls-cert-file <file>', 'certificate (PEM) of the listener; reloaded when it changes'),
  ),
  tlsKeyFile: optional(text('--tls-key-file <file>', 'private key (PEM) of that certificate')),
  tlsClientCaFile: optional(
    text('--tls-client-ca-file <file>', 'CA certificates (PEM) that client certificates must come from'),
  ),
  tlsClientSans: list(
    text('--tls-client-san <name>', 'URI or DNS name that a client certificate must have; default: any'),
  ),
  maxConnections: withDefault(
    integer('--max-connections <count>', 'maximum number of client connections', { min: 1, max: 65_536 }),
    '4096',
  ),
  maxRequests: withDefault(
    integer('--max-requests <count>', 'maximum number of requests in progress', { min: 1, max: 65_536 }),
    '2048',
  ),
};

const UPSTREAM_SETTINGS = {
  upstream: required(
    text('--upstream <url>', 'the API: http://HOST[:PORT], https://HOST[:PORT] or unix:PATH'),
  ),
  upstreamHost: optional(
    text(
      '--upstream-host <authority>',
      'Host header for the upstream; default: the authority that was verified',
    ),
  ),
  upstreamCaFile: optional(
    text('--upstream-ca-file <file>', 'CA certificates (PEM) for the connection to the upstream'),
  ),
  upstreamCertFile: optional(
    text(
      '--upstream-cert-file <file>',
      'client certificate (PEM) for the upstream; reloaded when it changes',
    ),
  ),
  upstreamKeyFile: optional(text('--upstream-key-file <file>', 'private key (PEM) of that certificate')),
  upstreamServerName: optional(
    text('--upstream-server-name <name>', "name in the upstream's certificate and in SNI; default: its host"),
  ),
  upstreamConnections: withDefault(
    integer('--upstream-connections <count>', 'maximum number of connections to the upstream', {
      min: 1,
      max: 65_536,
    }),
    '1024',
  ),
  upstreamTimeoutMs: withDefault(
    duration('--upstream-timeout <duration>', 'maximum time until the response of the upstream begins', {
      minMs: 1_000,
    }),
    '30s',
  ),
};

const BODY_SETTINGS = {
  maxBody: withDefault(
    integer('--max-body <count>', 'maximum size of a bound request body, bytes', {
      min: 0,
      max: 1_099_511_627_776,
    }),
    '10485760',
  ),
  spoolDir: optional(
    text('--spool-dir <directory>', "directory for bodies above 64 KiB; default: the system's temporary one"),
  ),
  maxSpool: withDefault(
    integer('--max-spool <count>', 'maximum size of all bodies in --spool-dir together, bytes', {
      min: 0,
      max: 1_099_511_627_776,
    }),
    '1073741824',
  ),
  bodyTimeoutMs: withDefault(
    duration('--body-timeout <duration>', 'maximum time to receive a bound request body', { minMs: 1_000 }),
    '60s',
  ),
  idleTimeoutMs: withDefault(
    duration('--idle-timeout <duration>', 'maximum time without progress of a stream', { minMs: 1_000 }),
    '5m',
  ),
};

export const PROXY_SETTINGS = {
  ...BUNDLE_SETTINGS,
  ...LISTENER_SETTINGS,
  ...UPSTREAM_SETTINGS,
  ...BODY_SETTINGS,
  ...ADMIN_AND_REPLAY_SETTINGS,
  ...ORIGIN_AND_STALENESS,
  ...AUDIT_SETTINGS,
  ...CAPTURE_SETTINGS,
  ...LOAD_SETTINGS,
  ...SHUTDOWN_SETTINGS,
};

export type ProxySettings = SettingValues<typeof PROXY_SETTINGS>;
