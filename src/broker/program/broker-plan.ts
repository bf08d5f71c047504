/** Validates the settings of `proofgate broker`. It reads files, opens no connection and writes nothing. */

import { planListenerTls, type ServerTlsPlan } from '../../process/connections/listener-tls.ts';
import { readPemFile } from '../../process/files/input-files.ts';
import { parseIssuerNetwork } from '../../process/outbound-fetch/address-policy.ts';
import { readIssuerCa } from '../../process/outbound-fetch/outbound-fetch.ts';
import { usageError } from '../../process/program/errors.ts';
import {
  type HostAndPort,
  parseHostAndPort,
  parseSocketAddress,
} from '../../process/settings/listen-address.ts';
import { parsePublicUrl } from '../../process/settings/public-url.ts';
import { isIdentifier } from '../../protocol/identifiers.ts';
import { isLoopback } from '../../protocol/loopback.ts';
import { TRUST_DOMAIN_PATTERN } from '../../protocol/spiffe-id.ts';
import type { BundleEndpoint, BundleEndpointOptions } from '../../spiffe/bundles/bundle-endpoint.ts';
import { WORKLOAD_SOCKET_RULE, workloadSocketTarget } from '../../spiffe/workload-api/workload-socket.ts';
import { parseServerId } from '../../spiffe/workload-id.ts';
import { planAudit } from '../../verifier/assembly/audit-settings.ts';
import type { AuditSetup } from '../../verifier/assembly/open-audit.ts';
import type { BrokerSettings } from '../broker-ports.ts';
import type { BrokerProcessSettings } from './broker-settings.ts';

export interface BundleFile {
  readonly trustDomain: string;
  readonly path: string;
}

export interface WorkloadApiSource {
  readonly address: string;
  /** Whether JWT authorities are needed too. */
  readonly withJwt: boolean;
}

export interface TrustPlan {
  readonly workloadApi: WorkloadApiSource | undefined;
  readonly files: readonly BundleFile[];
  readonly endpoints: readonly BundleEndpoint[];
  readonly endpointFetch: BundleEndpointOptions['fetch'];
}

/** Contains private keys. */
export interface BrokerPlan {
  readonly listen: string;
  readonly admin: HostAndPort;
  readonly tls: ServerTlsPlan | undefined;
  readonly settings: BrokerSettings;
  readonly audit: AuditSetup;
  readonly trust: TrustPlan;
}

/** @throws CliError with exit code 2 */
export async function planBroker(settings: BrokerProcessSettings): Promise<BrokerPlan> {
  const listen = parseSocketAddress('listen', settings.listen);
  const tls = await planListenerTls(
    { check: 'tls', port: 'listener', flagPrefix: 'tls' },
    { certFile: settings.tlsCertFile, keyFile: settings.tlsKeyFile },
  );
  if (tls === undefined && !isLocal(listen)) {
    throw usageError(
      'plain_http_refused',
      'plain HTTP is for loopback and Unix sockets only: give --tls-cert-file and --tls-key-file',
    );
  }
  return {
    listen,
    tls,
    admin: parseHostAndPort('admin-listen', settings.adminListen),
    settings: planIssuing(settings),
    audit: await planAudit(settings),
    trust: await planTrust(settings),
  };
}

function isLocal(listen: string): boolean {
  return listen.startsWith('unix:') || isLoopback(parseHostAndPort('listen', listen).host);
}

function planIssuing(settings: BrokerProcessSettings): BrokerSettings {
  const publicUrl = parsePublicUrl(settings.publicUrl, false);
  const issuer = settings.issuer ?? publicUrl;
  if (!isIdentifier(issuer)) {
    throw usageError('bad_issuer', '--issuer must be 1 to 512 visible ASCII characters without spaces');
  }
  if (settings.passportTtlMs % 1000 !== 0) {
    throw usageError('bad_duration', '--passport-ttl must be in whole seconds');
  }
  return {
    publicUrl,
    issuer,
    passportTtlSeconds: settings.passportTtlMs / 1000,
    acceptsJwtSvids: settings.acceptJwtSvid,
    servesProofs: settings.serveProofs,
    limits: {
      requestsPerSecondPerAddress: settings.addressRate,
      requestsPerSecondPerIdentity: settings.identityRate,
      holderKeysPerIdentity: settings.maxHolderKeys,
    },
  };
}

