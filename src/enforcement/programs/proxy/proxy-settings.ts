/** Settings of `proofgate proxy`. Source: docs/operate/cli.md. */

import { networkInterfaces } from 'node:os';
import type { UpstreamAddress } from '../../../process/http-proxy/upstream-pool.ts';
import { usageError } from '../../../process/program/errors.ts';
import { parseSocketAddress } from '../../../process/settings/listen-address.ts';
import {
  duration,
  integer,
  list,
  optional,
  parsed,
  required,
  type SettingValues,
  text,
  withDefault,
} from '../../../process/settings/settings.ts';
import { SHUTDOWN_SETTINGS } from '../../../process/settings/shutdown-settings.ts';
import { isCanonicalAuthority } from '../../../protocol/request-target.ts';
import { AUDIT_SETTINGS } from '../../../verifier/assembly/audit-settings.ts';
import { ORIGIN_AND_STALENESS } from '../decision-settings.ts';
import { DPOP_SETTINGS } from '../dpop-settings.ts';
import {
  ADMIN_AND_REPLAY_SETTINGS,
  BUNDLE_SETTINGS,
  CAPTURE_SETTINGS,
  LOAD_SETTINGS,
} from '../enforcement-settings.ts';
import { OBSERVATION_SETTINGS } from '../observation-settings.ts';

const LISTENER_SETTINGS = {
  listen: required(
    parsed(
      text('--listen <address>', 'address for clients: HOST:PORT, :PORT for every address, or unix:PATH'),
      (address, flag) => parseSocketAddress(flag, onEveryAddress(address)),
    ),
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
    parsed(
      text('--upstream <url>', 'the API: http://HOST[:PORT], https://HOST[:PORT] or unix:PATH'),
      parseUpstream,
    ),
  ),
  upstreamHost: optional(
    parsed(
      text(
        '--upstream-host <authority>',
        'Host header for the upstream; default: the authority that was verified',
      ),
      parseUpstreamHost,
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

/** `:PORT` means every address, also on hosts without IPv6. */
function onEveryAddress(listen: string): string {
  if (!listen.startsWith(':')) return listen;
  const addresses = Object.values(networkInterfaces()).flat();
  return `${addresses.some((address) => address?.family === 'IPv6') ? '[::]' : '0.0.0.0'}${listen}`;
}

export function parseUpstream(text: string): UpstreamAddress {
  if (text.startsWith('unix:')) {
    return { kind: 'unix', path: parseSocketAddress('upstream', text).slice('unix:'.length) };
  }
  const url = URL.canParse(text) ? new URL(text) : undefined;
  const isBare = url?.pathname === '/' && url.search === '' && url.hash === '' && url.username === '';
  if (url === undefined || !isBare || url.password !== '' || !/^https?:$/.test(url.protocol)) {
    throw usageError(
      'bad_upstream',
      '--upstream must be http://HOST[:PORT], https://HOST[:PORT] or unix:PATH, without path or password',
    );
  }
  return { kind: 'origin', origin: url };
}

function parseUpstreamHost(host: string): string {
  if (isCanonicalAuthority('http', host)) return host;
  throw usageError('bad_upstream', '--upstream-host must be HOST[:PORT] in lower case');
}

export const PROXY_SETTINGS = {
  ...BUNDLE_SETTINGS,
  ...LISTENER_SETTINGS,
  ...UPSTREAM_SETTINGS,
  ...BODY_SETTINGS,
  ...ADMIN_AND_REPLAY_SETTINGS,
  ...ORIGIN_AND_STALENESS,
  ...AUDIT_SETTINGS,
  ...CAPTURE_SETTINGS,
  ...OBSERVATION_SETTINGS,
  ...DPOP_SETTINGS,
  ...LOAD_SETTINGS,
  ...SHUTDOWN_SETTINGS,
};

export type ProxySettings = SettingValues<typeof PROXY_SETTINGS>;
