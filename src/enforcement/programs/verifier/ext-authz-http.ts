/** Plans the verifier's forward-authentication server from its settings: who may ask, how, and TLS. */

import { followTlsFiles, planListenerTls } from '../../../process/connections/listener-tls.ts';
import { readBearerTokenFile } from '../../../process/files/secret-files.ts';
import { usageError } from '../../../process/program/errors.ts';
import type { Origin } from '../../../protocol/request-target.ts';
import { createExtAuthzHttpMetrics } from '../../ext-authz-http/ext-authz-http-metrics.ts';
import { openExtAuthzHttpServer } from '../../ext-authz-http/ext-authz-http-server.ts';
import { HTTP_PROFILES, type HttpProfileName } from '../../ext-authz-http/profiles.ts';
import { parseTrustedPeers, type TrustedPeers } from '../../ext-authz-http/trusted-peers.ts';
import type { PlannedServer } from '../enforcement-process.ts';
import type { VerifierSettings } from './verifier-settings.ts';

/** @returns undefined without `--http-listen` @throws CliError with exit code 2 */
export async function planExtAuthzHttp(settings: VerifierSettings): Promise<PlannedServer | undefined> {
  const { httpListen: listen } = settings;
  if (listen === undefined) return rejectListenerSettings(settings);
  const { bodyMode, name, origin } = planChecks(settings);
  const secret = await readSecret(name, settings.httpSecretFile);
  const trustedPeers = planTrust(settings, listen);
  const tlsPlan = await planListenerTls(
    { check: 'http_tls', port: 'HTTP port', flagPrefix: 'http-tls' },
    {
      certFile: settings.httpTlsCertFile,
      keyFile: settings.httpTlsKeyFile,
      clientCaFile: settings.httpTlsClientCaFile,
      clientSans: settings.httpTlsClientSans,
    },
  );
  return {
    name: 'http_listen',
    listen,
    async open({ logger, metrics: { registry }, ...inputs }) {
      const metrics = createExtAuthzHttpMetrics(registry);
      const server = await openExtAuthzHttpServer({
        ...inputs,
        metrics,
        listen,
        tls: tlsPlan,
        trustedPeers,
        reader: { profile: HTTP_PROFILES[name], bodyMode, origin, secret },
        maxBodyBytes: settings.maxMessageBytes,
        maxConnections: settings.maxConnections,
      });
      const tls =
        tlsPlan &&
        followTlsFiles({
          plan: tlsPlan,
          take: (material) => server.setTlsMaterial(material),
          metrics,
          logger,
        });
      return {
        address: server.address,
        checks: () => (tls === undefined ? [] : [tls.check()]),
        drain: async (timeoutMs) => {
          tls?.close();
          await server.drain(timeoutMs);
        },
      };
    },
  };
}

/** @throws CliError `http_listen_missing` when another setting of the port is given */
function rejectListenerSettings(settings: VerifierSettings): undefined {
  const { httpProfile, httpSecretFile, httpTlsCertFile, httpTlsKeyFile, httpTlsClientCaFile } = settings;
  const given = [httpProfile, httpSecretFile, httpTlsCertFile, httpTlsKeyFile, httpTlsClientCaFile];
  const lists = [...settings.httpTlsClientSans, ...settings.httpTrustedProxies];
  if (given.every((value) => value === undefined) && lists.length === 0 && settings.httpBody === 'unknown') {
    return undefined;
  }
  throw usageError('http_listen_missing', 'the settings of the HTTP port need --http-listen');
}

interface PlannedChecks {
  readonly name: HttpProfileName;
  readonly bodyMode: VerifierSettings['httpBody'];
  readonly origin: Origin;
}

/** @throws CliError `http_profile_missing`, `http_origin_missing`, `bad_origin`, `http_body_not_supported` */
function planChecks({ externalOrigin: origin, httpBody, httpProfile }: VerifierSettings): PlannedChecks {
  if (httpProfile === undefined) {
    throw usageError(
      'http_profile_missing',
      '--http-listen needs --http-profile: envoy, nginx, traefik or caddy',
    );
  }
  if (origin === undefined) {
    throw usageError(
      'http_origin_missing',
      '--http-listen needs --external-origin, such as https://api.example: scheme and host come from no header',
    );
  }
  const { bodyModes } = HTTP_PROFILES[httpProfile];
  if (!bodyModes.includes(httpBody)) {
    throw usageError(
      'http_body_not_supported',
      `--http-body ${httpBody}: with --http-profile ${httpProfile} only ${bodyModes.join(' or ')}`,
    );
  }
  return { name: httpProfile, bodyMode: httpBody, origin };
}

/** Fits into one nginx string without quoting, and cannot be guessed. */
const SECRET = /^[A-Za-z0-9_-]{32,128}$/;

/** @throws CliError `http_secret_missing`, `http_secret_unused`, `http_secret_invalid`, or an error of the file */
async function readSecret(name: HttpProfileName, file: string | undefined): Promise<string | undefined> {
  const isNeeded = HTTP_PROFILES[name].source.kind === 'secret_header';
  if (!isNeeded && file !== undefined) {
    throw usageError('http_secret_unused', `--http-secret-file is for --http-profile nginx, not ${name}`);
  }
  if (!isNeeded) return undefined;
  if (file === undefined) {
    throw usageError('http_secret_missing', `--http-profile ${name} needs --http-secret-file`);
  }
  // As for other tokens, no mode is required: in a pod with an unknown group a Secret's file is readable by everybody.
  const secret = await readBearerTokenFile(file);
  if (SECRET.test(secret)) return secret;
  throw usageError(
    'http_secret_invalid',
    `${file} must contain 32 to 128 characters of A-Z, a-z, 0-9, - and _, as openssl rand -hex 32 makes`,
  );
}

/**
 * A proof shows that its holder signed this request, but only the connection shows that the proxy received it.
 * @throws CliError `http_trust_missing`, `bad_trusted_proxy`
 */
function planTrust(settings: VerifierSettings, listen: string): TrustedPeers | undefined {
  const { httpTlsClientCaFile, httpTrustedProxies } = settings;
  const isSocketFile = listen.startsWith('unix:');
  if (httpTrustedProxies.length === 0) {
    if (isSocketFile || httpTlsClientCaFile !== undefined) return undefined;
    throw usageError(
      'http_trust_missing',
      '--http-listen on TCP needs --http-trusted-proxy or --http-tls-client-ca-file, or use unix:PATH',
    );
  }
  if (isSocketFile) {
    throw usageError(
      'bad_trusted_proxy',
      '--http-trusted-proxy is for TCP: a socket file has permissions instead',
    );
  }
  const peers = parseTrustedPeers(httpTrustedProxies);
  if ('includes' in peers) return peers;
  throw usageError(
    'bad_trusted_proxy',
    '--http-trusted-proxy must be a network such as 10.0.0.7/32 or fd00::/64',
  );
}
