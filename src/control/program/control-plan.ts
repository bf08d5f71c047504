/**
 * Validates Control's settings. An invalid setting fails the start with a one-line error before anything is opened.
 * Source: docs/operate/control.md "Running Control".
 */
import { isIP } from 'node:net';
import { join } from 'node:path';
import { readTlsMaterial, type TlsFiles } from '../../process/connections/listener-tls.ts';
import type { TlsMaterial } from '../../process/connections/tls-material.ts';
import { assertStateDirectory, readPemFile } from '../../process/files/input-files.ts';
import { readMountedSecret } from '../../process/files/secret-files.ts';
import { type IssuerNetwork, parseIssuerNetwork } from '../../process/outbound-fetch/address-policy.ts';
import { readIssuerCa } from '../../process/outbound-fetch/outbound-fetch.ts';
import { usageError } from '../../process/program/errors.ts';
import { type HostAndPort, parseHostAndPort } from '../../process/settings/listen-address.ts';
import { parsePublicUrl } from '../../process/settings/public-url.ts';
import { isLoopback } from '../../protocol/loopback.ts';
import type { IdentityProviderOptions } from '../operators/identity-provider.ts';
import type { ControlSettings, DatabaseSettings } from './control-settings.ts';

/** Where the database and its keys are. Contains secrets. */
export interface DatabasePlan {
  readonly dataDirectory: string;
  /** A secret. Undefined for the embedded database. */
  readonly databaseUrl: string | undefined;
  readonly masterKeyFile: string;
}

/** Validated settings. Contains secrets. */
export interface ControlPlan extends DatabasePlan {
  readonly listen: HostAndPort;
  readonly adminListen: HostAndPort;
  readonly publicUrls: readonly [string, ...string[]];
  readonly tls: (TlsFiles & { readonly material: TlsMaterial }) | undefined;
  readonly bootstrapTokenFile: string;
  readonly issuerNetworks: readonly IssuerNetwork[];
  readonly issuerCa: readonly string[] | undefined;
  readonly issuerProxy: URL | undefined;
  readonly identityProvider: Omit<IdentityProviderOptions, 'nowMs'> | undefined;
}

/** @throws CliError with exit code 2 */
export async function planControl(settings: ControlSettings): Promise<ControlPlan> {
  const listen = parseHostAndPort('listen', settings.listen);
  const adminListen = parseHostAndPort('admin-listen', settings.adminListen);
  const tls = await readTls(settings);
  if (tls === undefined && !settings.allowPlainHttp && !isLoopback(listen.host)) {
    throw usageError(
      'plain_http_refused',
      '--listen beyond loopback needs --tls-cert and --tls-key, or --allow-plain-http behind a proxy',
    );
  }
  const publicUrls = readPublicUrls(settings, listen, tls !== undefined);
  assertProxies(settings.trustedProxies);
  assertConfigMap(settings.workloadCaConfigmap);
  const issuerNetworks = settings.issuerNetworks.map(readNetwork);
  const issuerCa = await readIssuerCaFile(settings.issuerCaFile);
  const identityProvider = await readIdentityProvider(settings);
  const database = await planDatabase(settings);
  return {
    ...database,
    listen,
    adminListen,
    publicUrls,
    tls,
    bootstrapTokenFile: settings.bootstrapTokenFile ?? join(settings.dataDir, 'bootstrap-token'),
    issuerNetworks,
    issuerCa,
    issuerProxy: readProxy(settings.issuerProxy),
    identityProvider,
  };
}

/** @throws CliError `bad_issuer_proxy` */
function readProxy(text: string | undefined): URL | undefined {
  if (text === undefined) return undefined;
  const url = URL.canParse(text) ? new URL(text) : undefined;
  if (url?.protocol === 'http:' && url.href === `${url.origin}/`) return url;
  throw usageError(
    'bad_issuer_proxy',
    '--issuer-proxy must be http://HOST:PORT, without path and credentials',
  );
}

/** @throws CliError with exit code 2 */
export async function planDatabase(settings: DatabaseSettings): Promise<DatabasePlan> {
  const { dataDir, masterKeyFile = join(dataDir, 'master-key') } = settings;
  const databaseUrl = await readDatabaseUrl(settings);
  await assertStateDirectory(dataDir, 'data-dir');
  return { dataDirectory: dataDir, databaseUrl, masterKeyFile };
}

