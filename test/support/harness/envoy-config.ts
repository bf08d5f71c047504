/**
 * The shipped envoy/envoy.yaml with only the changes that a test needs: ports, the verifier's address, limits. So the suite
 * tests the file that operators get, and an edit that no longer matches the file fails.
 */
import { readFileSync } from 'node:fs';
import { type Document, parseDocument } from 'yaml';
import { checkoutPath } from './checkout.ts';

export type ConfigPath = readonly (string | number)[];

/** Sets `value` at `path`, or takes the path away when there is none. The path's parent must be there. */
export interface ConfigEdit {
  readonly path: ConfigPath;
  readonly value?: unknown;
}

export type VerifierAddress =
  | { readonly kind: 'unix'; readonly path: string }
  | { readonly kind: 'tcp'; readonly host: string; readonly port: number };

export interface EnvoyAdaptation {
  readonly verifier: VerifierAddress;
  readonly upstream: { readonly host: string; readonly port: number; readonly http2?: boolean };
  /** Default 0: any free port. */
  readonly ingressPort?: number;
  /** The blocks that the shipped file has commented out with `#|`. Default false. */
  readonly optionalBlocks?: boolean;
  /** The block of TLS towards the verifier, which the shipped file has commented out with `#+`. Default false. */
  readonly verifierTls?: boolean;
  /** Health checks of verifiers, which the shipped file has commented out with `#*`. Default false. */
  readonly healthChecks?: boolean;
  /** Threads that serve. Default 1. */
  readonly concurrency?: number;
  /** Applied last, in order. */
  readonly edits?: readonly ConfigEdit[];
}

const ingress: ConfigPath = ['static_resources', 'listeners', 0];
const http2ProtocolOptions = {
  'envoy.extensions.upstreams.http.v3.HttpProtocolOptions': {
    '@type': 'type.googleapis.com/envoy.extensions.upstreams.http.v3.HttpProtocolOptions',
    explicit_http_config: { http2_protocol_options: {} },
  },
};

/** Places in the shipped file that edits commonly use. */
export const shipped = {
  verifierCluster: ['static_resources', 'clusters', 0],
  upstreamCluster: ['static_resources', 'clusters', 1],
  filterChain: [...ingress, 'filter_chains', 0],
  connectionManager: [...ingress, 'filter_chains', 0, 'filters', 0, 'typed_config'],
  headerMutation: [
    ...ingress,
    'filter_chains',
    0,
    'filters',
    0,
    'typed_config',
    'http_filters',
    0,
    'typed_config',
  ],
  extAuthz: [...ingress, 'filter_chains', 0, 'filters', 0, 'typed_config', 'http_filters', 1, 'typed_config'],
  virtualHost: [
    ...ingress,
    'filter_chains',
    0,
    'filters',
    0,
    'typed_config',
    'route_config',
    'virtual_hosts',
    0,
  ],
} as const satisfies Record<string, ConfigPath>;

/**
 * The shipped time-outs are for gateways in service. On a busy test machine the verifier and the API may be slower than that,
 * and a test would then find Envoy's 503 instead of the verifier's answer.
 */
export const patient: readonly ConfigEdit[] = [
  { path: [...shipped.extAuthz, 'grpc_service', 'timeout'], value: '8s' },
  { path: [...shipped.verifierCluster, 'connect_timeout'], value: '8s' },
  { path: [...shipped.upstreamCluster, 'connect_timeout'], value: '8s' },
];

/** Envoy holds a refused connection open for a second, so that the answer is read; here that only takes time. */
export const closeAtOnce: ConfigEdit = {
  path: [...shipped.connectionManager, 'delayed_close_timeout'],
  value: '0.01s',
};

/** The text of the shipped file, with its optional blocks enabled on request. */
export function shippedText(optionalBlocks = false, verifierTls = false, healthChecks = false): string {
  const text = readFileSync(checkoutPath('envoy', 'envoy.yaml'), 'utf8');
  const withTls = verifierTls ? text.replace(/^( *)#\+ ?/gm, '$1') : text;
  const withHealth = healthChecks ? withTls.replace(/^( *)#\* ?/gm, '$1') : withTls;
  return optionalBlocks ? withHealth.replace(/^( *)#\| ?/gm, '$1') : withHealth;
}

/** @returns YAML for Envoy; its admin interface is on a free loopback port */
export function adaptShipped(adaptation: EnvoyAdaptation): string {
  const { optionalBlocks, verifierTls, healthChecks } = adaptation;
  return adaptConfig(shippedText(optionalBlocks, verifierTls, healthChecks), adaptation);
}

/** The same for a configuration that was made of the shipped one, such as the chart's. */
export function adaptConfig(text: string, adaptation: EnvoyAdaptation): string {
  const config = parseDocument(text);
  const { upstream } = adaptation;
  const edits: ConfigEdit[] = [
    { path: ['admin', 'address', 'socket_address', 'port_value'], value: 0 },
    {
      path: [...ingress, 'address', 'socket_address'],
      value: { address: '127.0.0.1', port_value: adaptation.ingressPort ?? 0 },
    },
    { path: endpointAddress(config, 'proofgate'), value: verifierAddress(adaptation.verifier) },
    {
      path: endpointAddress(config, 'upstream'),
      value: { socket_address: { address: upstream.host, port_value: upstream.port } },
    },
  ];
  if (upstream.http2 === true) {
    const path = [...cluster(config, 'upstream'), 'typed_extension_protocol_options'];
    edits.push({ path, value: http2ProtocolOptions });
  }
  for (const edit of [...edits, ...(adaptation.edits ?? [])]) applyEdit(config, edit);
  return config.toString();
}

function applyEdit(config: Document, { path, value }: ConfigEdit): void {
  if (!config.hasIn(path.slice(0, -1))) throw new Error(`envoy.yaml has no ${path.slice(0, -1).join('.')}`);
  if (value === undefined) config.deleteIn(path);
  else config.setIn(path, config.createNode(value));
}

function verifierAddress(address: VerifierAddress): unknown {
  return address.kind === 'unix'
    ? { pipe: { path: address.path } }
    : { socket_address: { address: address.host, port_value: address.port } };
}

function endpointAddress(config: Document, name: string): ConfigPath {
  const path = 'load_assignment endpoints 0 lb_endpoints 0 endpoint address'.split(' ');
  return [...cluster(config, name), ...path.map((part) => (part === '0' ? 0 : part))];
}

function cluster(config: Document, name: string): ConfigPath {
  const clusters = ['static_resources', 'clusters'];
  for (let index = 0; config.hasIn([...clusters, index]); index += 1) {
    if (config.getIn([...clusters, index, 'name']) === name) return [...clusters, index];
  }
  throw new Error(`envoy.yaml has no cluster ${name}`);
}