async function planTrust(settings: BrokerProcessSettings): Promise<TrustPlan> {
  const { acceptJwtSvid: withJwt, softwareKeys, spiffeSocket } = settings;
  const files = settings.spiffeBundles.map(parseBundleFile);
  const endpoints = settings.spiffeBundleEndpoints.map(parseBundleEndpoint);
  rejectRepeated(files);
  rejectRepeated(endpoints);
  const hasBundles = files.length > 0 || endpoints.length > 0 || spiffeSocket !== undefined;
  if (!hasBundles && softwareKeys === undefined) {
    throw usageError(
      'caller_source_missing',
      'no caller could be verified: give --spiffe-socket, --spiffe-bundle, --spiffe-bundle-endpoint or --software-keys',
    );
  }
  if (spiffeSocket !== undefined && workloadSocketTarget(spiffeSocket) === undefined) {
    throw usageError('workload_api_address', `--spiffe-socket must be ${WORKLOAD_SOCKET_RULE}`);
  }
  const workloadApi = spiffeSocket === undefined ? undefined : { address: spiffeSocket, withJwt };
  const endpointFetch = await planEndpointFetch(settings);
  return { workloadApi, files, endpoints, endpointFetch };
}

/** A file and an endpoint may have the same trust domain: the file is the endpoint's first bundle. */
function rejectRepeated(sources: readonly { readonly trustDomain: string }[]): void {
  const named = sources.map(({ trustDomain }) => trustDomain);
  const twice = named.find((trustDomain, i) => named.indexOf(trustDomain) !== i);
  if (twice === undefined) return;
  throw usageError('trust_bundle_repeated', `${twice} has two trust bundles: give one for each trust domain`);
}

async function planEndpointFetch(settings: BrokerProcessSettings): Promise<TrustPlan['endpointFetch']> {
  const openedNetworks = settings.spiffeBundleNetworks.map((text) => {
    const network = parseIssuerNetwork(text);
    if (network !== undefined) return network;
    throw usageError(
      'bad_network',
      '--spiffe-bundle-network must be a CIDR without host bits, such as 10.20.0.0/16',
    );
  });
  const pem = await readPemFile(settings.spiffeBundleCaFile);
  if (pem === undefined) return { openedNetworks };
  const privateCa = readIssuerCa(pem);
  if (privateCa !== undefined) return { openedNetworks, privateCa };
  throw usageError(
    'ca_invalid',
    `${settings.spiffeBundleCaFile} holds no certificate in PEM, or a broken one`,
  );
}

const TRUST_DOMAIN = new RegExp(TRUST_DOMAIN_PATTERN);

function parseBundleFile(text: string): BundleFile {
  const { trustDomain, value } = splitAtTrustDomain('spiffe-bundle', text, 'TRUST-DOMAIN=FILE');
  return { trustDomain, path: value };
}

const ENDPOINT_RULE = 'TRUST-DOMAIN=URL,https_web or TRUST-DOMAIN=URL,https_spiffe,SPIFFE-ID';

/** The URL itself has no comma: one in a path is written `%2C`. */
function parseBundleEndpoint(text: string): BundleEndpoint {
  const { trustDomain, value } = splitAtTrustDomain('spiffe-bundle-endpoint', text, ENDPOINT_RULE);
  const [address = '', profile, endpointId, ...more] = value.split(',');
  const url = URL.canParse(address) ? new URL(address) : undefined;
  const isUsable = url?.protocol === 'https:' && url.username === '' && url.hash === '' && more.length === 0;
  const base = { trustDomain, url: address };
  if (isUsable && profile === 'https_web' && endpointId === undefined) return { ...base, profile };
  if (isUsable && profile === 'https_spiffe' && endpointId !== undefined) {
    const id = parseServerId(endpointId);
    if (id.kind !== 'problem') return { ...base, profile, endpointId };
  }
  throw usageError(
    'bad_trust_bundle',
    `--spiffe-bundle-endpoint must be ${ENDPOINT_RULE}, with an https:// URL`,
  );
}

function splitAtTrustDomain(flag: string, text: string, rule: string) {
  const [, trustDomain = '', value = ''] = /^([^=]*)=(.+)$/.exec(text) ?? [];
  if (TRUST_DOMAIN.test(trustDomain) && value !== '') return { trustDomain, value };
  throw usageError('bad_trust_bundle', `--${flag} must be ${rule}; a trust domain has a-z 0-9 . _ -`);
}
