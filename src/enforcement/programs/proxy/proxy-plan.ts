/** Validates the settings of `proofgate proxy` beyond those of the verifier. Reads files; connects to nothing. */
import { constants } from 'node:fs';
import { access, stat } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { planListenerTls, type ServerTlsPlan } from '../../../process/connections/listener-tls.ts';
import { readCaFile } from '../../../process/files/input-files.ts';
import type { UpstreamTls } from '../../../process/http-proxy/upstream-pool.ts';
import { usageError } from '../../../process/program/errors.ts';
import { isCanonicalAuthority } from '../../../protocol/request-target.ts';
import type { ProxySettings } from './proxy-settings.ts';

/** Contains private keys. */
export interface ProxyPlan {
  readonly tls: ServerTlsPlan | undefined;
  /** Undefined for an upstream without TLS. */
  readonly upstreamTls: UpstreamTls | undefined;
  /** Files of the client certificate. */
  readonly upstreamCertificate: ServerTlsPlan | undefined;
  readonly spoolDirectory: string;
}

/** @throws CliError with exit code 2 */
export async function planProxy(settings: ProxySettings): Promise<ProxyPlan> {
  const certificate = await planListenerTls(
    { check: 'upstream_tls', port: 'connection to the upstream', flagPrefix: 'upstream' },
    { certFile: settings.upstreamCertFile, keyFile: settings.upstreamKeyFile },
  );
  return {
    tls: await planListenerTls(
      { check: 'tls', port: 'listener', flagPrefix: 'tls' },
      {
        certFile: settings.tlsCertFile,
        keyFile: settings.tlsKeyFile,
        clientCaFile: settings.tlsClientCaFile,
        clientSans: settings.tlsClientSans,
      },
    ),
    upstreamTls: await planUpstreamTls(settings, certificate),
    upstreamCertificate: certificate,
    spoolDirectory: await planSpoolDirectory(settings.spoolDir),
  };
}

async function planUpstreamTls(
  settings: ProxySettings,
  certificate: ServerTlsPlan | undefined,
): Promise<UpstreamTls | undefined> {
  const { upstream, upstreamCaFile, upstreamServerName } = settings;
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

async function planSpoolDirectory(directory = tmpdir()): Promise<string> {
  try {
    if (!(await stat(directory)).isDirectory()) throw new Error('not a directory');
    await access(directory, constants.W_OK | constants.X_OK);
    return directory;
  } catch {
    throw usageError('spool_dir_unusable', `--spool-dir: ${directory} is no directory with write access`);
  }
}
