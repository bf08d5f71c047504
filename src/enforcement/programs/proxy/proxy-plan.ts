/** Validates the settings of `proofgate proxy` beyond those of the verifier. Reads files; connects to nothing. */
import { constants } from 'node:fs';
import { access, stat } from 'node:fs/promises';
import { networkInterfaces, tmpdir } from 'node:os';
import { planListenerTls, type ServerTlsPlan } from '../../../process/connections/listener-tls.ts';
import { readCaFile } from '../../../process/files/input-files.ts';
import type { UpstreamAddress, UpstreamTls } from '../../../process/http-proxy/upstream-pool.ts';
import { usageError } from '../../../process/program/errors.ts';
import { parseSocketAddress } from '../../../process/settings/listen-address.ts';
import { isCanonicalAuthority, type Origin } from '../../../protocol/request-target.ts';
import { parseExternalOrigin } from '../enforcement-plan.ts';
import type { ProxySettings } from './proxy-settings.ts';

/** Contains private keys. */
export interface ProxyPlan {
  readonly listen: string;
  readonly tls: ServerTlsPlan | undefined;
  readonly upstream: UpstreamAddress;
  /** Undefined for an upstream without TLS. */
  readonly upstreamTls: UpstreamTls | undefined;
  /** Files of the client certificate. */
  readonly upstreamCertificate: ServerTlsPlan | undefined;
  readonly upstreamHost: string | undefined;
  readonly externalOrigin: Origin | undefined;
  readonly spoolDirectory: string;
}

/** @throws CliError with exit code 2 */
export async function planProxy(settings: ProxySettings): Promise<ProxyPlan> {
  const upstream = parseUpstream(settings.upstream);
  const certificate = await planListenerTls(
    { check: 'upstream_tls', port: 'connection to the upstream', flagPrefix: 'upstream' },
    {
      certFile: settings.upstreamCertFile,
      keyFile: settings.upstreamKeyFile,
      clientCaFile: undefined,
      clientSans: [],
    },
  );
  return {
    listen: parseSocketAddress('listen', onEveryAddress(settings.listen)),
    tls: await planListenerTls(
      { check: 'tls', port: 'listener', flagPrefix: 'tls' },
      {
        certFile: settings.tlsCertFile,
        keyFile: settings.tlsKeyFile,
        clientCaFile: settings.tlsClientCaFile,
        clientSans: settings.tlsClientSans,
      },
    ),
    upstream,
    upstreamTls: await planUpstreamTls(settings, upstream, certificate),
    upstreamCertificate: certificate,
    upstreamHost: parseUpstreamHost(settings.upstreamHost),
    externalOrigin: parseExternalOrigin(settings.externalOrigin),
    spoolDirectory: await planSpoolDirectory(settings.spoolDir),
  };
}

/** `:PORT` means every address, also where there is no IPv6. */
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

async function planUpstreamTls(
  settings: ProxySettings,
  upstream: UpstreamAddress,
  certificate: ServerTlsPlan | undefined,
): Promise<UpstreamTls | undefined> {
  const { upstreamCaFile, upstreamServerName } = settings;
  if (upstream.kind === 'origin' && upstream.origin.protocol === 'https:') {
    if (upstreamServerName !== undefined && !isCanonicalAuthority('https', upstreamServerName)) {
      throw usageError('bad_upstream', '--upstream-server-name must be a host name in lower case');
    }
    return {
      ca: await readCaFile(upstreamCaFile),
      client: certificate?.material,
      serverName: upstreamServerName,
    };
  }
  if (upstreamCaFile === undefined && upstreamServerName === undefined && certificate === undefined) {
    return undefined;
  }
  throw usageError('upstream_not_https', 'settings of the TLS to the upstream need --upstream https://…');
}

export function parseUpstreamHost(host: string | undefined): string | undefined {
  if (host === undefined || isCanonicalAuthority('http', host)) return host;
  throw usageError('bad_upstream', '--upstream-host must be HOST[:PORT] in lower case');
}

async function planSpoolDirectory(directory = tmpdir()): Promise<string> {
  try {
    if (!(await stat(directory)).isDirectory()) throw new Error('not a directory');
    await access(directory, constants.W_OK | constants.X_OK);
    return directory;
  } catch {
    throw usageError('spool_dir_unusable', `--spool-dir: ${directory} is no directory with write access`);
  }
}