async function readTls({ tlsCert, tlsKey }: ControlSettings): Promise<ControlPlan['tls']> {
  if (tlsCert === undefined && tlsKey === undefined) return undefined;
  if (tlsCert === undefined || tlsKey === undefined) {
    throw usageError('tls_pair_incomplete', '--tls-cert and --tls-key go together');
  }
  const files = { certFile: tlsCert, keyFile: tlsKey, clientCaFile: undefined };
  return { ...files, material: await readTlsMaterial(files) };
}

function readPublicUrls(
  { publicUrls, allowPlainHttp }: ControlSettings,
  { host, port }: HostAndPort,
  hasTls: boolean,
): readonly [string, ...string[]] {
  const [first, ...others] = publicUrls.map((url) => parsePublicUrl(url, allowPlainHttp));
  if (first !== undefined) return [first, ...others];
  if (port === 0 || /^[0:.]+$/.test(host)) {
    throw usageError('public_url_required', `--public-url is required with --listen ${host}:${port}`);
  }
  const name = host.includes(':') ? `[${host}]` : host;
  return [new URL(`${hasTls ? 'https' : 'http'}://${name}:${port}`).origin];
}

function assertProxies(proxies: readonly string[]): void {
  const wrong = proxies.find((text) => isIP(text) === 0 && parseIssuerNetwork(text) === undefined);
  if (wrong === undefined) return;
  throw usageError('bad_network', '--trusted-proxy must be an address or a CIDR, such as 10.0.0.0/8');
}

/** A Kubernetes object name: an RFC 1123 subdomain. */
function assertConfigMap(name: string | undefined): void {
  const label = '[a-z0-9](?:[a-z0-9-]*[a-z0-9])?';
  if (name === undefined || (name.length <= 253 && new RegExp(`^${label}(?:\\.${label})*$`).test(name)))
    return;
  throw usageError('bad_config_map', '--workload-ca-configmap must be the name of a ConfigMap');
}

function readNetwork(text: string): IssuerNetwork {
  const network = parseIssuerNetwork(text);
  if (network !== undefined) return network;
  throw usageError(
    'bad_network',
    '--allow-issuer-network must be a CIDR without host bits, such as 10.20.0.0/16',
  );
}

async function readIssuerCaFile(path: string | undefined): Promise<readonly string[] | undefined> {
  const pem = await readPemFile(path);
  if (pem === undefined) return undefined;
  const certificates = readIssuerCa(pem);
  if (certificates !== undefined) return certificates;
  throw usageError('ca_invalid', `${path} holds no certificate in PEM, or one that cannot be read`);
}

async function readIdentityProvider(settings: ControlSettings): Promise<ControlPlan['identityProvider']> {
  const { oidcIssuer, oidcClientId, oidcClientSecretFile, oidcCaFile, oidcGroupsClaim, oidcScope } = settings;
  if (oidcIssuer === undefined) {
    if ([oidcClientId, oidcClientSecretFile, oidcCaFile, oidcGroupsClaim].some((one) => one !== undefined)) {
      throw usageError('oidc_issuer_required', '--oidc-… needs --oidc-issuer');
    }
    return undefined;
  }
  if (oidcClientId === undefined) {
    throw usageError('oidc_client_id_required', '--oidc-issuer needs --oidc-client-id');
  }
  if (!/^https:\/\/[^?#@|\s]+$/.test(oidcIssuer) || !URL.canParse(oidcIssuer)) {
    throw usageError('bad_oidc_issuer', '--oidc-issuer must be an https:// URL, as the provider spells it');
  }
  if (!oidcScope.split(' ').includes('openid')) {
    throw usageError('bad_oidc_scope', '--oidc-scope must hold openid');
  }
  const certificates = await readIssuerCaFile(oidcCaFile);
  return {
    issuer: oidcIssuer,
    clientId: oidcClientId,
    clientSecret:
      oidcClientSecretFile === undefined ? undefined : await readMountedSecret(oidcClientSecretFile),
    caPem: certificates?.join('\n'),
    groupsClaim: oidcGroupsClaim,
    scope: oidcScope,
  };
}

async function readDatabaseUrl(settings: DatabaseSettings): Promise<string | undefined> {
  const { databaseUrl, databaseUrlFile } = settings;
  if (databaseUrl !== undefined && databaseUrlFile !== undefined) {
    throw usageError('database_url_twice', 'give --database-url or --database-url-file, not both');
  }
  const url = databaseUrlFile === undefined ? databaseUrl : await readMountedSecret(databaseUrlFile);
  if (url === undefined) return undefined;
  // The message omits the URL, which may contain a password.
  if (!/^postgres(?:ql)?:\/\//.test(url) || !URL.canParse(url)) {
    throw usageError(
      'bad_database_url',
      'the database URL must read postgres://user:password@host:port/database',
    );
  }
  return url;
}
